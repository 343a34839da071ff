"""Tensors with many tangents: one run of a model gives its derivatives in the direction of every group of tokens.

A `Dual` takes the place of a tensor in a model. It holds the tensor and one tangent per group. PyTorch passes each
operation to a rule (`__torch_function__`), which computes the new tangents. An operation without a rule uses PyTorch's
forward mode, so any model runs.

The tangents start local: the tangent of group s is zero on the tokens of all other groups. While operations treat every
token separately, one tensor holds the tangents of all groups: each group's tangent is its own rows of that tensor. So
the first projections of the first layer cost one pass instead of one per group. Its attention, which mixes the tokens,
is computed from the columns of each group.
"""

from __future__ import annotations

import contextlib
import functools
import operator
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.func import jvp, vmap
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from pairlens.linalg import linear
from pairlens.shapes import Array

RULES: dict[Any, Callable[..., Any]] = {}
"""The rule of each operation (`operations.py`); all other operations use `by_forward_mode`."""


class Unruled(Exception):
    """An operation that dual numbers cannot differentiate, such as one that writes into its argument."""


@dataclass(frozen=True)
class Groups:
    """Which tokens belong together.

    Attributes:
        labels: the group of each token, -1 for none, (texts, tokens).
        members: the tokens of each group, (texts, groups, size).
        valid: 1.0 for a member, 0.0 where a group has fewer members, (texts, groups, size).
    """

    labels: Tensor
    members: Tensor
    valid: Tensor

    @classmethod
    def of(cls, labels: Tensor, count: int, dtype: torch.dtype) -> Groups:
        """Return the groups 0 to `count` - 1 from the labels of the tokens, (texts, tokens)."""
        host = labels.cpu()
        mine = host[:, None, :] == torch.arange(count)[None, :, None]
        size = max(1, int(mine.sum(-1).max())) if mine.numel() else 1
        # Members come first, in order; the rest of the row is not valid.
        order = torch.argsort(~mine, dim=-1, stable=True)[..., :size]
        return cls(labels, order.to(labels.device), mine.gather(-1, order).to(labels.device, dtype))

    @classmethod
    def cached(cls, labels: Array, count: int, dtype: torch.dtype, device: torch.device) -> Groups:
        """Return the groups of labels on the host, (texts, tokens), cached on the device for texts of one length."""
        return _cached(labels.astype(np.int64).tobytes(), labels.shape, count, dtype, device)

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """The three tensors that define the groups."""
        return self.labels, self.members, self.valid

    def __len__(self) -> int:
        return self.members.shape[1]

    def of_rows(self, rows: Tensor) -> Groups:
        """Return the groups of these texts, in this order."""
        return Groups(self.labels[rows], self.members[rows], self.valid[rows])

    def part(self, span: slice) -> Groups:
        """Return some of the groups."""
        labels = self.labels - span.start
        inside = (labels >= 0) & (labels < span.stop - span.start)
        return Groups(torch.where(inside, labels, -1), self.members[:, span], self.valid[:, span])

    def mask(self, dtype: torch.dtype) -> Tensor:
        """Return 1 where a token is in a group, else 0, (texts, groups, tokens)."""
        return (self.labels[:, None] == torch.arange(len(self), device=self.labels.device)[:, None]).to(dtype)


@functools.lru_cache(maxsize=64)
def _cached(labels: bytes, shape: tuple[int, ...], count: int, dtype: torch.dtype, device: torch.device) -> Groups:
    with torch.inference_mode(False):
        host = Groups.of(torch.frombuffer(bytearray(labels), dtype=torch.long).view(shape), count, dtype)
        return Groups(*(tensor.to(device) for tensor in host.tensors))


class Lazy:
    """Tangents that are computed when they are first read. Some are never read; several duals may share one."""

    def __init__(self, made: Tensor | Callable[[], Tensor]) -> None:
        self.made = made

    def __call__(self) -> Tensor:
        """Return the tangents."""
        if not isinstance(self.made, Tensor):
            self.made = self.made()
        return self.made


