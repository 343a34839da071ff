"""Rules for integrals over [0, 1] as data: nodes, weights, and a second set of weights that checks the first.

`Riemann` and `GaussLegendre` are tables. `Adaptive` asks for a table made for one integrand, which `planning` finds.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from pairlens.errors import InputError, whole
from pairlens.shapes import Array


@dataclass(frozen=True, eq=False)
class Table:
    """A rule ready to be used: the integral of f is close to `weights @ f(nodes)`.

    `check @ f(nodes)` is a poorer rule on the same nodes. `panels` counts the stretches it is made of.
    """

    nodes: Array
    weights: Array
    check: Array
    panels: int = 1

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True)
class Riemann:
    """n equal steps, right end points: the rule of the papers. Its gap is reported, never refused.

    Example:
        >>> Riemann(4).table().nodes
        array([0.25, 0.5 , 0.75, 1.  ])
    """

    n: int = 50

    def __post_init__(self) -> None:
        whole("Riemann's n", self.n, 1)

    def table(self) -> Table:
        """The rule's nodes and weights; the check uses every second node."""
        nodes = np.arange(1, self.n + 1) / self.n
        check = np.zeros(self.n)
        kept = nodes[::-1][::2][::-1]
        check[::-1][::2][: len(kept)] = np.diff(kept, prepend=0.0)[::-1]
        return Table(nodes, np.full(self.n, 1 / self.n), check)


@dataclass(frozen=True)
class GaussLegendre:
    """n Gauss nodes, exact for polynomials up to degree 2n - 1. Its gap is reported, never refused.

    Example:
        >>> float(GaussLegendre(3).table().weights.sum().round(12))
        1.0
    """

    n: int = 16

    def __post_init__(self) -> None:
        whole("GaussLegendre's n", self.n, 1)

    def table(self) -> Table:
        """The rule's nodes and weights."""
        return gauss(self.n)


@dataclass(frozen=True)
class Adaptive:
    """As many nodes as this text and layer need for a relative gap of at most `tol`, and not many more.

    Not reaching it within `max_nodes` raises `NotConverged`.
    """

    tol: float = 1e-3
    max_nodes: int = 20_000

    def __post_init__(self) -> None:
        tol = self.tol
        if isinstance(tol, bool) or not isinstance(tol, int | float | np.floating) or not 0 < tol < 1:
            raise InputError(f"tol must lie between 0 and 1, for example 1e-3; it is {tol!r}.")
        whole("max_nodes", self.max_nodes, 1)


Rule = Riemann | GaussLegendre | Adaptive


def check_rule(rule: object, tol: float = 1e-3) -> Rule:
    """The rule itself, or for None the adaptive one with the tolerance."""
    adaptive = Adaptive(tol)
    if rule is None:
        return adaptive
    if not isinstance(rule, Rule):
        raise InputError(f"rule is Adaptive(tol), GaussLegendre(n) or Riemann(n), not {rule!r}.")
    return rule


@functools.cache
def gauss(n: int) -> Table:
    """Gauss-Legendre on [0, 1]; the check leaves out the middle node, or is the rule itself where n = 1."""
    x, w = np.polynomial.legendre.leggauss(n)
    check = w.copy() if n == 1 else _interpolatory(x, np.arange(n) != n // 2)
    return Table((x + 1) / 2, w / 2, check / 2)


def _interpolatory(x: Array, keep: Array) -> Array:
    """Weights on [-1, 1] that are exact for all polynomials the kept nodes determine; zero on the others."""
    weights = np.zeros(len(x))
    nodes = x[keep]
    moments = np.zeros(len(nodes))
    moments[0] = 2.0
    weights[keep] = np.linalg.solve(np.polynomial.legendre.legvander(nodes, len(nodes) - 1).T, moments)
    return weights


@dataclass(frozen=True)
class SinhMap:
    """A map of [0, 1] onto itself that spreads out the stretch of `width` around `centre`; infinite: the identity."""

    centre: float
    width: float

    def __call__(self, t: Array) -> tuple[Array, Array]:
        """The mapped points and the map's slope there."""
        if math.isinf(self.width):
            return t, np.ones_like(t)
        low, high = (math.asinh((edge - self.centre) / self.width) for edge in (0.0, 1.0))
        u = low + (high - low) * t
        points = np.clip(self.centre + self.width * np.sinh(u), 0.0, 1.0)
        return points, (high - low) * self.width * np.cosh(u)

    def inverse(self, points: Array) -> Array:
        """Where on [0, 1] the map takes these points from."""
        if math.isinf(self.width):
            return points
        low, high = (math.asinh((edge - self.centre) / self.width) for edge in (0.0, 1.0))
        return (np.arcsinh((points - self.centre) / self.width) - low) / (high - low)

    @classmethod
    def fit(cls, points: Array, moves: Array) -> SinhMap:
        """The map for a function that `moves` so far from each point to the next: centred where it is fastest."""
        steps = points[1:] - points[:-1]
        speed = moves / steps
        if not speed.min() < 0.8 * speed.max():
            return cls(0.5, math.inf)
        fast = speed > speed.max() / 2
        excess = np.where(fast, speed - speed.max() / 2, 0.0) * steps
        middle = (points[1:] + points[:-1]) / 2
        # Half the half-width: measured on MiniLM's layers 0 to 5, within a node or two of the best at each.
        return cls(float(excess @ middle / excess.sum()), max(float(steps[fast].sum()) / 4, 0.02))


def mapped_gauss(n: int, chart: SinhMap) -> Table:
    """The n-point Gauss rule in the map's own variable."""
    table = gauss(n)
    nodes, slope = chart(table.nodes)
    return Table(nodes, table.weights * slope, table.check * slope)
