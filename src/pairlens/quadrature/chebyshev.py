"""A function e along a path by its values at Chebyshev's points: how its coefficients fall off, in several maps."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from pairlens import linalg
from pairlens.quadrature.rules import SinhMap
from pairlens.shapes import Array

ROUGH = 1e-8
"""Where e's rounding error is larger, norms may lose half of the digits of a double."""


@functools.cache
def points(count: int) -> Array:
    """So many steps of Chebyshev's points on [0, 1], both ends among them."""
    return (1 - np.cos(np.pi * np.arange(count + 1) / count)) / 2


@dataclass(frozen=True)
class Samples:
    """What a plan looks at: norms of sums of e's values at points of the path, (points, dim).

    `products`: those of the values with one another, (points, points), where the values are rough anyway: norms come
    from them then, which loses half of the digits of a double and costs less. None elsewhere.
    """

    values: Array
    products: Array | None

    @classmethod
    def of(cls, values: Array, noise: float) -> Samples:
        """Samples with a relative rounding error."""
        return cls(values, linalg.product(values, values.T) if noise > ROUGH else None)

    def every(self, step: int) -> Samples:
        """One of so many."""
        return Samples(self.values[::step], None if self.products is None else self.products[::step, ::step].copy())

    def scale(self, noise: float) -> tuple[float, float]:
        """How far e goes, and the part of that which is rounding error."""
        total, size = linalg.length(self.values[-1] - self.values[0]), float(linalg.lengths(self.values).max())
        return total, noise * size / total if total > 0 else 0.0

    def moves(self) -> Array:
        """How far e goes from each to the next."""
        return linalg.lengths(self.values[1:] - self.values[:-1])

    def norms(self, factors: Array) -> Array:
        """The norms of sums, each with its factors, (sums, points)."""
        if self.products is None:
            return linalg.lengths(linalg.product(factors, self.values))
        squares = np.einsum("sn,sn->s", linalg.product(factors, self.products), factors)
        return np.sqrt(np.maximum(squares, 0.0))

    def coefficients(self, charts: tuple[SinhMap, ...]) -> Array:
        """Norms of Chebyshev coefficients in maps, (maps, degrees), from samples at `points` of the first."""
        every = np.concatenate([_cosines(len(self.values) - 1, charts[0], chart) for chart in charts])
        return self.norms(every).reshape(len(charts), -1)


@functools.lru_cache(maxsize=64)
def _cosines(count: int, sampled: SinhMap, chart: SinhMap) -> Array:
    """The matrix from values at `points` of one map to Chebyshev coefficients in another."""
    return _cosine(count) @ _interpolation(count, sampled.inverse(chart(points(count))[0]))


@functools.cache
def _cosine(count: int) -> Array:
    """The matrix from values at `points` to Chebyshev coefficients."""
    every = np.cos(np.pi * np.outer(np.arange(count + 1), np.arange(count + 1)) / count)
    every[:, [0, -1]] /= 2
    every[[0, -1]] /= 2
    # The points run against the cosine, which turns the sign of every second coefficient; norms do not see it.
    return 2 / count * every


def _interpolation(count: int, places: Array) -> Array:
    """The matrix from values at `points` to their interpolant's at other places (Berrut, Trefethen 2004)."""
    signs = (-1.0) ** np.arange(count + 1)
    signs[[0, -1]] /= 2
    steps = places[:, None] - points(count)
    same = np.abs(steps) < 1e-13
    shares = signs / np.where(same, 1.0, steps)
    shares /= shares.sum(1, keepdims=True)
    return np.where(same.any(1, keepdims=True), same, shares)
