"""The adaptive plan reaches what it promises, with habits and without."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oracles import arctan, miss_of
from pairlens import Adaptive, GaussLegendre
from pairlens.quadrature.chebyshev import Samples
from pairlens.quadrature.planner import HABIT, SAMPLED, SAMPLES, Ask, first_points, habit, plan
from pairlens.quadrature.rules import Table, gauss, mapped_gauss


def drive(rule, e, slope, noise=1e-15, count=SAMPLES[0], first=None, limit=0.0):
    """Hold a plan's conversation about the function e; returns the last table and how often each thing was asked."""
    talk = plan(rule, noise, e(first_points(rule, count) if first is None else np.array([0.0, 1.0])), limit, first)
    asked = {"values": 0, "slopes": 0, "proposals": 0}
    target = e(np.array([1.0]))[0] - e(np.array([0.0]))[0]
    table, question = None, next(talk)
    try:
        while True:
            if isinstance(question, Table):
                asked["proposals"] += 1
                table = question
                miss = np.linalg.norm(table.weights @ slope(table.nodes) - target) / np.linalg.norm(target)
                question = talk.send(np.array([miss]))
            else:
                assert isinstance(question, Ask)
                asked["slopes" if question.slope else "values"] += len(question.points)
                question = talk.send((slope if question.slope else e)(question.points))
    except StopIteration:
        assert table is not None
        return table, asked


@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 1.0), st.floats(0.02, 2.0), st.sampled_from([1e-3, 1e-5, 1e-8]))
def test_the_plan_reaches_its_tolerance_wherever_the_poles_are(centre, width, tol):
    e, slope = arctan(centre, width)
    table, asked = drive(Adaptive(tol), e, slope)
    assert miss_of(table, e, slope) <= tol
    assert asked["proposals"] <= 3


def test_the_map_saves_nodes_on_a_sharp_turn():
    e, slope = arctan(0.5, 0.05)
    table, _ = drive(Adaptive(1e-5), e, slope)
    plain = next(n for n in range(1, 400) if miss_of(gauss(n), e, slope) <= 1e-5)
    assert len(table) < plain / 2


@given(st.floats(0.3, 0.7), st.floats(0.05, 1.0), st.sampled_from([1e-2, 1e-3, 1e-5]))
def test_looking_further_ahead_proposes_the_same(centre, width, tol):
    e, slope = arctan(centre, width)
    near, far = (drive(Adaptive(tol), e, slope, count=count)[0] for count in SAMPLES[:2])
    np.testing.assert_array_equal(near.nodes, far.nodes)


@given(st.floats(0.3, 0.7), st.floats(0.05, 1.0))
def test_products_of_rough_values_say_what_the_values_do(centre, width):
    e, slope = arctan(centre, width)
    exact, rough = (drive(Adaptive(1e-3), e, slope, noise=noise)[0] for noise in (1e-15, 1e-7))
    assert len(exact) == len(rough)
    assert miss_of(rough, e, slope) <= 1e-3
    values = e(first_points(Adaptive(1e-3), SAMPLES[2]))
    exact, rough = (Samples.of(values, noise) for noise in (1e-15, 1e-7))
    factors = np.random.default_rng(0).normal(size=(20, len(values)))
    smooth = np.diff(np.eye(len(values)), 6, axis=0)  # sums that all but cancel
    for own in (factors, smooth):
        np.testing.assert_allclose(exact.norms(own), rough.norms(own), atol=1e-6)


