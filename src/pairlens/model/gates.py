"""Fading: a gate on every token removes it from attention, from pooling and from the count of positions.

A gate g in [0, 1] multiplies the weight of a token. Its logarithm is added to the attention score of that token as a
key, in every layer and for every query: 0 hides the token and 1 leaves the model unchanged. As tokens fade, later
tokens move up: a token's position vector becomes its expectation if every earlier token j is kept with probability
g_j, and a rotary model rotates by the expected position. Gates of zeros and ones are then real deletions. Biases that
depend on the distance between two tokens, and sliding windows, keep the distances of the whole text.

No class is named: attention is intercepted in the PyTorch functions that every implementation calls, and modules of
positions are recognised by their inputs and outputs.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.overrides import TorchFunctionMode

from pairlens.errors import ModelError

OTHERS = "use method='banzhaf' or method='integrated-jacobian'"
POWERS = {"close": 2, "keep": 4}
"""Gates are this power of the path's variable: they move slowly while they are small, where the embedding moves fast.

Measured by the nodes that MiniLM needs for 1e-3 on texts of 5 to 61 tokens, with powers 2, 3, 4 and 6: if positions
close up, 2 is best (27 nodes for 9 tokens, 75 for 61), as positions move along the whole path; else 4 (24 and 38).
"""
DARK = 1e-30
"""The smallest gate in attention: its logarithm is finite, so that rows that see only closed gates stay finite."""
Positions = dict[nn.Module, bool]
"""The modules that compute vectors from position numbers, and for each whether it is rotary."""


@dataclass(frozen=True)
class Gates:
    """Gates of a batch of texts of one length; 1 for tokens that do not fade.

    `values` (texts, tokens) and `logs`, their logarithms, bounded from below.
    """

    values: Tensor
    logs: Tensor

    @classmethod
    def along(cls, path: Tensor, power: float | Tensor) -> Gates:
        """Return gates that are a power of points on a path, (texts, tokens) from 0 to 1, with exact logarithms."""
        # Clamped: the derivative of the logarithm is infinite at zero, where the gate is closed anyway.
        return cls(path**power, (power * path.clamp(min=DARK).log()).clamp(min=math.log(DARK)))

    @property
    def moved(self) -> Tensor:
        """How far each token's expected position is below its own, (texts, tokens), 0 or negative."""
        return self.values.cumsum(1) - self.values - torch.arange(self.values.shape[1], device=self.values.device)

    def arrivals(self) -> Tensor:
        """Return the probability that token s is at position p, each earlier token being kept with its gate.

        A Poisson-binomial distribution for every token, (texts, tokens, positions), polynomial in the gates.
        """
        ahead = F.pad(torch.ones_like(self.values[:, :1]), (0, self.values.shape[1] - 1))
        rows = []
        for gate in self.values.split(1, dim=1):
            rows.append(ahead)
            ahead = ahead * (1 - gate) + F.pad(ahead[:, :-1], (1, 0)) * gate
        return torch.stack(rows, 1)


