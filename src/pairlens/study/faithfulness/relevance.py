"""Layer-wise relevance propagation: a context in which a transformer is locally linear; it also records attention.

Relevance with the AH and LN rules (Ali et al. 2022, arXiv 2202.07304) is gradient × input of a model in which attention
probabilities and the scale of every normalisation are constants, and an activation is a constant times its input. All
model families call the same few PyTorch functions for these, so the functions are replaced while the model runs.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.overrides import TorchFunctionMode


def _ratio(x: Tensor, out: Tensor) -> Tensor:
    """`out` as a constant times x, element by element; zero where x is zero."""
    return x * torch.where(x == 0, 0.0, out / torch.where(x == 0, 1.0, x)).detach()


def _activation(function: Callable[..., Tensor], x: Tensor, *args: Any, **kwargs: Any) -> Tensor:
    kwargs.pop("inplace", None)
    return _ratio(x, function(x, *args, **kwargs))


def _layer_norm(
    function: Callable[..., Tensor],
    input: Tensor,  # noqa: A002  PyTorch's own name, which callers may use
    normalized_shape: Any,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    *_: Any,
) -> Tensor:
    axes = tuple(range(-len(normalized_shape), 0))
    centred = input - input.mean(axes, keepdim=True)
    out = centred * torch.rsqrt((centred**2).mean(axes, keepdim=True) + eps).detach()
    out = out if weight is None else out * weight
    return out if bias is None else out + bias


def attention_weights(query: Tensor, key: Tensor, mask: Tensor | None, is_causal: bool, scale: float | None) -> Tensor:
    """The weights by which `scaled_dot_product_attention` multiplies the values, (..., queries, keys)."""
    scores = query @ key.transpose(-2, -1) * (1 / math.sqrt(query.shape[-1]) if scale is None else scale)
    if is_causal:
        seen = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
        scores = scores.masked_fill(~seen, -math.inf)
    if mask is not None:
        scores = scores.masked_fill(~mask, -math.inf) if mask.dtype == torch.bool else scores + mask
    return torch.softmax(scores, -1)


class LocallyLinear(TorchFunctionMode):
    """A context in which a transformer is linear around its input.

    Attributes:
        attention: if a list, the attention probabilities of every layer are appended to it, (texts, heads, tokens,
            tokens) each.
    """

    def __init__(self, attention: list[Tensor] | None = None) -> None:
        super().__init__()
        self.attention = attention
        for_softmax = (F.softmax, torch.softmax, Tensor.softmax)
        for_activation = (F.gelu, F.silu, F.relu, torch.relu, Tensor.relu, torch.tanh, Tensor.tanh)
        self._rules: dict[Any, Callable[..., Tensor]] = {
            **dict.fromkeys(for_softmax, self._softmax),
            **dict.fromkeys(for_activation, _activation),
            **dict.fromkeys((torch.rsqrt, Tensor.rsqrt), lambda function, x: function(x).detach()),
            **dict.fromkeys((F.layer_norm, torch.layer_norm), _layer_norm),
            **dict.fromkeys((F.rms_norm, torch.rms_norm), _activation),
            F.scaled_dot_product_attention: self._attend,
        }

    def __torch_function__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        rule = self._rules.get(func)
        return func(*args, **kwargs or {}) if rule is None else rule(func, *args, **kwargs or {})

    def _softmax(self, function: Callable[..., Tensor], *args: Any, **kwargs: Any) -> Tensor:
        return self._record(function(*args, **kwargs).detach())

    def _attend(
        self,
        _: Callable[..., Tensor],
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        if enable_gqa:
            groups = query.shape[-3] // key.shape[-3]
            key, value = (x.repeat_interleave(groups, -3) for x in (key, value))
        return self._record(attention_weights(query, key, attn_mask, is_causal, scale).detach()) @ value

    def _record(self, weights: Tensor) -> Tensor:
        if self.attention is not None and weights.ndim == 4 and weights.shape[-1] == weights.shape[-2]:
            self.attention.append(weights)
        return weights
