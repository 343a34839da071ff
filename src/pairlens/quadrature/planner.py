"""The plan of a rule for one integrand: which node tables to propose, and which values of e to look at before.

The integrand is the derivative of a function e. Values of e are cheap (one forward pass each) and the integrand is
expensive (one tangent per unit), so values of e place the nodes: `smooth` proposes a mapped Gauss rule, and where e
has kinks `panels` cuts the path. A plan is a generator, so that its driver can answer the queries of many plans in one
batch.
"""

from __future__ import annotations

import math

import numpy as np

from pairlens.quadrature.chebyshev import chebyshev_points
from pairlens.quadrature.maps import mapped_gauss
from pairlens.quadrature.panels import NODES, panel_rule
from pairlens.quadrature.query import Plan
from pairlens.quadrature.rules import Adaptive, Rule
from pairlens.quadrature.smooth import SAMPLED, SAMPLES, smooth_rule
from pairlens.shapes import Array

STUCK = 0.8
"""If a longer rule leaves more than this share of the gap, inexact derivatives cause the gap, not the rule."""
MAX_ORDER = 96
"""The longest Gauss rule that is tried before the path is cut into panels."""


def first_points(rule: Rule, degree: int = SAMPLES[0]) -> Array:
    """Return the points of the path at which a plan needs e before it begins, both ends included.

    Args:
        rule: the rule.
        degree: one of `SAMPLES`. A larger one leads to the same proposals; it pays where waiting for values costs more
            than computing them.
    """
    return SAMPLED(chebyshev_points(degree))[0] if isinstance(rule, Adaptive) else np.array([0.0, 1.0])


def plan(rule: Rule, noise: float, seen: Array, limit: float = 0.0) -> Plan:
    """Propose tables until one reaches the rule's tolerance, or until no better one exists.

    Args:
        rule: a fixed rule proposes its own table, once.
        noise: relative rounding error of e.
        seen: e at the `first_points`, (points, dim).
        limit: relative rounding error of e's derivatives; a gap below it may not come from the rule, see `STUCK`.
    """
    if not isinstance(rule, Adaptive):
        yield rule.table()
        return
    smooth = yield from smooth_rule(rule.tol, noise, seen)
    if smooth is not None:
        (chart, order), before = smooth, math.inf
        while order <= min(MAX_ORDER, rule.max_nodes):
            gap = float((yield mapped_gauss(order, chart))[0])
            if gap <= rule.tol or STUCK * before < gap <= limit:
                return
            before = gap
            # Twice as many nodes square the error; a rule that was nearly right needs few more.
            missing = math.log(gap / rule.tol) / math.log(1 / gap) if gap < 1 else 1.0
            order = order + max(2, math.ceil(1.5 * missing * order))
        if before <= limit:
            return  # No longer rule fits, and panels of inexact derivatives are no better.
    tol = 0.8 * rule.tol
    for _ in range(3):
        table = yield from panel_rule(rule, tol, noise, seen[[0, -1]])
        gap = float((yield table)[0])
        if gap <= rule.tol or len(table) + 2 * NODES > rule.max_nodes:
            return
        tol *= rule.tol / gap / 2
