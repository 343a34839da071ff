"""A function e along a path, sampled at Chebyshev points: the norms of its Chebyshev coefficients in several maps."""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from pairlens import linalg
from pairlens.quadrature.maps import SinhMap
from pairlens.shapes import Array

ROUGH = 1e-8
"""Rounding error of e above which norms may lose half of the digits of a double."""


@functools.cache
def chebyshev_points(degree: int) -> Array:
    """Return the degree + 1 Chebyshev points on [0, 1], both ends included."""
    return (1 - np.cos(np.pi * np.arange(degree + 1) / degree)) / 2


@dataclass(frozen=True)
class Samples:
    """Values of e at points of the path.

    Attributes:
        values: the values, (points, dim).
        products: the products of the values with one another, (points, points), or None. Norms computed from them are
            cheaper and lose half of the digits of a double, so they exist only where the values are rough.
    """

    values: Array
    products: Array | None

    @classmethod
    def of(cls, values: Array, noise: float) -> Samples:
        """Return samples of values with this relative rounding error."""
        return cls(values, linalg.product(values, values.T) if noise > ROUGH else None)

    def every(self, step: int) -> Samples:
        """Return every step-th sample."""
        return Samples(self.values[::step], None if self.products is None else self.products[::step, ::step].copy())

    def scale(self, noise: float) -> tuple[float, float]:
        """Return how far e goes from the first sample to the last, and the rounding error relative to that."""
        total, size = linalg.length(self.values[-1] - self.values[0]), float(linalg.lengths(self.values).max())
        return total, noise * size / total if total > 0 else 0.0

    def moves(self) -> Array:
        """Return how far e goes from each sample to the next."""
        return linalg.lengths(self.values[1:] - self.values[:-1])

    def norms(self, factors: Array) -> Array:
        """Return the norms of weighted sums of the values; `factors` (sums, points)."""
        if self.products is None:
            return linalg.lengths(linalg.product(factors, self.values))
        squares = np.einsum("sn,sn->s", linalg.product(factors, self.products), factors)
        return np.sqrt(np.maximum(squares, 0.0))

    def coefficients(self, charts: tuple[SinhMap, ...]) -> Array:
        """Return norms of Chebyshev coefficients, (maps, degrees), from samples at points of the first map."""
        matrices = np.concatenate([_transform(len(self.values) - 1, charts[0], chart) for chart in charts])
        return self.norms(matrices).reshape(len(charts), -1)


@functools.lru_cache(maxsize=64)
def _transform(degree: int, sampled: SinhMap, chart: SinhMap) -> Array:
    """Return the matrix from values at Chebyshev points of one map to Chebyshev coefficients in another."""
    return _cosines(degree) @ _interpolation(degree, sampled.inverse(chart(chebyshev_points(degree))[0]))


@functools.cache
def _cosines(degree: int) -> Array:
    """Return the matrix from values at Chebyshev points to Chebyshev coefficients."""
    matrix = np.cos(np.pi * np.outer(np.arange(degree + 1), np.arange(degree + 1)) / degree)
    matrix[:, [0, -1]] /= 2
    matrix[[0, -1]] /= 2
    # The points run against the cosine, which flips the sign of every second coefficient but no norm.
    return 2 / degree * matrix


def _interpolation(degree: int, places: Array) -> Array:
    """Return the matrix from values at Chebyshev points to their interpolant at places (Berrut, Trefethen 2004)."""
    signs = (-1.0) ** np.arange(degree + 1)
    signs[[0, -1]] /= 2
    steps = places[:, None] - chebyshev_points(degree)
    same = np.abs(steps) < 1e-13
    shares = signs / np.where(same, 1.0, steps)
    shares /= shares.sum(1, keepdims=True)
    return np.where(same.any(1, keepdims=True), same, shares)
