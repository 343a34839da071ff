"""Shapley values from the values of some subsets; the values of the other subsets are predicted by kriging.

Kriging is Gaussian process regression. The kernel is exp(c - 1) + |S ∩ T| / 10, where

    c(S, T) = (|S ∩ T| + 2) / √((|S| + 2)(|T| + 2))

The first term measures how similar S and T are as mean-pooled bags of tokens with two special tokens each. The second
term lets every unit add a vector of its own. The kernel depends on three counts only, |S|, |T| and |S ∩ T|, so the
Shapley values of a prediction have a closed form.

On STS-B sentences, kriging reaches the same agreement with exact values as antithetic permutations with a third of
the forward passes, and as regression on paired subsets with half of them (docs/faithfulness.md).

The error of a prediction has three sources: the kernel's posterior variance, the leave-one-out residuals of the
subsets tried, and a scale that is measured by splitting the subsets into two halves and comparing the two estimates.
Over seeds, estimates spread around the exact values about as much as these errors say.
"""

from __future__ import annotations

import functools
import itertools
import math
from dataclasses import replace

import numpy as np

from pairlens import linalg
from pairlens.shapes import Array
from pairlens.subsets.fit import Fit, in_sampled_size
from pairlens.subsets.shapley import exact_shapley

SPECIAL = 2.0
"""Special tokens that the kernel counts in every subset; 1 to 4 work as well."""
TREND = 0.1
"""Weight of the kernel's linear term, which makes sums of word vectors easy to predict."""
ENOUGH = 5
"""Subsets per unit from which on half of the subsets still determine the values, so the error can be scaled."""
NUGGET = 1e-3
"""The part of an embedding's variance that its neighbours cannot predict."""


def shapley(tried: Array, values: Array) -> Fit:
    """Shapley values from the values of the subsets tried: exact where every subset was tried, else predicted.

    Args:
        tried: which players are in each subset, (tried, players), booleans; with the empty and the full one.
        values: the value of each subset, (tried, dim).
    """
    every = len(tried) == 2 ** tried.shape[1]
    return exact_shapley(tried, values) if every else kriged(tried, values)


def kriged(tried: Array, values: Array) -> Fit:
    """Shapley values of the prediction from the values of some subsets; arguments as for `shapley`.

    The kernel says how the error is distributed over units and dimensions. The scale of the error is measured: two
    halves of the subsets give two estimates, which should differ by what their own errors say.
    """
    fit = _predict(tried, values)
    if len(tried) < ENOUGH * len(fit.values):
        return fit
    one, other = (_predict(tried[half], values[half]) for half in _halves(tried))
    claimed = float((one.error**2 + other.error**2).sum())
    measured = float(((one.values - other.values) ** 2).sum())
    if fit.noise is None or not 0 < measured < claimed:
        # Half-samples are noisier than the full sample, so a large difference proves nothing: only shrink the error.
        return fit
    weights, residuals = fit.noise
    return replace(fit, noise=(weights * math.sqrt(measured / claimed), residuals))


def _halves(subsets: Array) -> tuple[Array, Array]:
    """Two masks that split the complementary pairs of every size evenly; sizes tried in full are in both halves."""
    sizes = subsets.sum(1)
    counts: dict[int, int] = {}
    half_of: dict[bytes, int] = {}
    for row, size in zip(subsets, sizes, strict=True):
        if row.tobytes() not in half_of:
            small = min(int(size), len(row) - int(size))
            counts[small] = counts.get(small, small) + 1  # odd sizes start with the other half
            half_of[row.tobytes()] = half_of[(~row).tobytes()] = counts[small] % 2
    halves = np.array([half_of[row.tobytes()] for row in subsets])
    full = ~in_sampled_size(subsets)
    return full | (halves == 0), full | (halves == 1)