class Attention(TorchFunctionMode):
    """Adds the gates' logarithms to all attention scores while it is active; `calls` counts the additions.

    All attention in PyTorch is either its fused function or a softmax over scores (texts, heads, queries, keys).
    """

    def __init__(self, logs: Tensor) -> None:
        super().__init__()
        self.logs = logs
        self.calls = 0

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        kwargs = dict(kwargs or {})
        if func is F.scaled_dot_product_attention:
            args, kwargs = self._fused(args, kwargs)
        elif func in SOFTMAXES:
            args, kwargs = self._scores(args, kwargs)
        # The mode is inactive in here, so a softmax inside the function is not gated a second time.
        return func(*args, **kwargs)

    def _fused(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        query, key, mask = given["query"], given["key"], given.get("attn_mask")
        texts, tokens = self.logs.shape
        if query.shape[0] != texts or key.shape[-2] != tokens:
            return args, kwargs
        self.calls += 1
        if given.pop("is_causal", False):
            # PyTorch accepts either a mask or this flag.
            mask = torch.ones(query.shape[-2], tokens, dtype=torch.bool, device=query.device).tril()
        logs = self.logs.to(query.dtype).view(texts, *[1] * (query.ndim - 2), tokens)
        if mask is None:
            mask = logs
        elif mask.dtype == torch.bool:
            mask = torch.where(mask, logs, -torch.inf)
        else:
            mask = mask + logs
        return (), {**given, "attn_mask": mask}

    def _scores(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        scores = args[0] if args else kwargs["input"]
        dim = args[1] if len(args) > 1 else kwargs.get("dim")
        texts, tokens = self.logs.shape
        if scores.ndim != 4 or (scores.shape[0], scores.shape[-1]) != (texts, tokens) or dim not in (-1, 3):
            return args, kwargs
        self.calls += 1
        scores = scores + self.logs.to(scores.dtype)[:, None, None]
        return ((scores, *args[1:]), kwargs) if args else (args, {**kwargs, "input": scores})


SOFTMAXES = (F.softmax, torch.softmax, Tensor.softmax, torch.special.softmax)


def regular(ids: Tensor) -> Tensor:
    """Return, for every row of whole numbers, (…, tokens), whether it counts up by one."""
    return (ids[..., 1:] - ids[..., :-1] == 1).all(-1)


def _counted(values: Sequence[Any], tokens: int) -> list[Tensor]:
    """Return those of a module's arguments that are position numbers."""
    return [
        value
        for value in values
        if isinstance(value, Tensor)
        and not value.is_floating_point()
        and value.dtype != torch.bool
        and value.ndim in (1, 2)
        and value.shape[-1] == tokens
        and value.shape[:-1] in ((), (1,))
        and bool(regular(value).all())
    ]


def _turns(output: Any, tokens: int) -> bool:
    """Return whether an output is a pair of cosines and sines that rotate by a constant angle from token to token."""
    if not isinstance(output, tuple | list) or len(output) != 2:
        return False
    cos, sin = output
    if not all(isinstance(part, Tensor) and part.is_floating_point() and part.ndim == 3 for part in output):
        return False
    if cos.shape != sin.shape or cos.shape[1] != tokens:
        return False
    wave = torch.complex(cos.double(), sin.double())
    steps = wave[:, 1:] * wave[:, :-1].conj()
    return bool(steps.abs().min() > 0) and bool(torch.allclose(steps, steps[:, :1].expand_as(steps), atol=1e-4))


def find_positions(model: nn.Module, run: Callable[[], Any], tokens: int) -> Positions:
    """Return the modules that compute positions, from watching one forward pass.

    Args:
        model: the twin.
        run: a forward pass on one text.
        tokens: the number of tokens of that text, at least three.
    """
    positions: Positions = {}

    def watch(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if _counted([*args, *kwargs.values()], tokens):
            if isinstance(module, nn.Embedding):
                positions[module] = False
            elif _turns(output, tokens):
                positions[module] = True

    handles = [module.register_forward_hook(watch, with_kwargs=True) for module in model.modules()]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return positions


@contextlib.contextmanager
def closing(positions: Positions, gates: Gates) -> Iterator[None]:
    """Return a context in which tokens move up as earlier tokens fade."""
    arrivals = None if all(positions.values()) else gates.arrivals()

    def embed(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        # The vector of position p is row p of the output. If the numbers do not count up (RoBERTa gives padding tokens
        # no number of their own), tokens keep their positions.
        assert arrivals is not None
        return torch.where(regular(args[0])[..., None, None], arrivals @ output, output)

    def turn(_: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        # The output is rotated back, rather than computed at fractional positions: rotary modules allow no gradients.
        # Two neighbours give the angle per token, up to half a turn; rotary models rotate by at most one radian.
        cos, sin = output
        step = torch.atan2(
            sin[:, 1:2] * cos[:, :1] - cos[:, 1:2] * sin[:, :1], cos[:, 1:2] * cos[:, :1] + sin[:, 1:2] * sin[:, :1]
        )
        angle = gates.moved.to(cos.dtype)[..., None] * step
        back_cos, back_sin = angle.cos(), angle.sin()
        return type(output)((cos * back_cos - sin * back_sin, sin * back_cos + cos * back_sin))

    handles = [module.register_forward_hook(turn if rotary else embed) for module, rotary in positions.items()]
    try:
        yield
    finally:
        for handle in handles:
            handle.remove()


@contextlib.contextmanager
def gated(gates: Gates, positions: Positions, layers: int) -> Iterator[None]:
    """Return a context in which a twin runs with gates on its attention and on its positions.

    Args:
        gates: the gates.
        positions: the modules whose positions close up; empty to keep positions.
        layers: the number of layers of the twin.

    Raises:
        ModelError: attention did not run exactly once in every layer.
    """
    with closing(positions, gates), Attention(gates.logs) as attention:
        yield
    if attention.calls != layers:
        raise ModelError(
            f"attention cannot be gated in this model: it was met {attention.calls} times in {layers} layers, and "
            f"should be once in each; {OTHERS}."
        )
