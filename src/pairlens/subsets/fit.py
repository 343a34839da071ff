"""What every estimator of this room returns: a linear model of the embeddings of subsets."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pairlens.shapes import Array, PerUnit, Values, Vector


@dataclass(frozen=True)
class Fit:
    """A linear model of the embeddings of subsets: embedding(S) ≈ reference + Σ values of the units in S.

    Attributes:
        values: one vector per player, then one per compound, (players + compounds, dim).
        reference: the constant, (dim,); reference + values.sum(0) is the embedding of the whole text.
        predictions: for every subset tried, its embedding as predicted without having seen it, (tried, dim). Where
            all subsets were tried there is nothing left to predict: then it is the model's own value.
        noise: the errors of `values` as independent draws, weights (draws, rows) and residuals (draws, dim); None
            where every subset was tried.
        compounds: groups of players with a vector of their own, which counts if all its players stay.
        compound_predictions: as `predictions`, of a model with compounds; None where none was fitted for comparison.
    """

    values: Values
    reference: Vector
    predictions: Array
    noise: tuple[Array, Array] | None = None
    compounds: tuple[tuple[int, ...], ...] = ()
    compound_predictions: Array | None = None

    @property
    def error(self) -> PerUnit:
        """The standard error of each row of `values`, as a norm."""
        if self.noise is None:
            return np.zeros(len(self.values))
        return np.sqrt(squared_errors(*self.noise))


def squared_errors(weights: Array, residuals: Array) -> Array:
    """The squared standard error of each row, (rows,), from the draws of `Fit.noise`."""
    return (weights**2).T @ (residuals**2).sum(1)


def deletion_weights(tried: Array, keep: float) -> Array:
    """Weights that make the subsets tried stand for random deletions that keep each player with probability `keep`.

    The subsets of one size share the probability of that size; sizes that were not tried are left out.

    Args:
        tried: the subsets, (tried, players), booleans.
        keep: the probability.

    Example:
        >>> deletion_weights(np.array([[True, True], [True, False], [False, True]]), 0.5)
        array([0.33333333, 0.33333333, 0.33333333])
    """
    n = tried.shape[1]
    sizes = tried.sum(1)
    counts = np.bincount(sizes, minlength=n + 1)
    logs = np.array([_log_binomial(n, size, keep) for size in range(n + 1)])
    chances = np.exp(logs - logs[counts > 0].max())
    weights = chances[sizes] / counts[sizes]
    return weights / weights.sum()


def in_sampled_size(tried: Array) -> Array:
    """For every subset, whether subsets of its size were only sampled, not all tried, (tried,)."""
    sizes = tried.sum(1)
    n = tried.shape[1]
    counts = np.bincount(sizes, minlength=n + 1)
    return np.array([count < math.comb(n, size) for size, count in enumerate(counts)])[sizes]


def _log_binomial(n: int, size: int, keep: float) -> float:
    """The logarithm of the probability that `size` of n players stay."""
    choices = math.lgamma(n + 1) - math.lgamma(size + 1) - math.lgamma(n - size + 1)
    return choices + size * math.log(keep) + (n - size) * math.log1p(-keep)
