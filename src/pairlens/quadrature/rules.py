"""Quadrature rules on [0, 1] as data: nodes, weights, and a second set of weights that checks the first.

`Riemann` and `GaussLegendre` are fixed tables. For `Adaptive`, `planner` finds a table for each integrand.
"""

from __future__ import annotations

import functools
from dataclasses import dataclass

import numpy as np

from pairlens.errors import InputError, whole
from pairlens.shapes import Array


@dataclass(frozen=True, eq=False)
class NodeTable:
    """A rule ready to be used: the integral of f is about `weights @ f(nodes)`.

    Attributes:
        nodes: the nodes, (nodes,).
        weights: the weights, (nodes,).
        check: the weights of a less exact rule on the same nodes, (nodes,).
        panels: how many panels the rule consists of.
    """

    nodes: Array
    weights: Array
    check: Array
    panels: int = 1

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True)
class Riemann:
    """The rule of the papers: n equal steps, right end points. Its gap is reported, never refused.

    Example:
        >>> Riemann(4).table().nodes
        array([0.25, 0.5 , 0.75, 1.  ])
    """

    n: int = 50

    def __post_init__(self) -> None:
        whole("Riemann's n", self.n, 1)

    def table(self) -> NodeTable:
        """Return the nodes and weights; the check uses every second node."""
        nodes = np.arange(1, self.n + 1) / self.n
        check = np.zeros(self.n)
        kept = nodes[::-1][::2][::-1]
        check[::-1][::2][: len(kept)] = np.diff(kept, prepend=0.0)[::-1]
        return NodeTable(nodes, np.full(self.n, 1 / self.n), check)


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

    def table(self) -> NodeTable:
        """Return the nodes and weights."""
        return gauss(self.n)


@dataclass(frozen=True)
class Adaptive:
    """As many nodes as this text and layer need for a relative gap of at most `tol`, and not many more.

    Missing `tol` with `max_nodes` nodes raises `NotConverged`.
    """

    tol: float = 1e-3
    max_nodes: int = 20_000

    def __post_init__(self) -> None:
        tol = self.tol
        if isinstance(tol, bool) or not isinstance(tol, int | float | np.floating) or not 0 < tol < 1:
            raise InputError(f"tol must lie between 0 and 1, for example 1e-3; it is {tol!r}.")
        whole("max_nodes", self.max_nodes, 1)


Rule = Riemann | GaussLegendre | Adaptive


def check_rule(rule: object, tol: float | None = None) -> Rule:
    """Return the rule itself, or for None the adaptive one with the tolerance or its default."""
    adaptive = Adaptive() if tol is None else Adaptive(tol)
    if rule is None:
        return adaptive
    if tol is not None:
        raise InputError(f"rule={rule!r} beside tol={tol!r}: a rule has its own tolerance. Use rule=Adaptive({tol!r}).")
    if not isinstance(rule, Rule):
        raise InputError(f"rule is Adaptive(tol), GaussLegendre(n) or Riemann(n), not {rule!r}.")
    return rule


@functools.cache
def gauss(n: int) -> NodeTable:
    """Return the Gauss-Legendre rule on [0, 1]; its check leaves out the middle node, and for n = 1 is the rule."""
    x, w = np.polynomial.legendre.leggauss(n)
    check = w.copy() if n == 1 else _interpolatory(x, np.arange(n) != n // 2)
    return NodeTable((x + 1) / 2, w / 2, check / 2)


def _interpolatory(x: Array, keep: Array) -> Array:
    """Return weights on [-1, 1], exact for all polynomials that the kept nodes determine; zero on the other nodes."""
    weights = np.zeros(len(x))
    nodes = x[keep]
    moments = np.zeros(len(nodes))
    moments[0] = 2.0
    weights[keep] = np.linalg.solve(np.polynomial.legendre.legvander(nodes, len(nodes) - 1).T, moments)
    return weights
