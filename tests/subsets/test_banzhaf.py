"""The linear model that predicts random deletions best, against its definition."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from games import random_game, subsets
from pairlens.methods.banzhaf import Banzhaf
from pairlens.subsets import banzhaf, deletion_weights
from pairlens.subsets.banzhaf import INTERACTIONS, MOST_PLAYERS, NUGGETS

KEEP = 0.8


def by_least_squares(tried: np.ndarray, values: np.ndarray, keep: float, pairs=()) -> np.ndarray:
    """The definition: weighted least squares over all subsets, through the whole text."""
    n = tried.shape[1]
    present = [tried[:, i] for i in range(n)] + [tried[:, list(pair)].all(1) for pair in pairs]
    chances = keep ** tried.sum(1) * (1 - keep) ** (n - tried.sum(1))
    whole = values[tried.all(1)]
    missing = 1.0 - np.array(present, dtype=float).T
    root = np.sqrt(chances)[:, None]
    return np.linalg.lstsq(root * missing, root * (whole - values), rcond=None)[0]


def drawn(n: int, passes: int, seed: int = 0) -> np.ndarray:
    return Banzhaf(keep=KEEP).sampler(n, np.random.default_rng(seed)).grow(passes)


@pytest.mark.parametrize("keep", [0.3, 0.8, 0.95])
@pytest.mark.parametrize("n", [1, 2, 6])
def test_all_subsets_give_the_least_squares_fit(n, keep):
    tried = np.random.default_rng(n).permutation(subsets(n))
    values = np.random.default_rng(0).normal(size=(2**n, 3))
    fit = banzhaf(tried, values, keep)
    np.testing.assert_allclose(fit.values, by_least_squares(tried, values, keep), atol=1e-9)
    np.testing.assert_allclose(fit.reference + fit.values.sum(0), values[tried.all(1)][0], atol=1e-12)
    np.testing.assert_allclose(fit.predictions, fit.reference + tried @ fit.values, atol=1e-9)
    assert fit.noise is None
    assert not fit.error.any()


def test_compounds_have_the_vectors_of_the_least_squares_fit():
    n = 5
    tried, values = subsets(n), np.random.default_rng(0).normal(size=(2**n, 3))
    fit = banzhaf(tried, values, KEEP, compounds=4)
    assert len(fit.compounds) == 4
    np.testing.assert_allclose(fit.values, by_least_squares(tried, values, KEEP, fit.compounds), atol=1e-9)
    np.testing.assert_allclose(fit.reference + fit.values.sum(0), values[tried.all(1)][0], atol=1e-12)


def test_the_prediction_of_untried_sets_has_the_projection_of_its_closed_form():
    # The closed form integrates the posterior mean over all sets; here it is summed over them, one by one.
    n = 7
    game = random_game(n, 4, seed=3)
    tried = drawn(n, 30)
    values = game(tried)
    every = subsets(n)
    whole = game(np.ones((1, n), dtype=bool))
    deleted, all_deleted = (~tried).astype(float), (~every).astype(float)

    def kernel(a, b, i):
        return ((1 + i) ** (a @ b.T) - 1) / i + 1e4 * (a @ b.T)

    losses = whole - values
    weights = deletion_weights(tried, KEEP)

    def held_out_error(i, nugget):
        inverse = np.linalg.inv(kernel(deleted, deleted, i) + nugget * np.eye(len(tried)))
        return weights @ ((inverse @ losses / np.diag(inverse)[:, None]) ** 2).sum(1)

    i, nugget = min(itertools.product(INTERACTIONS, NUGGETS), key=lambda prior: held_out_error(*prior))
    duals = np.linalg.solve(kernel(deleted, deleted, i) + nugget * np.eye(len(tried)), losses)
    predicted = whole - kernel(all_deleted, deleted, i) @ duals
    known = {row.tobytes(): value for row, value in zip(tried, values, strict=True)}
    completed = np.array([known.get(row.tobytes(), value) for row, value in zip(every, predicted, strict=True)])
    expected = by_least_squares(every, completed, KEEP)
    np.testing.assert_allclose(banzhaf(tried, values, KEEP).values, expected, atol=1e-8)


@pytest.mark.parametrize(("n", "passes"), [(30, 90), (250, 400)])
def test_a_sum_of_words_is_recovered_and_predicted(n, passes):
    vectors = np.random.default_rng(0).normal(size=(n, 5))
    tried = drawn(n, passes)
    fit = banzhaf(tried, tried @ vectors, KEEP)
    np.testing.assert_allclose(fit.values, vectors, atol=1e-5)
    np.testing.assert_allclose(fit.predictions, tried @ vectors, atol=1e-3)
    every = banzhaf(subsets(5), subsets(5) @ vectors[:5], KEEP)
    np.testing.assert_allclose(every.values, vectors[:5], atol=1e-9)
    np.testing.assert_allclose(every.reference, 0, atol=1e-9)


def test_planted_compounds_are_found_and_no_others():
    n = 12
    vectors = np.random.default_rng(0).normal(size=(n, 6))

    def game(tried: np.ndarray) -> np.ndarray:
        values = tried @ vectors
        values[:, 0] += 3 * (tried[:, 2] & tried[:, 9])
        values[:, 1] -= 3 * (tried[:, 4] & tried[:, 5])
        return values

    tried = drawn(n, 96)
    fit = banzhaf(tried, game(tried), KEEP, compounds=2)
    assert set(fit.compounds) == {(2, 9), (4, 5)}
    for compound, vector in zip(fit.compounds, fit.values[n:], strict=True):
        expected = np.zeros(6)
        expected[0 if compound == (2, 9) else 1] = 3 if compound == (2, 9) else -3
        np.testing.assert_allclose(vector, expected, atol=0.3)
    plain = banzhaf(tried, game(tried), KEEP)
    assert plain.compounds == ()
    assert plain.compound_predictions is not None
    real = game(tried)
    weights = deletion_weights(tried, KEEP)
    missed, richer = (weights @ ((real - p) ** 2).sum(1) for p in (plain.predictions, plain.compound_predictions))
    assert richer < 0.2 * missed


def test_predictions_are_those_of_a_fit_without_the_subset():
    n = 9
    game = random_game(n, 6, seed=1)
    tried = drawn(n, 40)
    values = game(tried)
    fit = banzhaf(tried, values, KEEP)
    for left_out in (5, 20, 39):
        rest = np.arange(len(tried)) != left_out
        other = banzhaf(tried[rest], values[rest], KEEP)
        predicted = other.reference + tried[left_out] @ other.values
        np.testing.assert_allclose(fit.predictions[left_out], predicted, atol=1e-8)


def test_estimates_of_long_texts_are_off_by_what_their_errors_say():
    n, passes = 40, 148
    game = random_game(n, 24, seed=2)
    deleted = np.random.default_rng(0).random((10_000, n)) < 1 - KEEP
    losses = game(np.ones((1, n), dtype=bool)) - np.concatenate([game(~part) for part in np.split(deleted, 20)])
    truth = np.linalg.lstsq(deleted.astype(float), losses, rcond=None)[0]
    runs = [banzhaf(tried, game(tried), KEEP) for tried in (drawn(n, passes, seed) for seed in range(8))]
    actual = np.mean([((run.values - truth) ** 2).sum(1) for run in runs])
    claimed = np.mean([run.error**2 for run in runs])
    assert 0.8 < np.sqrt(claimed / actual) < 1.2


def test_long_texts_are_predicted_better_than_by_single_deletions():
    n = 120
    random = np.random.default_rng(0)
    vectors, noise = random.normal(size=(n, 6)), random.normal(size=(n, 6))

    def game(tried: np.ndarray) -> np.ndarray:
        # Each deletion also disturbs the text in a way that no other deletion tells of, as shifted positions do.
        return tried @ vectors + 2 * np.sin(7 * tried @ noise)

    tried, fresh = drawn(n, 400), random.random((500, n)) < KEEP
    fit = banzhaf(tried, game(tried), KEEP)
    real = game(fresh)

    def r2(values: np.ndarray) -> float:
        predicted = game(np.ones((1, n), dtype=bool)) - ~fresh @ values
        return 1 - ((real - predicted) ** 2).sum() / ((real - real.mean(0)) ** 2).sum()

    alone = game(np.ones((1, n), dtype=bool)) - game(~np.eye(n, dtype=bool))
    assert r2(fit.values) > 0.8
    assert r2(fit.values) > r2(alone) + 0.1


@pytest.mark.parametrize(("n", "passes"), [(6, 40), (9, 40), (14, 48), (14, 200)])
def test_over_seeds_estimates_spread_as_their_errors_say(n, passes):
    game = random_game(n, 24, seed=2)
    truth = by_least_squares(subsets(n), game(subsets(n)), KEEP)
    runs = [banzhaf(tried, game(tried), KEEP) for tried in (drawn(n, passes, seed) for seed in range(50))]
    actual = np.sqrt(np.mean([((run.values - truth) ** 2).sum(1) for run in runs], axis=0))
    claimed = np.sqrt(np.mean([run.error**2 for run in runs], axis=0))
    assert 0.8 < np.sqrt((claimed**2).sum() / (actual**2).sum()) < 1.2
    assert 0.8 < np.median(claimed / actual) < 1.2


def test_held_out_error_is_that_of_fresh_deletions():
    n = 14
    game = random_game(n, 24, seed=4)
    fresh = np.random.default_rng(9).random((4000, n)) < KEEP
    ratios = []
    for seed in range(10):
        tried = drawn(n, 60, seed)
        fit = banzhaf(tried, game(tried), KEEP)
        expected = deletion_weights(tried, KEEP) @ ((game(tried) - fit.predictions) ** 2).sum(1)
        real = ((game(fresh) - fit.reference - fresh @ fit.values) ** 2).sum(1).mean()
        ratios.append(np.sqrt(expected / real))
    assert 0.85 < np.mean(ratios) < 1.15


def test_few_passes_come_closer_than_plain_least_squares():
    n, passes = 12, 40
    errors: dict[str, list[float]] = {"gaussian process": [], "least squares": []}
    for seed in range(10):
        game = random_game(n, 24, seed)
        truth = by_least_squares(subsets(n), game(subsets(n)), KEEP)
        tried = drawn(n, passes, seed)
        values = game(tried)
        plain = np.linalg.lstsq((~tried).astype(float), values[tried.all(1)] - values, rcond=None)[0]
        errors["least squares"].append(float(np.linalg.norm(plain - truth)))
        errors["gaussian process"].append(float(np.linalg.norm(banzhaf(tried, values, KEEP).values - truth)))
    assert np.mean(errors["gaussian process"]) < 0.8 * np.mean(errors["least squares"])


def test_long_texts_and_single_deletions_alone_have_finite_values():
    for n, passes in ((MOST_PLAYERS + 60, 150), (20, 4)):
        game = random_game(n, 8, seed=0)
        tried = drawn(n, passes)
        assert len(tried) == max(passes, n + 1)
        fit = banzhaf(tried, game(tried), KEEP)
        assert np.isfinite(fit.values).all()
        assert np.isfinite(fit.error).all()
        whole = game(np.ones((1, n), dtype=bool))[0]
        np.testing.assert_allclose(fit.reference + fit.values.sum(0), whole, atol=1e-12)


def test_every_pair_can_be_a_compound_where_all_were_asked_for():
    n = 4
    tried, values = subsets(n), np.random.default_rng(0).normal(size=(2**n, 3))
    fit = banzhaf(tried, values, KEEP, compounds=100)
    assert sorted(fit.compounds) == sorted(itertools.combinations(range(n), 2))
