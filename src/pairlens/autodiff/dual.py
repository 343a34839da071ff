"""Numbers with many tangents: one run of a model gives its derivatives in the direction of every group of tokens.

A `Dual` stands where a model expects a tensor. It holds the tensor, and beside it one tangent for every group. PyTorch
hands each operation to the rules here (`__torch_function__`), which say what becomes of the tangents; what has no rule
goes through PyTorch's own forward mode, operation by operation, so any model can be run.

The tangents start local: that of group s is zero on the tokens of all other groups. As long as an operation treats
every token by itself, one tangent then stands for all of them, each group's being its own rows of it. So the first
projections of the first layer cost one pass instead of one per group, and its attention, which mixes the tokens, is
put together from the groups' own columns.
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

from pairlens.shapes import Array

RULES: dict[Any, Callable[..., Any]] = {}
"""What is known of operations by name, see `rules`; all others go through `by_forward_mode`."""


class Unruled(Exception):
    """An operation that cannot be taken apart, such as one that writes into its argument."""


@dataclass(frozen=True)
class Groups:
    """Which tokens belong together.

    `labels` (texts, tokens), -1 for tokens in no group; `members` (texts, groups, size), the tokens of every group,
    and `valid` of the same shape, 0.0 where a group has fewer.
    """

    labels: Tensor
    members: Tensor
    valid: Tensor

    @classmethod
    def of(cls, labels: Tensor, count: int, dtype: torch.dtype) -> Groups:
        """The groups 0 to `count` - 1 by the tokens' labels, (texts, tokens)."""
        host = labels.cpu()
        mine = host[:, None, :] == torch.arange(count)[None, :, None]
        size = max(1, int(mine.sum(-1).max())) if mine.numel() else 1
        # Members first, in order; what is left of the row is not valid.
        order = torch.argsort(~mine, dim=-1, stable=True)[..., :size]
        return cls(labels, order.to(labels.device), mine.gather(-1, order).to(labels.device, dtype))

    @classmethod
    def cached(cls, labels: Array, count: int, dtype: torch.dtype, device: torch.device) -> Groups:
        """As `of` for labels on the host, (texts, tokens), cached on the device: texts of one length share them."""
        return _cached(labels.astype(np.int64).tobytes(), labels.shape, count, dtype, device)

    @property
    def tensors(self) -> tuple[Tensor, Tensor, Tensor]:
        """The arguments that make these groups."""
        return self.labels, self.members, self.valid

    def __len__(self) -> int:
        return self.members.shape[1]

    def of_rows(self, rows: Tensor) -> Groups:
        """The groups of these texts, in this order."""
        return Groups(self.labels[rows], self.members[rows], self.valid[rows])

    def part(self, span: slice) -> Groups:
        """Some of the groups."""
        labels = self.labels - span.start
        inside = (labels >= 0) & (labels < span.stop - span.start)
        return Groups(torch.where(inside, labels, -1), self.members[:, span], self.valid[:, span])

    def mask(self, dtype: torch.dtype) -> Tensor:
        """1 where a token is of a group, (texts, groups, tokens)."""
        return (self.labels[:, None] == torch.arange(len(self), device=self.labels.device)[:, None]).to(dtype)


@functools.lru_cache(maxsize=64)
def _cached(labels: bytes, shape: tuple[int, ...], count: int, dtype: torch.dtype, device: torch.device) -> Groups:
    with torch.inference_mode(False):
        host = Groups.of(torch.frombuffer(bytearray(labels), dtype=torch.long).view(shape), count, dtype)
        return Groups(*(tensor.to(device) for tensor in host.tensors))


class Lazy:
    """Tangents that are made when they are first asked for, as some never are. Duals may share one."""

    def __init__(self, made: Tensor | Callable[[], Tensor]) -> None:
        self.made = made

    def __call__(self) -> Tensor:
        """The tangents."""
        if not isinstance(self.made, Tensor):
            self.made = self.made()
        return self.made


class Dual(Tensor):
    """A tensor (n, …) with tangents (n, groups, …); or, while local, (n, 1, …), and `axis` is where its tokens are."""

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
        """The same, whatever is written into this one later."""
        return self.like(self.primal, self.lazy, self.axis)

    def __repr__(self, **_: Any) -> str:
        return f"Dual({tuple(self.primal.shape)}, {len(self.groups)} tangents{'' if self.axis is None else ', local'})"

    def like(self, primal: Tensor, tangent: Tensor | Lazy | Callable[[], Tensor], axis: int | None = None) -> Dual:
        """Another one of the same groups."""
        return Dual(primal, tangent, self.groups, axis)

    def spread(self) -> Dual:
        """The same with every group's tangent written out."""
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


# What models and rules ask most, some seventy times a layer: without the way through `__torch_function__`.
for name in ("ndim", "shape", "dtype", "device"):
    setattr(Dual, name, property(operator.attrgetter(f"primal.{name}")))

LIMITS = {"highest": 0.0, "high": 3e-3, "bf16": 3e-2}
"""Ways to multiply tangents, and how far off, relatively, their sums may be for it.

Measured on an H200: MiniLM's layers 5 and 0 lose 0.6e-4 and 1.5e-4 of their gap to TF32 at tol 1e-3, a random model of
12 layers x 768 with large weights 1.2e-3, and 9e-3 to bf16.
"""
PRECISIONS = tuple(LIMITS)
_policy = ["highest"]


@contextlib.contextmanager
def precision(policy: str) -> Iterator[None]:
    """A context in which tangents are multiplied so exactly; primals always are in full.

    "highest": as the dtype says. "high": on CUDA devices with the 11 bits of TF32, elsewhere in full. "bf16": the
    layers' own products with 8 bits, attention as for "high".
    """
    _policy.append(policy)
    try:
        yield
    finally:
        _policy.pop()


@contextlib.contextmanager
def narrow(tensor: Tensor) -> Iterator[None]:
    """A context in which a product of tangents may be less exact, if the policy says so."""
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
    """Tangents times a weight, as exactly as the policy says."""
    if _policy[-1] == "bf16" and tangent.dtype == torch.float32:
        return F.linear(tangent.bfloat16(), weight.bfloat16()).float()
    with narrow(tangent):
        if by_tokens(tangent):
            return F.linear(tangent.transpose(1, 2), weight).transpose(1, 2)
        return F.linear(tangent, weight)


def by_tokens(tangent: Tensor) -> bool:
    """Whether tangents (n, groups, tokens, width) lie as (n, tokens, groups, width) in memory."""
    return tangent.ndim == 4 and not tangent.is_contiguous() and tangent.transpose(1, 2).is_contiguous()


def bare(value: Any) -> Any:
    """A value without its tangents."""
    return value.primal if isinstance(value, Dual) else value


def by_forward_mode(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """PyTorch's own forward mode for one operation."""
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
        own_args, own_kwargs = tree_unflatten(filled, form)
        found = tree_flatten(func(*own_args, **own_kwargs))[0]
        return tuple(leaf for leaf, moves in zip(found, moving, strict=True) if moves)

    def along(*tangents: Tensor) -> tuple[Tensor, ...]:
        return jvp(run, tuple(dual.primal for dual in duals), tangents)[1]

    tangents = iter(vmap(along, in_dims=1, out_dims=1)(*[dual.tangent for dual in duals]))
    made = [duals[0].like(leaf, next(tangents)) if moves else leaf for leaf, moves in zip(leaves, moving, strict=True)]
    return tree_unflatten(made, shape)
