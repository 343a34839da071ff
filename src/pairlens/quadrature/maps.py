"""Maps of [0, 1] onto itself that spread out the stretch where a function moves, and Gauss rules in their variable."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pairlens.quadrature.rules import NodeTable, gauss
from pairlens.shapes import Array


@dataclass(frozen=True)
class SinhMap:
    """The sinh map of Johnston and Elliott (2005) around `centre`; an infinite `width` is the identity."""

    centre: float
    width: float

    def __call__(self, t: Array) -> tuple[Array, Array]:
        """Return the mapped points and the slope of the map there."""
        if math.isinf(self.width):
            return t, np.ones_like(t)
        low, high = self._range()
        u = low + (high - low) * t
        points = np.clip(self.centre + self.width * np.sinh(u), 0.0, 1.0)
        return points, (high - low) * self.width * np.cosh(u)

    def inverse(self, points: Array) -> Array:
        """Return the places that the map takes to these points."""
        if math.isinf(self.width):
            return points
        low, high = self._range()
        return (np.arcsinh((points - self.centre) / self.width) - low) / (high - low)

    def _range(self) -> tuple[float, float]:
        """Return the arguments of sinh at both ends."""
        return math.asinh(-self.centre / self.width), math.asinh((1.0 - self.centre) / self.width)

    @classmethod
    def fit(cls, points: Array, moves: Array) -> SinhMap:
        """Return the map centred where a function is fastest.

        Args:
            points: points of [0, 1], in order.
            moves: how far the function goes from each point to the next, one fewer.
        """
        steps = points[1:] - points[:-1]
        speed = moves / steps
        if not speed.min() < 0.8 * speed.max():
            return cls(0.5, math.inf)
        fast = speed > speed.max() / 2
        excess = np.where(fast, speed - speed.max() / 2, 0.0) * steps
        middle = (points[1:] + points[:-1]) / 2
        # Half the half-width: at MiniLM's layers 0 to 5 this is within two nodes of the best width.
        return cls(float(excess @ middle / excess.sum()), max(float(steps[fast].sum()) / 4, 0.02))


def mapped_gauss(n: int, chart: SinhMap) -> NodeTable:
    """Return the n-point Gauss rule in the variable of a map."""
    table = gauss(n)
    nodes, slope = chart(table.nodes)
    return NodeTable(nodes, table.weights * slope, table.check * slope)
