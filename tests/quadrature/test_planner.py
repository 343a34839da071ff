"""The plan of the adaptive rule reaches its tolerance."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import arctan, miss_of
from pairlens import Adaptive, GaussLegendre
from pairlens.quadrature.planner import first_points, plan
from pairlens.quadrature.query import Query
from pairlens.quadrature.rules import NodeTable
from plans import drive


@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 1.0), st.floats(0.02, 2.0), st.sampled_from([1e-3, 1e-5, 1e-8]))
def test_the_plan_reaches_its_tolerance_wherever_the_poles_are(centre, width, tol):
    e, slope = arctan(centre, width)
    table, asked = drive(Adaptive(tol), e, slope)
    assert miss_of(table, e, slope) <= tol
    assert asked["proposals"] <= 3


def test_a_gap_within_the_error_of_derivatives_is_tried_with_a_longer_rule():
    rule, (e, _) = Adaptive(1e-3), arctan(0.55, 0.1)
    steps = plan(rule, 1e-15, e(first_points(rule)), limit=3e-3)
    query = next(steps)
    while isinstance(query, Query):
        query = steps.send(e(query.points))
    longer = steps.send(np.array([1.4e-3]))
    assert isinstance(longer, NodeTable)
    assert len(longer) == len(query) + 2
    assert isinstance(steps.send(np.array([1.1e-3])), NodeTable)  # it was the rule's
    with pytest.raises(StopIteration):
        steps.send(np.array([1.05e-3]))


def test_the_plan_ends_when_inexact_derivatives_cause_the_gap():
    e, slope = arctan(0.55, 0.028)
    table, asked = drive(Adaptive(1e-4), e, lambda points: 1.009 * slope(points), limit=3e-2)
    assert len(table) < 100
    assert asked["slopes"] == 0


def test_the_drive_helper_can_fail():
    e, slope = arctan(0.5, 0.3)
    table, _ = drive(GaussLegendre(2), e, slope)
    assert miss_of(table, e, slope) > 1e-3
