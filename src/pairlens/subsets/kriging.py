"""Shapley values, and values near them, from the values of some subsets: the rest are predicted.

A unit's share is what it adds to a random set of others, averaged over the set's size. With all sizes alike that is the
Shapley value; here the chance of a size may grow with it, as a Beta(near, 1) distribution has it (Kwon and Zou 2022):
deletions from the whole text count more than words alone. Such shares do not add up by themselves; each takes a
part of what they miss in proportion to its size, so that a unit that never changes anything still has no share.

The prediction is kriging (Gaussian process regression) with the kernel exp(c - 1) + |S ∩ T| / 10, where

    c(S, T) = (|S ∩ T| + 2) / √((|S| + 2)(|T| + 2))

so sets are alike as mean-pooled bags of tokens are, each with two special tokens, or as sums of words are. The kernel
depends on three counts only, which gives the shares of a prediction in closed form.

Against exact values on STS-B sentences this takes a third of the forward passes of antithetic permutations, and half of
those of regression on paired subsets, for the same agreement (docs/faithfulness.md). How wrong the prediction still is
follows from the kernel, from how badly each subset tried is predicted by the others, and in size from two halves of the
subsets, which give two estimates. Over seeds, estimates spread around the exact values about as these errors say.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import dataclass

import numpy as np

from pairlens import linalg
from pairlens.shapes import Array

SPECIAL = 2.0
"""What every set has beside its units, in the kernel; 1 to 4 do as well."""
TREND = 0.1
"""How freely each unit may add a vector of its own besides: sums of words are then met closely, at no cost."""
ENOUGH = 5
"""Subsets a unit from which on half of them still determine the shares, so that halves tell the size of the error."""
NUGGET = 1e-3
"""The share of an embedding's variance that its neighbours say nothing about."""


@dataclass(frozen=True)
class Shares:
    """What every player contributes, (players, dim), and the errors of estimates as independent draws.

    `noise` holds weights (draws, players) and residuals (draws, dim); None where every subset was tried.
    """

    values: Array
    noise: tuple[Array, Array] | None = None

    @property
    def error(self) -> Array:
        """The standard error of each player's vector, as a norm, (players,)."""
        if self.noise is None:
            return np.zeros(len(self.values))
        weights, residuals = self.noise
        return np.sqrt((weights**2).T @ (residuals**2).sum(1))


def chances(n: int, near: float) -> Array:
    """How much a set of each size counts among the others of a player, (n,), summing to one; all alike for near = 1.

    Example:
        >>> chances(4, 1.0), chances(4, 2.0)
        (array([0.25, 0.25, 0.25, 0.25]), array([0.1, 0.2, 0.3, 0.4]))
    """
    rising = np.array([math.lgamma(size + near) - math.lgamma(size + 1) for size in range(n)])
    rising = np.exp(rising - rising.max())
    return rising / rising.sum()


def exact(subsets: Array, values: Array, near: float = 1.0) -> Shares:
    """Shares from the values of all subsets."""
    n = subsets.shape[1]
    sizes = subsets.sum(1)
    weight = chances(n, near) / np.array([math.comb(n - 1, size) for size in range(n)])
    joined = np.where(sizes > 0, weight[sizes - 1], 0.0)[:, None]
    left = np.where(sizes < n, weight[np.minimum(sizes, n - 1)], 0.0)[:, None]
    shares = np.where(subsets, joined, -left).T @ values
    return Shares(_complete(shares, sizes, values))


def kriged(subsets: Array, values: Array, near: float = 1.0) -> Shares:
    """Shares of the prediction from the values of some subsets, with their standard errors.

    The kernel says how the error is spread over units and dimensions. Its size is measured: two halves of what was
    tried give two estimates, and these must differ by what their own errors say.
    """
    shares, weights, residuals = _predict(subsets, values, near)
    if len(subsets) < ENOUGH * len(shares):
        return Shares(shares, (weights, residuals))
    one, other = (_predict(subsets[half], values[half], near) for half in _halves(subsets))
    claimed = float(_rows(one).sum() + _rows(other).sum())
    found = float(((one[0] - other[0]) ** 2).sum())
    if 0 < found < claimed:
        # Halves know less than half, so that they differ by more says little. By less: the kernel is too rough.
        weights = weights * math.sqrt(found / claimed)
    return Shares(shares, (weights, residuals))


def _rows(prediction: tuple[Array, Array, Array]) -> Array:
    """The squared error of each share, (players,)."""
    return (prediction[1] ** 2).T @ (prediction[2] ** 2).sum(1)


def _halves(subsets: Array) -> tuple[Array, Array]:
    """Two halves of complementary pairs, of every size the same number; sizes tried in full are in both."""
    sizes = subsets.sum(1)
    seen: dict[int, int] = {}
    side: dict[bytes, int] = {}
    for row, size in zip(subsets, sizes, strict=True):
        if row.tobytes() not in side:
            small = min(int(size), len(row) - int(size))
            seen[small] = seen.get(small, small) + 1  # odd sizes begin with the other half
            side[row.tobytes()] = side[(~row).tobytes()] = seen[small] % 2
    halves = np.array([side[row.tobytes()] for row in subsets])
    full = ~_partly(subsets)
    return full | (halves == 0), full | (halves == 1)


