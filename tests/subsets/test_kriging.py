"""Shapley values predicted from the values of some subsets, and their standard errors."""

from __future__ import annotations

import numpy as np
import pytest

from games import by_permutations, random_game, sample, subsets
from pairlens.subsets.kriging import _kernel, _sections, kriged
from pairlens.subsets.shapley import exact_shapley


def test_the_closed_form_of_a_predictions_values():
    n = 6
    tried = subsets(n)
    sizes = tried.sum(1)
    shared = tried.astype(float) @ tried.T
    games = _kernel(shared, sizes[:, None], sizes[None])  # column T is the game S ↦ kernel(S, T)
    expected = by_permutations(tried, games)  # (players, T)
    sections, variance = _sections(n)
    values = np.where(tried, sections[1][sizes][:, None], sections[0][sizes][:, None]).T
    np.testing.assert_allclose(values, expected, atol=1e-12)
    np.testing.assert_allclose(np.diag(by_permutations(tried, expected.T)), variance, atol=1e-12)


def test_the_tails_that_a_long_texts_closed_form_leaves_out_are_nothing():
    # The game S ↦ 1 shares nothing, and the kernel with an empty set depends on the size alone: both are known sums.
    n = 300
    sections, *_ = _sections(n)
    whole, empty = _kernel(np.zeros(2), np.array([n, 0]), np.zeros(2, dtype=int))
    assert n * sections[0][0] == pytest.approx(float(whole - empty), rel=1e-9)


@pytest.mark.parametrize(("n", "passes"), [(9, 60), (12, 160), (30, 160), (200, 160)])
def test_a_prediction_adds_up_and_comes_close(n, passes):
    game = random_game(n, 24, seed=1)
    tried = sample(n, passes, seed=3)
    assert abs(len(tried) - passes) <= 2
    shares = kriged(tried, game(tried))
    none, every = game(np.array([[False] * n, [True] * n]))
    np.testing.assert_allclose(shares.values.sum(0), every - none, atol=1e-12)
    if n <= 12:
        truth = exact_shapley(subsets(n), game(subsets(n))).values
        assert np.linalg.norm(shares.values - truth) < 0.25 * np.linalg.norm(truth)


def test_predictions_need_fewer_passes_than_permutations():
    n, passes = 12, 96
    game = random_game(n, 24, seed=5)
    values = game(subsets(n))
    truth = exact_shapley(subsets(n), values).values
    errors: dict[str, list[float]] = {"permutations": [], "prediction": []}
    for seed in range(10):
        tried = sample(n, passes, seed)
        errors["prediction"].append(float(np.linalg.norm(kriged(tried, game(tried)).values - truth)))
        random, shares = np.random.default_rng(seed), np.zeros_like(truth)
        for _ in range(passes // n // 2):
            order = random.permutation(n)
            for antithetic in (order, order[::-1]):
                chain = np.cumsum(1 << antithetic)
                shares[antithetic] += np.diff(values[np.concatenate([[0], chain])], axis=0)
        errors["permutations"].append(float(np.linalg.norm(shares / (passes // n) - truth)))
    assert np.mean(errors["prediction"]) < 0.6 * np.mean(errors["permutations"])


@pytest.mark.parametrize(("n", "passes"), [(10, 60), (14, 160)])
def test_over_seeds_the_spread_is_what_was_claimed(n, passes):
    game = random_game(n, 24, seed=2)
    runs = [kriged(c, game(c)) for c in (sample(n, passes, seed) for seed in range(50))]
    spread = np.sqrt(np.var([run.values for run in runs], axis=0, ddof=1).sum(-1))
    claimed = np.sqrt(np.mean([run.error**2 for run in runs], axis=0))
    assert 0.8 < np.median(spread / claimed) < 1.2


def test_a_sum_of_words_is_met_and_a_planted_pair_found():
    n = 40
    vectors = np.random.default_rng(0).normal(size=(n, 5))

    def game(tried: np.ndarray) -> np.ndarray:
        both = (tried[:, 3] & tried[:, 7]).astype(float)
        return np.concatenate([tried @ vectors, 5 * both[:, None]], axis=1)

    tried = sample(n, 320, seed=0)
    shares = kriged(tried, game(tried))
    np.testing.assert_allclose(shares.values[:, :5], vectors, atol=0.1)
    assert set(np.argsort(-shares.values[:, 5])[:2]) == {3, 7}
    assert np.abs(shares.values[[3, 7], 5] - 2.5).max() < 3 * shares.error[[3, 7]].max()
