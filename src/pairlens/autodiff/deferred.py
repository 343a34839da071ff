"""Tangents that are not made yet: what comes next decides how, and whether all of them are wanted.

On processors tangents lie token by token, (n, tokens, groups, width) in memory, from attention on: what belongs to a
token, its weight in the pooling or its normalisation, then meets all groups side by side.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch
from torch import Tensor

from pairlens.autodiff.dual import Dual, Lazy, by_tokens, project


@dataclass(frozen=True)
class Projection:
    """Tangents times a weight, not yet made."""

    inner: Lazy
    weight: Tensor

    def __call__(self) -> Tensor:
        """The tangents, (n, groups, tokens, width), which are nobody else's."""
        return project(self.inner(), self.weight)


@dataclass(frozen=True)
class Scaled:
    """A projection's tangents times the slope of a function of each number, not yet made."""

    known: weakref.ref[Lazy]
    """The projection's result: gone, unless somebody else wants it too."""
    projection: Projection
    slope: Tensor

    def __call__(self) -> Tensor:
        """The tangents, (n, groups, tokens, width)."""
        known = self.known()
        return scaled(self.projection() if known is None else known(), self.slope, own=known is None)


def scaled(tangent: Tensor, slope: Tensor, *, own: bool = False) -> Tensor:
    """Tangents times what belongs to their primal; in their place where they are nobody else's."""
    return tangent.mul_(slope[:, None]) if own else tangent * slope[:, None]


@dataclass(frozen=True)
class Norm:
    """A layer normalisation: its input, that one's mean and one over its deviation, and the weight of the result."""

    primal: Tensor
    mean: Tensor
    rstd: Tensor
    weight: Tensor | None


def normalised(tangent: Tensor, norm: Norm, rest: Dual | None = None) -> Tensor:
    """The tangents of a layer normalisation; with a `rest` to be added before, they are nobody else's."""
    if rest is not None:
        tangent = _added(tangent, rest)
    axis = 2 if by_tokens(tangent) else 1
    laid = tangent.transpose(1, axis).contiguous()
    primal, mean, rstd = (
        own.unsqueeze(axis).expand(*laid.shape[:-1], -1).contiguous() for own in (norm.primal, norm.mean, norm.rstd)
    )
    # The Jacobian of x -> (x - mean) / deviation is symmetric, so PyTorch's fused backward pass multiplies by it.
    found = torch.ops.aten.native_layer_norm_backward(
        laid, primal, [laid.shape[-1]], mean, rstd, None, None, [True, False, False]
    )[0]
    if norm.weight is not None:
        found.mul_(norm.weight)
    return found.transpose(1, axis)


def _added(tangent: Tensor, rest: Dual) -> Tensor:
    """Tangents, which are nobody else's, and those of a residual."""
    if rest.axis != 1 or rest.ndim != 3:
        return tangent.add_(rest.spread().tangent)
    # Every token's own is that of one group; those in no group find a zero to add.
    n, tokens = rest.groups.labels.shape
    rows, columns = (torch.arange(count, device=tangent.device) for count in (n, tokens))
    place = (rows[:, None], rest.groups.labels, columns)
    mine = rest.tangent[:, 0] * (rest.groups.labels >= 0)[..., None]
    tangent[place] = mine.add_(tangent[place])
    return tangent


@dataclass(frozen=True)
class Ending:
    """Tangents at the end of a layer, not yet made: a projection, a residual, a normalisation, weights of the tokens.

    In the last layer nothing but their weighted sum over the tokens is wanted. All of these are linear in the tangents:
    the sum can be taken before the projection, which is then of one row instead of one for every token.
    """

    inner: Dual
    matrix: Tensor
    rest: Dual | None = None
    norm: Norm | None = None
    scale: Tensor | None = None
    sum: weakref.ref[Lazy] | None = None
    """What was normalised: gone, unless somebody else wants it too."""

    def __call__(self) -> Tensor:
        """The tangents themselves, (n, groups, tokens, width)."""
        known = None if self.sum is None else self.sum()
        tangent = project(self.inner.tangent, self.matrix) if known is None else known()
        rest = self.rest if known is None else None
        if self.norm is not None:
            tangent = normalised(tangent, self.norm, rest)
        elif rest is not None:
            tangent = _added(tangent, rest)
        return tangent if self.scale is None else tangent * self.scale[:, None]

    def pooled(self) -> Tensor:
        """Their sum over the tokens, (n, groups, width)."""
        assert self.rest is not None and self.norm is not None and self.scale is not None  # noqa: PT018
        norm = self.norm
        hat = (norm.primal - norm.mean) * norm.rstd
        share = (self.scale * norm.rstd)[..., 0]
        # A normalisation takes away what lies along its output, here seen through the projection too,
        inside, taken = _pooled(self.inner.lazy, share, hat @ self.matrix)
        beside, more = _pooled(self.rest.spread().lazy, share, hat)
        total = project(inside, self.matrix).add_(beside)
        taken = (taken + more) * (share / hat.shape[-1])[:, None]
        # and the mean, which the sum of the tokens shows as well as they do.
        total = torch.baddbmm(total - total.mean(-1, keepdim=True), taken, hat, alpha=-1)
        return total if norm.weight is None else total.mul_(norm.weight)


def _pooled(lazy: Lazy, share: Tensor, along: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens' weighted sum of tangents, and their products with a vector for every token."""
    moved = lazy().transpose(1, 2).contiguous()
    total = share[:, None] @ moved.flatten(2)
    return total.view(len(moved), *moved.shape[2:]), (along[:, :, None] @ moved.mT)[:, :, 0].mT
