"""Rules for smooth paths: the shortest that reaches the tolerance, from values alone."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from oracles import arctan, miss_of
from pairlens import Adaptive
from pairlens.quadrature.chebyshev import Samples
from pairlens.quadrature.maps import mapped_gauss
from pairlens.quadrature.planner import first_points
from pairlens.quadrature.rules import gauss
from pairlens.quadrature.smooth import SAMPLED, SAMPLES
from plans import drive


def test_the_map_saves_nodes_on_a_sharp_turn():
    e, slope = arctan(0.5, 0.05)
    table, _ = drive(Adaptive(1e-5), e, slope)
    plain = next(n for n in range(1, 400) if miss_of(gauss(n), e, slope) <= 1e-5)
    assert len(table) < plain / 2


@given(st.floats(0.3, 0.7), st.floats(0.05, 1.0), st.sampled_from([1e-2, 1e-3, 1e-5]))
def test_a_larger_first_sampling_proposes_the_same_rule(centre, width, tol):
    e, slope = arctan(centre, width)
    near, far = (drive(Adaptive(tol), e, slope, degree=degree)[0] for degree in SAMPLES[:2])
    np.testing.assert_array_equal(near.nodes, far.nodes)


@given(st.floats(0.3, 0.7), st.floats(0.05, 1.0))
@example(0.5265835298612693, 0.05078125)
def test_norms_from_products_of_rough_values_match_norms_of_the_values(centre, width):
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
def test_a_large_constant_offset_does_not_change_the_plan(offset, size):
    e, slope = arctan(0.3, 0.05)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        table, asked = drive(
            Adaptive(1e-3), lambda a: offset + size * e(a), lambda a: size * slope(a), noise=1e-16 * (offset + size)
        )
    assert len(table) <= 12
    assert asked["values"] <= 30


@pytest.mark.parametrize("centre", [0.05, 0.95])
def test_a_path_that_moves_near_an_end_gets_a_fitted_map(centre):
    e, slope = arctan(centre, 0.004)
    table, asked = drive(Adaptive(1e-3), e, slope)
    assert miss_of(table, e, slope) <= 1e-3
    assert asked["proposals"] == 1
    usual = next(n for n in range(1, 400) if miss_of(mapped_gauss(n, SAMPLED), e, slope) <= 1e-3)
    assert len(table) < usual / 2


def test_smooth_paths_are_planned_without_derivatives():
    _, asked = drive(Adaptive(1e-3), *arctan(0.5, 0.3))
    assert asked["slopes"] == 0
    assert asked["values"] <= 9 + 33
    assert asked["proposals"] == 1


def test_a_straight_line_needs_one_node():
    table, asked = drive(Adaptive(1e-6), lambda a: np.outer(a, [1.0, 2.0]), lambda a: np.outer(np.ones_like(a), [1, 2]))
    assert len(table) == 1
    assert asked["slopes"] == 0