@pytest.mark.parametrize(("offset", "size"), [(1e4, 1e-5), (1.0, 1e-9), (0.0, 1.0)])
def test_a_path_far_from_zero_is_planned_like_one_beside_it(offset, size):
    e, slope = arctan(0.3, 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table, asked = drive(
            Adaptive(1e-3), lambda a: offset + size * e(a), lambda a: size * slope(a), noise=1e-16 * (offset + size)
        )
    assert len(table) <= 12
    assert asked["values"] <= 30


def test_a_sampling_out_of_habit_is_begun_with():
    rule, (e, _) = Adaptive(1e-3), arctan(0.55, 0.4)
    seen, wide = (e(first_points(rule, count)) for count in SAMPLES[1:3])

    def proposal(values, begin):
        table = next(plan(rule, 1e-15, values, usual=begin))
        assert isinstance(table, Table)
        return table.nodes

    long = proposal(seen, SAMPLES[1])
    np.testing.assert_array_equal(long, proposal(wide, SAMPLES[1]))
    assert not np.array_equal(long, proposal(seen, None))


def typical(*paths, rule):
    return (arctan(*path)[0](first_points(rule, SAMPLES[1])) for path in paths)


@pytest.mark.parametrize("tol", [1e-2, 1e-3])
def test_a_habit_does_for_paths_like_those_it_comes_from(tol):
    rule = Adaptive(tol)
    known = habit(rule, 1e-15, typical((0.5, 0.5), (0.6, 0.5), (0.55, 0.6), (0.55, 0.4), rule=rule))
    assert isinstance(known, Table)
    assert len(known) <= HABIT
    e, slope = arctan(0.57, 0.5)
    table, asked = drive(rule, e, slope, first=known)
    assert table is known
    assert asked == {"values": 0, "slopes": 0, "proposals": 1}
    assert miss_of(table, e, slope) <= tol


@settings(max_examples=40, deadline=None)
@given(st.floats(0.0, 1.0), st.floats(0.02, 2.0))
def test_where_a_habit_fails_the_path_is_looked_at(centre, width):
    rule = Adaptive(1e-3)
    known = habit(rule, 1e-15, typical((0.5, 2.0), (0.5, 2.0), rule=rule))
    assert isinstance(known, Table)
    e, slope = arctan(centre, width)
    table, asked = drive(rule, e, slope, first=known)
    assert miss_of(table, e, slope) <= 1e-3
    # However inexact derivatives are: of a habit nobody knows whether its gap is theirs.
    inexact, _ = drive(rule, e, slope, first=known, limit=0.1)
    assert (inexact is known) is bool(miss_of(known, e, slope) <= 1e-3)
    assert (asked["values"] == 0) is (table is known)
    assert asked["proposals"] <= 4


def test_a_gap_that_inexact_derivatives_may_have_made_is_looked_into():
    rule, (e, _) = Adaptive(1e-3), arctan(0.55, 0.1)
    talk = plan(rule, 1e-15, e(first_points(rule)), limit=3e-3)
    question = next(talk)
    while isinstance(question, Ask):
        question = talk.send(e(question.points))
    longer = talk.send(np.array([1.4e-3]))
    assert isinstance(longer, Table)
    assert len(longer) == len(question) + 2
    assert isinstance(talk.send(np.array([1.1e-3])), Table)  # it was the rule's
    with pytest.raises(StopIteration):
        talk.send(np.array([1.05e-3]))


def test_inexact_derivatives_that_no_longer_rule_mends_end_the_plan():
    e, slope = arctan(0.55, 0.028)
    table, asked = drive(Adaptive(1e-4), e, lambda points: 1.009 * slope(points), limit=3e-2)
    assert len(table) < 100
    assert asked["slopes"] == 0


def test_all_but_the_hardest_make_a_habit_and_hard_ones_a_sampling():
    rule = Adaptive(1e-3)
    easy, hard = (0.5, 1.0), (0.5, 0.3)
    alone, both = (habit(rule, 1e-15, typical(*own, rule=rule)) for own in ([easy] * 3, [easy] * 3 + [hard]))
    assert isinstance(alone, Table)
    assert isinstance(both, Table)
    np.testing.assert_array_equal(alone.nodes, both.nodes)
    half = habit(rule, 1e-15, typical(easy, hard, hard, rule=rule))
    assert isinstance(half, Table)
    assert len(half) > len(alone)
    # One that is much harder is enough. Where all are out of its sight, the second sampling is not begun with.
    out_of_sight = (0.5, 0.02)
    assert habit(rule, 1e-15, typical(easy, easy, out_of_sight, rule=rule)) == SAMPLES[1]
    assert habit(rule, 1e-15, typical(out_of_sight, out_of_sight, rule=rule)) == SAMPLES[2]
    assert habit(rule, 1e-15, [np.ones((21, 3))] * 4) is None, "a path that goes nowhere"
    assert habit(rule, 1e-15, [np.full((21, 3), np.nan)] * 4) is None
    assert habit(GaussLegendre(3), 1e-15, typical(easy, easy, rule=rule)) is None
    assert habit(rule, 1e-15, typical(easy, rule=rule)) is None, "one path is no habit"


@pytest.mark.parametrize("centre", [0.05, 0.95])
def test_a_path_that_moves_where_no_map_expects_it_gets_its_own(centre):
    e, slope = arctan(centre, 0.004)
    table, asked = drive(Adaptive(1e-3), e, slope)
    assert miss_of(table, e, slope) <= 1e-3
    assert asked["proposals"] == 1
    usual = next(n for n in range(1, 400) if miss_of(mapped_gauss(n, SAMPLED), e, slope) <= 1e-3)
    assert len(table) < usual / 2


def test_a_straight_line_needs_one_node():
    table, asked = drive(Adaptive(1e-6), lambda a: np.outer(a, [1.0, 2.0]), lambda a: np.outer(np.ones_like(a), [1, 2]))
    assert len(table) == 1
    assert asked["slopes"] == 0


def test_smooth_paths_are_planned_without_a_single_derivative():
    _, asked = drive(Adaptive(1e-3), *arctan(0.5, 0.3))
    assert asked["slopes"] == 0
    assert asked["values"] <= 9 + 33
    assert asked["proposals"] == 1


def test_kinks_are_met_with_panels():
    corners = np.array([0.137, 0.31, 0.55, 0.72, 0.91])

    def e(a):
        return np.maximum(a[:, None] - corners, 0) ** 1.0

    def slope(a):
        return (a[:, None] > corners).astype(float)

    table, asked = drive(Adaptive(1e-4), e, slope)
    assert table.panels > 8
    assert miss_of(table, e, slope) <= 1e-4
    # Bisection homes in on the corners instead of refining everywhere.
    assert len(table) < 600
    assert asked["slopes"] < 6 * len(table)


def test_max_nodes_bounds_the_work():
    rng = np.random.default_rng(0)
    corners = rng.random(50)
    table, _ = drive(
        Adaptive(1e-9, max_nodes=60),
        lambda a: np.maximum(a[:, None] - corners, 0),
        lambda a: (a[:, None] > corners).astype(float),
    )
    assert len(table) <= 60


def test_the_drive_helper_can_fail():
    e, slope = arctan(0.5, 0.3)
    table, _ = drive(GaussLegendre(2), e, slope)
    assert miss_of(table, e, slope) > 1e-3
