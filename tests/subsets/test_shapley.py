"""Shares from the values of all subsets, against their definitions."""

from __future__ import annotations

import numpy as np
import pytest

from games import by_permutations, by_sizes, subsets
from pairlens.subsets.shares import exact


@pytest.mark.parametrize("n", [1, 2, 5])
def test_all_subsets_give_the_average_over_all_orders(n):
    tried = np.random.default_rng(n).permutation(subsets(n))
    values = np.random.default_rng(0).normal(size=(2**n, 3))
    shares = exact(tried, values)
    np.testing.assert_allclose(shares.values, by_permutations(tried, values), atol=1e-12)
    assert not shares.error.any()
    assert shares.noise is None


@pytest.mark.parametrize("near", [1, 1.5, 3])
def test_sets_near_the_whole_count_as_often_as_near_says(near):
    tried, values = subsets(5), np.random.default_rng(0).normal(size=(32, 3))
    np.testing.assert_allclose(exact(tried, values, near).values, by_sizes(tried, values, near), atol=1e-12)


def test_a_unit_that_never_changes_anything_has_no_share():
    tried = subsets(4)
    values = np.random.default_rng(0).normal(size=(16, 3))[tried @ np.array([1, 2, 4, 0])]
    for near in (1.0, 1.5, 1000.0):
        shares = exact(tried, values, near)
        np.testing.assert_allclose(shares.values[3], 0, atol=1e-15)
        np.testing.assert_allclose(shares.values.sum(0), values[-1] - values[0], atol=1e-12)


def test_the_nearest_is_leaving_one_out_and_still_adds_up():
    tried, values = subsets(5), np.random.default_rng(0).normal(size=(32, 3))
    shares = exact(tried, values, 1e6).values
    whole = values[tried.all(1)][0]
    lost = np.array([whole - values[(tried == ~np.eye(5, dtype=bool)[i]).all(1)][0] for i in range(5)])
    miss = whole - values[~tried.any(1)][0] - lost.sum(0)
    large = np.linalg.norm(lost, axis=1, keepdims=True)
    np.testing.assert_allclose(shares, lost + large / large.sum() * miss, atol=1e-4)