class Dual(Tensor):
    """A tensor (n, …) with tangents (n, groups, …); while local, these are (n, 1, …), and tokens are on `axis`."""

    primal: Tensor
    lazy: Lazy
    groups: Groups
    axis: int | None

    @staticmethod
    def __new__(  # noqa: D102
        cls: Any, primal: Tensor, tangent: Tensor | Lazy | Callable[[], Tensor], groups: Groups, axis: int | None = None
    ) -> Dual:
        made = Tensor._make_wrapper_subclass(cls, primal.shape, dtype=primal.dtype, device=primal.device)
        made.primal, made.groups, made.axis = primal, groups, axis
        made.lazy = tangent if isinstance(tangent, Lazy) else Lazy(tangent)
        return made

    @property
    def tangent(self) -> Tensor:
        """The tangents."""
        return self.lazy()

    def now(self) -> Dual:
        """Return a copy that later writes into this dual do not change."""
        return self.like(self.primal, self.lazy, self.axis)

    def __repr__(self, **_: Any) -> str:
        return f"Dual({tuple(self.primal.shape)}, {len(self.groups)} tangents{'' if self.axis is None else ', local'})"

    def like(self, primal: Tensor, tangent: Tensor | Lazy | Callable[[], Tensor], axis: int | None = None) -> Dual:
        """Return another dual with the same groups."""
        return Dual(primal, tangent, self.groups, axis)

    def spread(self) -> Dual:
        """Return the same dual with one full tangent per group."""
        if self.axis is None:
            return self
        mask = self.groups.mask(self.primal.dtype)
        shape = [*mask.shape[:2], *[1] * (self.primal.ndim - 1)]
        shape[self.axis + 1] = mask.shape[2]
        return self.like(self.primal, self.tangent * mask.view(shape))

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        rule = RULES.get(func, by_forward_mode)
        return rule(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise Unruled(f"{func} met tangents where no rule could see it.")


# Models and rules read these some seventy times per layer; a property avoids the call of `__torch_function__`.
for name in ("ndim", "shape", "dtype", "device"):
    setattr(Dual, name, property(operator.attrgetter(f"primal.{name}")))

LIMITS = {"highest": 0.0, "high": 3e-3, "bf16": 3e-2}
"""Precisions of tangent products, and the relative error that each may cause in a sum of tangents.

Measured on an H200: MiniLM's layers 5 and 0 lose 0.6e-4 and 1.5e-4 of their gap to TF32 at tol 1e-3, a random model of
12 layers x 768 with large weights 1.2e-3, and 9e-3 to bf16.
"""
PRECISIONS = tuple(LIMITS)
_policy = ["highest"]


@contextlib.contextmanager
def precision(policy: str) -> Iterator[None]:
    """Return a context that sets the precision of tangent products; products of primals are always exact.

    "highest": as the dtype says. "high": 11 bits (TF32) on CUDA devices, elsewhere as the dtype says. "bf16": 8 bits
    for the products of layers, attention as for "high".
    """
    _policy.append(policy)
    try:
        yield
    finally:
        _policy.pop()


@contextlib.contextmanager
def narrow(tensor: Tensor) -> Iterator[None]:
    """Return a context in which products of tangents use TF32, if the precision and the device allow it."""
    if _policy[-1] == "highest" or not tensor.is_cuda:
        yield
        return
    settings: Any = torch.backends.cuda.matmul
    name, value = ("fp32_precision", "tf32") if hasattr(settings, "fp32_precision") else ("allow_tf32", True)
    before = getattr(settings, name)
    setattr(settings, name, value)
    try:
        yield
    finally:
        setattr(settings, name, before)


def project(tangent: Tensor, weight: Tensor) -> Tensor:
    """Return tangents times a weight, in the precision that is set."""
    if _policy[-1] == "bf16" and tangent.dtype == torch.float32:
        return F.linear(tangent.bfloat16(), weight.bfloat16()).float()
    with narrow(tangent):
        if by_tokens(tangent):
            return linear(tangent.transpose(1, 2), weight).transpose(1, 2)
        return linear(tangent, weight)


def by_tokens(tangent: Tensor) -> bool:
    """Return whether tangents (n, groups, tokens, width) are stored as (n, tokens, groups, width)."""
    return tangent.ndim == 4 and not tangent.is_contiguous() and tangent.transpose(1, 2).is_contiguous()


def bare(value: Any) -> Any:
    """Return a value without its tangents."""
    return value.primal if isinstance(value, Dual) else value


def by_forward_mode(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Apply one operation to duals by PyTorch's forward mode."""
    plain = func(*tree_map(bare, args), **tree_map(bare, kwargs))
    leaves, shape = tree_flatten(plain)
    moving = [isinstance(leaf, Tensor) and leaf.is_floating_point() for leaf in leaves]
    if not any(moving):
        return plain
    name = getattr(func, "__name__", "")
    if (name.endswith("_") and not name.endswith("__")) or name == "__setitem__" or kwargs.get("out") is not None:
        raise Unruled(f"{name} writes into its argument.")
    inputs, form = tree_flatten((args, kwargs))
    places = [i for i, value in enumerate(inputs) if isinstance(value, Dual)]
    duals = [inputs[i].spread() for i in places]
    if any(leaf.ndim == 0 for leaf, moves in zip(leaves, moving, strict=True) if moves):
        raise Unruled(f"{name} gives a single number.")

    def run(*primals: Tensor) -> tuple[Tensor, ...]:
        filled = list(inputs)
        for place, primal in zip(places, primals, strict=True):
            filled[place] = primal
        plain_args, plain_kwargs = tree_unflatten(filled, form)
        results = tree_flatten(func(*plain_args, **plain_kwargs))[0]
        return tuple(leaf for leaf, moves in zip(results, moving, strict=True) if moves)

    def along(*tangents: Tensor) -> tuple[Tensor, ...]:
        return jvp(run, tuple(dual.primal for dual in duals), tangents)[1]

    tangents = iter(vmap(along, in_dims=1, out_dims=1)(*[dual.tangent for dual in duals]))
    made = [duals[0].like(leaf, next(tangents)) if moves else leaf for leaf, moves in zip(leaves, moving, strict=True)]
    return tree_unflatten(made, shape)
