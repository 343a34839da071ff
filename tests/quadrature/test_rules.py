"""Rules are tables: their weights, their degree, their order."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from oracles import arctan, miss_of
from pairlens import Adaptive, GaussLegendre, InputError, Riemann
from pairlens.quadrature.rules import gauss


@given(st.integers(1, 60))
def test_weights_and_check_weights_sum_to_one(n):
    for table in (Riemann(n).table(), GaussLegendre(n).table()):
        assert table.weights.sum() == pytest.approx(1, abs=1e-12)
        assert table.check.sum() == pytest.approx(1, abs=1e-12)
        assert len(table.nodes) == n
        assert np.all(np.diff(table.nodes) > 0)


@given(st.integers(1, 20))
def test_gauss_is_exact_to_its_degree_and_no_further(n):
    table = gauss(n)
    degrees = np.arange(2 * n + 1)
    sums = np.array([table.weights @ table.nodes**d for d in degrees])
    assert np.allclose(sums[:-1], 1 / (degrees[:-1] + 1), atol=1e-13)
    # The next degree is wrong, by the known leading term: the check above could fail.
    assert abs(sums[-1] - 1 / (2 * n + 1)) > 1e-16 or n > 10


def test_riemann_takes_right_end_points():
    assert Riemann(4).table().nodes.tolist() == [0.25, 0.5, 0.75, 1.0]
    # The papers' code steps by a float and gets N + 1 points for some N.
    assert all(len(Riemann(n).table().nodes) == n for n in range(1, 400))


def test_riemann_is_first_order_and_gauss_is_geometric():
    e, slope = arctan(0.4, 0.5)
    misses = np.array([miss_of(Riemann(n).table(), e, slope) for n in (40, 80, 160, 320)])
    assert np.log2(misses[:-1] / misses[1:]) == pytest.approx(1, abs=0.05)
    gauss_misses = np.array([miss_of(gauss(n), e, slope) for n in (4, 8, 12, 16)])
    ratios = gauss_misses[1:] / gauss_misses[:-1]
    assert np.all(ratios < 0.05)


@pytest.mark.parametrize(
    ("make", "word"),
    [
        (lambda: Riemann(0), "at least 1"),
        (lambda: GaussLegendre(2.5), "whole number"),  # pyright: ignore[reportArgumentType]
        (lambda: Adaptive(0), "between 0 and 1"),
        (lambda: Adaptive(math.nan), "between 0 and 1"),
        (lambda: Adaptive(1e-3, max_nodes=0), "at least 1"),
    ],
)
def test_bad_rules_are_refused(make, word):
    with pytest.raises(InputError, match=word):
        make()
