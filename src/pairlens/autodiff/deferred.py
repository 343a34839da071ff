"""Tangents that are computed later: the next operation decides how, and whether all of them are needed.

On CPUs, tangents behind attention are stored token by token, (n, tokens, groups, width): a factor that belongs to a
token, such as its weight in the pooling, then multiplies adjacent numbers.
"""

from __future__ import annotations

import weakref
from dataclasses import dataclass

import torch
from torch import Tensor

from pairlens.autodiff.dual import Dual, Lazy, by_tokens, project


@dataclass(frozen=True)
class Projection:
    """Tangents times a weight, not computed yet."""

    inner: Lazy
    weight: Tensor

    def __call__(self) -> Tensor:
        """Return the tangents, (n, groups, tokens, width), in memory that only the caller holds."""
        return project(self.inner(), self.weight)


@dataclass(frozen=True)
class Scaled:
    """A projection's tangents times the slope of a pointwise function, not computed yet."""

    shared: weakref.ref[Lazy]
    """The projection's tangents. Weak: freed unless another dual shares them."""
    projection: Projection
    slope: Tensor

    def __call__(self) -> Tensor:
        """Return the tangents, (n, groups, tokens, width)."""
        shared = self.shared()
        if shared is None:
            return self.projection().mul_(self.slope[:, None])
        return scaled(shared(), self.slope)


def scaled(tangent: Tensor, slope: Tensor) -> Tensor:
    """Return tangents times the slope at their primal."""
    return tangent * slope[:, None]


@dataclass(frozen=True)
class Norm:
    """A layer normalisation: its input, that input's mean and inverse standard deviation, and its weight."""

    primal: Tensor
    mean: Tensor
    rstd: Tensor
    weight: Tensor | None


def normalised(tangent: Tensor, norm: Norm, rest: Dual | None = None) -> Tensor:
    """Return the tangents of a layer normalisation.

    Args:
        tangent: the tangents of its input; overwritten where there is a `rest`.
        norm: the normalisation.
        rest: a residual that is added to the input first.
    """
    if rest is not None:
        tangent = _added(tangent, rest)
    axis = 2 if by_tokens(tangent) else 1
    laid = tangent.transpose(1, axis).contiguous()
    primal, mean, rstd = (
        part.unsqueeze(axis).expand(*laid.shape[:-1], -1).contiguous() for part in (norm.primal, norm.mean, norm.rstd)
    )
    # The Jacobian of x -> (x - mean) / deviation is symmetric, so PyTorch's fused backward pass multiplies by it.
    result = torch.ops.aten.native_layer_norm_backward(
        laid, primal, [laid.shape[-1]], mean, rstd, None, None, [True, False, False]
    )[0]
    if norm.weight is not None:
        result.mul_(norm.weight)
    return result.transpose(1, axis)


def _added(tangent: Tensor, rest: Dual) -> Tensor:
    """Add the tangents of a residual to `tangent`, in place, and return it."""
    if rest.axis != 1 or rest.ndim != 3:
        return tangent.add_(rest.spread().tangent)
    # Each token moves with one group only; a token in no group adds zero.
    n, tokens = rest.groups.labels.shape
    rows, columns = (torch.arange(count, device=tangent.device) for count in (n, tokens))
    place = (rows[:, None], rest.groups.labels, columns)
    mine = rest.tangent[:, 0] * (rest.groups.labels >= 0)[..., None]
    tangent[place] = mine.add_(tangent[place])
    return tangent


@dataclass(frozen=True)
class Ending:
    """Tangents at the end of a layer, not computed yet: projection, residual, normalisation, weights of the tokens.

    The last layer needs only their weighted sum over the tokens. All of these operations are linear in the tangents, so
    the sum is taken before the projection, which then has one row instead of one per token.
    """

    inner: Dual
    matrix: Tensor
    rest: Dual | None = None
    norm: Norm | None = None
    scale: Tensor | None = None
    shared: weakref.ref[Lazy] | None = None
    """The tangents of the normalisation's input. Weak: freed unless another dual shares them."""

    def __call__(self) -> Tensor:
        """Return the tangents, (n, groups, tokens, width)."""
        shared = None if self.shared is None else self.shared()
        tangent = project(self.inner.tangent, self.matrix) if shared is None else shared()
        rest = self.rest if shared is None else None
        if self.norm is not None:
            tangent = normalised(tangent, self.norm, rest)
        elif rest is not None:
            tangent = _added(tangent, rest)
        return tangent if self.scale is None else tangent * self.scale[:, None]

    def pooled(self) -> Tensor:
        """Return their sum over the tokens, (n, groups, width)."""
        assert self.rest is not None and self.norm is not None and self.scale is not None  # noqa: PT018
        norm = self.norm
        hat = (norm.primal - norm.mean) * norm.rstd
        share = (self.scale * norm.rstd)[..., 0]
        # A normalisation removes the component along its output; here through the projection too.
        inside, taken = _pooled(self.inner.lazy, share, hat @ self.matrix)
        beside, more = _pooled(self.rest.spread().lazy, share, hat)
        total = project(inside, self.matrix).add_(beside)
        taken = (taken + more) * (share / hat.shape[-1])[:, None]
        # It also removes the mean, which can be taken from the sum over the tokens.
        total = torch.baddbmm(total - total.mean(-1, keepdim=True), taken, hat, alpha=-1)
        return total if norm.weight is None else total.mul_(norm.weight)


def _pooled(lazy: Lazy, share: Tensor, along: Tensor) -> tuple[Tensor, Tensor]:
    """Return the weighted sum of tangents over the tokens, and their products with one vector per token."""
    moved = lazy().transpose(1, 2).contiguous()
    total = share[:, None] @ moved.flatten(2)
    return total.view(len(moved), *moved.shape[2:]), (along[:, :, None] @ moved.mT)[:, :, 0].mT