def _partly(subsets: Array) -> Array:
    """For every subset, whether others of its size were not tried."""
    sizes = subsets.sum(1)
    n = subsets.shape[1]
    counts = np.bincount(sizes, minlength=n + 1)
    return np.array([count < math.comb(n, size) for size, count in enumerate(counts)])[sizes]


def _predict(subsets: Array, values: Array, near: float) -> tuple[Array, Array, Array]:
    """Shares (players, dim) and, up to size, their errors: weights (draws, players) and residuals (draws, dim)."""
    n = subsets.shape[1]
    sizes = subsets.sum(1)
    start, ends = values[sizes == 0], np.isin(sizes, (0, n))
    member = subsets.astype(float)
    kernel = _kernel(linalg.product(member, member.T), sizes[:, None], sizes[None])
    # The two ends are met exactly, so that the shares add up.
    kernel[np.diag_indices_from(kernel)] += np.where(ends, 1e-9, NUGGET)
    inverse = linalg.inverse(kernel)
    inverse = (inverse + inverse.T) / 2
    sections, own, other = _sections(n, near)
    functional = np.where(subsets, sections[1][sizes][:, None], sections[0][sizes][:, None]).T  # (players, tried)
    duals = linalg.product(inverse, values - start)
    shares = linalg.product(functional, duals)
    # What shares miss of the whole is known exactly, so their sum is not uncertain, only its parts.
    parts = _parts(shares)
    functional = functional - np.outer(parts, functional.sum(0))
    whole = own + (n - 1) * other
    prior = own - 2 * parts * whole + parts**2 * n * whole
    # How much is left to learn of each share, for a function of size one.
    influence = linalg.product(functional, inverse)
    remaining = np.maximum(prior - np.einsum("pt,pt->p", influence, functional), 0.0)
    # How far subsets are from what all others predict, in units of the prediction's own error. Sizes that were tried in
    # full leave nothing to predict, so what happens there is no one's error; of the others, the share tried is known.
    residuals = duals / np.sqrt(np.diag(inverse))[:, None]
    partly = _partly(subsets)
    unknown = 1 - math.exp(math.log(len(values)) - n * math.log(2))
    weights = influence.T[partly]  # (tried, players)
    weights *= np.sqrt(remaining * unknown / np.maximum((weights**2).sum(0), 1e-300))
    return _complete(shares, sizes, values), weights, residuals[partly]


def _kernel(shared: Array, size: Array, other: Array) -> Array:
    return np.exp((shared + SPECIAL) / np.sqrt((size + SPECIAL) * (other + SPECIAL)) - 1) + TREND * shared


@functools.lru_cache(maxsize=256)
def _sections(n: int, near: float) -> tuple[Array, float, float]:
    """A player's share in the game S ↦ kernel(S, T), its prior variance, and its covariance with another's.

    The share depends on T's size and on whether the player is in T: (2, sizes). How many others a random S shares
    with T is hypergeometric; its far tails are left out.
    """
    log = np.array([math.lgamma(i + 1) for i in range(n + 1)])
    reach = np.arange(-math.ceil(2.5 * math.sqrt(n)) - 2, math.ceil(2.5 * math.sqrt(n)) + 3)
    size = np.arange(n)[:, None]
    often = chances(n, near)
    found = np.zeros((2, n + 1))
    for other, inside in itertools.product(range(n + 1), (0, 1)):
        rest = other - inside
        if not 0 <= rest <= n - 1:
            continue
        shared = np.round(size * rest / max(n - 1, 1)).astype(int) + reach
        ok = (shared >= 0) & (shared <= np.minimum(size, rest)) & (size - shared <= n - 1 - rest)
        j = np.where(ok, shared, np.maximum(0, size - (n - 1 - rest)))
        chance = log[rest] - log[j] - log[rest - j] + log[n - 1 - rest] - log[size - j] - log[n - 1 - rest - size + j]
        chance = np.where(ok, np.exp(chance - (log[n - 1] - log[size] - log[n - 1 - size])), 0.0)
        gain = _kernel(j + inside, size + 1, np.array(other)) - _kernel(j, size, np.array(other))
        found[inside, other] = float((often[:, None] * chance * gain).sum())
    own = often @ (found[1][1:] - found[0][:-1])
    # Of another player: it may be in the set that the player joins.
    joined = np.arange(n) / max(n - 1, 1)
    other = often @ (joined * (found[1][1:] - found[1][:-1]) + (1 - joined) * (found[0][1:] - found[0][:-1]))
    return found, float(own), float(other)


def _complete(shares: Array, sizes: Array, values: Array) -> Array:
    """The shares, each with its part of what they miss of the whole: with near = 1 a rounding error."""
    total = values[sizes == len(shares)][0] - values[sizes == 0][0]
    return shares + np.outer(_parts(shares), total - shares.sum(0))


def _parts(shares: Array) -> Array:
    """Of what the shares miss, how much each takes: as much as it is large, (players,), summing to one."""
    large = np.linalg.norm(shares, axis=1)
    return large / large.sum() if large.any() else np.full(len(large), 1 / len(large))