def _predict(tried: Array, values: Array) -> Fit:
    """Shapley values, with errors that are right up to a common scale."""
    n = tried.shape[1]
    sizes = tried.sum(1)
    reference, ends = values[sizes == 0][0], np.isin(sizes, (0, n))
    member = tried.astype(float)
    kernel = _kernel(linalg.product(member, member.T), sizes[:, None], sizes[None])
    # The empty and the full subset are met exactly, so that the values add up.
    kernel[np.diag_indices_from(kernel)] += np.where(ends, 1e-9, NUGGET)
    inverse = linalg.inverse(kernel)
    inverse = (inverse + inverse.T) / 2
    sections, variance = _sections(n)
    functional = np.where(tried, sections[1][sizes][:, None], sections[0][sizes][:, None]).T  # (players, tried)
    duals = linalg.product(inverse, values - reference)
    shares = linalg.product(functional, duals)
    shares += (values[sizes == n][0] - reference - shares.sum(0)) / n  # rounding errors of the inverse
    # The posterior variance of each value, for a function of variance one.
    influence = linalg.product(functional, inverse)
    posterior = np.maximum(variance - np.einsum("pt,pt->p", influence, functional), 0.0)
    sampled = in_sampled_size(tried)
    # Leave-one-out residuals: without its own loss a subset's prediction lacks what the subset gave its units.
    scale = np.diag(inverse)[:, None]
    seen = np.where(ends, 0.0, np.einsum("tp,pt->t", member, influence))
    predictions = reference + linalg.product(member, shares) - seen[:, None] * duals / scale
    # Sizes that were tried in full need no prediction, so their residuals are left out; of the other subsets, the
    # fraction that was tried is known. Residuals are in units of the prediction's own standard error.
    unknown = 1 - math.exp(math.log(len(values)) - n * math.log(2))
    weights = influence.T[sampled]  # (draws, players)
    weights *= np.sqrt(posterior * unknown / np.maximum((weights**2).sum(0), 1e-300))
    return Fit(shares, reference, predictions, (weights, (duals / np.sqrt(scale))[sampled]))


def _kernel(shared: Array, size: Array, other: Array) -> Array:
    """The kernel of two subsets from the sizes of their intersection and of both."""
    return np.exp((shared + SPECIAL) / np.sqrt((size + SPECIAL) * (other + SPECIAL)) - 1) + TREND * shared


@functools.lru_cache(maxsize=256)
def _sections(n: int) -> tuple[Array, float]:
    """A player's Shapley value in the game S ↦ kernel(S, T), and its prior variance.

    The value depends on whether the player is in T and on the size of T: (2, n + 1). The number of other players that
    a random S shares with T is hypergeometric; the far tails of that distribution are left out.
    """
    log = np.array([math.lgamma(i + 1) for i in range(n + 1)])
    reach = np.arange(-math.ceil(2.5 * math.sqrt(n)) - 2, math.ceil(2.5 * math.sqrt(n)) + 3)
    size = np.arange(n)[:, None]
    sections = np.zeros((2, n + 1))
    for other, inside in itertools.product(range(n + 1), (0, 1)):
        rest = other - inside
        if not 0 <= rest <= n - 1:
            continue
        shared = np.round(size * rest / max(n - 1, 1)).astype(int) + reach
        possible = (shared >= 0) & (shared <= np.minimum(size, rest)) & (size - shared <= n - 1 - rest)
        j = np.where(possible, shared, np.maximum(0, size - (n - 1 - rest)))
        logs = log[rest] - log[j] - log[rest - j] + log[n - 1 - rest] - log[size - j] - log[n - 1 - rest - size + j]
        chance = np.where(possible, np.exp(logs - (log[n - 1] - log[size] - log[n - 1 - size])), 0.0)
        gain = _kernel(j + inside, size + 1, np.array(other)) - _kernel(j, size, np.array(other))
        sections[inside, other] = float((chance * gain).sum()) / n
    return sections, float((sections[1][1:] - sections[0][:-1]).mean())
