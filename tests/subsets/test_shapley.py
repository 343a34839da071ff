"""Shapley values from the values of all subsets, against their definition."""

from __future__ import annotations

import numpy as np
import pytest

from games import by_permutations, subsets
from pairlens.subsets.shapley import exact_shapley


@pytest.mark.parametrize("n", [1, 2, 5])
def test_all_subsets_give_the_average_over_all_orders(n):
    tried = np.random.default_rng(n).permutation(subsets(n))
    values = np.random.default_rng(0).normal(size=(2**n, 3))
    fit = exact_shapley(tried, values)
    np.testing.assert_allclose(fit.values, by_permutations(tried, values), atol=1e-12)
    assert not fit.error.any()
    assert fit.noise is None


def test_a_unit_that_never_changes_anything_has_no_value():
    tried = subsets(4)
    values = np.random.default_rng(0).normal(size=(16, 3))[tried @ np.array([1, 2, 4, 0])]
    fit = exact_shapley(tried, values)
    np.testing.assert_allclose(fit.values[3], 0, atol=1e-15)
    np.testing.assert_allclose(fit.values.sum(0), values[-1] - values[0], atol=1e-12)
    np.testing.assert_allclose(fit.predictions, fit.reference + tried @ fit.values, atol=1e-12)
