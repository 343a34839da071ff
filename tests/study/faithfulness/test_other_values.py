"""Other values of the literature, on games whose values are known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from games import random_game, subsets
from judging import random_text
from pairlens.methods.banzhaf import KEEP
from pairlens.methods.sampled import Sampled
from pairlens.study.faithfulness.other_values import FaithShap, KrigedLinear, LeastSquares, Mixture, ShapleyTaylor
from pairlens.subsets import banzhaf

LINEAR = [LeastSquares(ridge=1e-12), Mixture(), KrigedLinear()]
WITH_PAIRS = [FaithShap(), ShapleyTaylor()]


@pytest.mark.parametrize("method", [*LINEAR, *WITH_PAIRS])
def test_texts_that_are_linear_in_their_units_are_recovered(method: Sampled):
    text, tried = random_text(5, 0), subsets(5)
    fit = method.fit(tried, text.embed(tried))
    empty = text.embed(~tried[-1:])[0]
    assert np.allclose(fit.reference, empty, atol=1e-4)
    assert np.allclose(fit.values[:5], text.embed(np.eye(5, dtype=bool)) - empty, atol=1e-4)
    assert np.allclose(fit.values[5:], 0, atol=1e-4)


@pytest.mark.parametrize("method", WITH_PAIRS)
def test_interactions_of_pairs_are_recovered(method: Sampled):
    text, tried = random_text(5, 0, pairs=True), subsets(5)
    fit = method.fit(tried, text.embed(tried))
    assert fit.compounds == tuple(itertools.combinations(range(5), 2))
    for (s, t), vector in zip(fit.compounds, fit.values[5:], strict=True):
        corners = np.zeros((4, 5), dtype=bool)
        corners[[0, 1], s] = corners[[0, 2], t] = True
        both, one, other, none = text.embed(corners)
        assert np.allclose(vector, both - one - other + none, atol=1e-4)


@pytest.mark.parametrize("method", [*LINEAR, *WITH_PAIRS])
@pytest.mark.parametrize(("players", "passes"), [(1, 4), (2, 4), (13, 64)])
def test_values_add_up_to_the_whole_text(method: Sampled, players: int, passes: int):
    game = random_game(players, 6, seed=0)
    tried = method.sampler(players, np.random.default_rng(0)).grow(passes)
    fit = method.fit(tried, game(tried))
    assert np.allclose(fit.reference + fit.values.sum(0), game(np.ones((1, players), dtype=bool))[0], atol=1e-5)
    assert len(fit.values) == players + len(fit.compounds)


def test_shapley_taylor_values_are_means_over_orders():
    n, tried = 4, subsets(4)
    game = random_game(n, 6, seed=1)
    fit = ShapleyTaylor().fit(tried, game(tried))
    expected = {pair: np.zeros(6) for pair in fit.compounds}
    for order in itertools.permutations(range(n)):
        for pair in expected:
            before = np.zeros(n, dtype=bool)
            before[list(order[: min(map(order.index, pair))])] = True
            corners = np.tile(before, (4, 1))
            corners[[0, 1], pair[0]] = corners[[0, 2], pair[1]] = True
            both, one, other, none = game(corners)
            expected[pair] += (both - one - other + none) / math.factorial(n)
    assert np.allclose(fit.values[n:], list(expected.values()), atol=1e-9)


def test_least_squares_with_all_subsets_is_the_banzhaf_value():
    tried = subsets(6)
    values = random_game(6, 6, seed=2)(tried)
    assert np.allclose(LeastSquares(ridge=1e-12).fit(tried, values).values, banzhaf(tried, values, KEEP).values)
