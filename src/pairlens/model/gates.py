"""How a text fades: a gate on every token takes it out of attention, out of pooling and out of the count of positions.

A gate g in [0, 1] multiplies what a token weighs. Its logarithm is added to the attention score of that token as a
key, in every layer and for every query, so that 0 hides it and 1 leaves the model as it is. As tokens fade, those
behind them move up: a token's position vector becomes its expectation where every earlier token j is kept with
probability g_j, and a rotary model turns by the expected position. Gates of zeros and ones are then real deletions,
tokens closed up. Biases of the distance between two tokens and sliding windows keep the distances of the whole text.

Nothing here names a class: attention is met where every implementation of it must pass, and modules of positions are
known by what goes in and what comes out.
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
from pairlens.model.tokenize import Text

OTHERS = "use method='shapley' or method='integrated-jacobian'"
POWERS = {"close": 2, "keep": 4}
"""Gates are this power of the path's own variable: they move slowly where they are small, and the embedding fast.

Measured by the nodes that MiniLM takes for 1e-3, on texts of 5 to 61 tokens, powers 2, 3, 4 and 6 tried: closing up,
2 is best (27 nodes for 9 tokens, 75 for 61) as positions move everywhere on the path; else 4 (24 and 38).
"""
DARK = 1e-30
"""The smallest gate in attention: its logarithm is finite, so that a row that sees only closed gates is a number."""
Positions = dict[nn.Module, bool]
"""The modules that make vectors of position numbers, and for each whether it is a rotary one."""
AVERAGING = ("mean", "mean_sqrt_len_tokens", "weightedmean")


@dataclass(frozen=True)
class Gates:
    """Gates of a batch of texts of one length; 1 for tokens that do not fade.

    `values` (texts, tokens) and `logs`, their logarithms, bounded from below.
    """

    values: Tensor
    logs: Tensor

    @classmethod
    def along(cls, path: Tensor, power: float | Tensor) -> Gates:
        """Gates that are a power of points on a path, (texts, tokens) from 0 to 1; the logarithm loses no digits."""
        # An exponent below one would be steep at zero, where the gate is as good as shut anyway.
        return cls(path**power, (power * path.clamp(min=DARK).log()).clamp(min=math.log(DARK)))

    @property
    def moved(self) -> Tensor:
        """By how much each token's expected position is less than its own, (texts, tokens), from 0 down."""
        return self.values.cumsum(1) - self.values - torch.arange(self.values.shape[1], device=self.values.device)

    def arrivals(self) -> Tensor:
        """The probability that token s stands at position p, earlier tokens kept independently with their gates.

        A Poisson-binomial distribution for every token, (texts, tokens, positions), a polynomial in the gates.
        """
        ahead = F.pad(torch.ones_like(self.values[:, :1]), (0, self.values.shape[1] - 1))
        rows = []
        for gate in self.values.split(1, dim=1):
            rows.append(ahead)
            ahead = ahead * (1 - gate) + F.pad(ahead[:, :-1], (1, 0)) * gate
        return torch.stack(rows, 1)


class Attention(TorchFunctionMode):
    """While active, adds the gates' logarithms to all attention scores; `calls` counts how often it did.

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
        # The mode is off in here, so a softmax inside the function is not met a second time.
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
            # PyTorch takes either a mask or this flag.
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
    """For every row of whole numbers, (…, tokens), whether it counts up by one."""
    return (ids[..., 1:] - ids[..., :-1] == 1).all(-1)


def _counted(values: Sequence[Any], tokens: int) -> list[Tensor]:
    """Those of a module's arguments that are position numbers of one text or several."""
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
    """Whether a module's output is a pair of cosines and sines that turn evenly from token to token."""
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
    """Watch one run for the modules that know of positions.

    Args:
        model: the twin.
        run: runs it on one text.
        tokens: how many tokens that text has, at least three.
    """
    found: Positions = {}

    def watch(module: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        if _counted([*args, *kwargs.values()], tokens):
            if isinstance(module, nn.Embedding):
                found[module] = False
            elif _turns(output, tokens):
                found[module] = True

    handles = [module.register_forward_hook(watch, with_kwargs=True) for module in model.modules()]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    return found


@contextlib.contextmanager
def closing(positions: Positions, gates: Gates) -> Iterator[None]:
    """A context in which tokens move up as those before them fade."""
    arrivals = None if all(positions.values()) else gates.arrivals()

    def embed(_: nn.Module, args: tuple[Any, ...], output: Tensor) -> Tensor:
        # Position p's vector is the output's row p. Where numbers do not count up (RoBERTa gives padding tokens none of
        # their own), tokens have nothing to move up to.
        assert arrivals is not None
        return torch.where(regular(args[0])[..., None, None], arrivals @ output, output)

    def turn(_: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        # Turned back by the distance moved, rather than called with fractions: rotary modules allow no gradients. Two
        # neighbours tell how far a token turns, up to half a turn; rotary models turn by one radian at most.
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
    """A context in which a twin of so many layers runs with gates on its attention, and on positions where given.

    Raises:
        ModelError: attention was not met once in every layer.
    """
    with closing(positions, gates), Attention(gates.logs) as attention:
        yield
    if attention.calls != layers:
        raise ModelError(
            f"attention cannot be gated in this model: it was met {attention.calls} times in {layers} layers, and "
            f"should be once in each; {OTHERS}."
        )


def check_pooling(pooling: str, modules: Sequence[nn.Module], texts: Sequence[Text]) -> None:
    """See that something is pooled of each text when its tokens have faded, so that the integral exists.

    What the rows of fading tokens attend to never makes it diverge: in a row that sees only gates, shares change with
    1/g, but the row itself is seen, and pooled, with g.

    Args:
        pooling: the pooling modes, joined by +.
        modules: the model's modules.
        texts: the texts.

    Raises:
        ModelError: says why not.
    """
    modes = pooling.split("+")
    if "max" in modes:
        raise ModelError(f"max pooling does not weigh tokens, so they cannot fade; {OTHERS}.")
    if "weightedmean" in modes and len(modes) > 1:
        raise ModelError(f"pooling by {pooling} weighs tokens in two ways, which fading cannot; {OTHERS}.")
    excluding = any(getattr(module, "include_prompt", True) is False for module in modules)
    for text in texts:
        start = text.features.get("prompt_length", 0) if excluding else 0
        kept, tokens = text.kept[start:], text.tokens[start:]
        for mode, place in (("cls", 0), ("lasttoken", -1)):
            if mode in modes and not kept[place]:
                raise ModelError(
                    f"{mode} pooling takes {tokens[place]!r} of {text.text!r:.40}, a token of the text, which "
                    f"cannot fade: the embedding would be of nothing; {OTHERS}."
                )
        if not any(kept) and any(mode in AVERAGING for mode in modes):
            raise ModelError(
                f"no special token of {text.text!r:.40} is pooled, so that nothing is left where its tokens have "
                f"faded, and the integral diverges; {OTHERS}."
            )


def pooling_weights(gates: Gates, pooling: str, closing_up: bool) -> Tensor:
    """What stands in for the attention mask in pooling, (texts, tokens)."""
    if pooling != "weightedmean":
        return gates.values
    # Pooling multiplies by a token's number, from 1; that moves up too. Only ratios count, and below 1 no gate looks
    # like the first token after padding.
    numbers = torch.arange(1, gates.values.shape[1] + 1, device=gates.values.device)
    return gates.values * ((numbers + gates.moved) / numbers if closing_up else 1) / 2
