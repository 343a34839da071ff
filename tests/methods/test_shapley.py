"""Shapley values: which subsets are tried, what is predicted of the rest, and how true the standard errors are."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import zoo
from pairlens import Contributions, InputError, Lens, NotConverged, Shapley
from pairlens.methods import shapley
from pairlens.subsets.kriging import _kernel, _sections, exact, kriged
from pairlens.subsets.sampling import allot, draw

A, B = "A cat sleeps on the sofa today.", "The dog is sleeping."


def subsets(n: int) -> np.ndarray:
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)


def by_permutations(coalitions: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The definition: what each player adds, averaged over all orders."""
    n = coalitions.shape[1]
    place = {row.tobytes(): i for i, row in enumerate(coalitions)}
    shares = np.zeros((n, values.shape[1]))
    for order in itertools.permutations(range(n)):
        present = np.zeros(n, dtype=bool)
        for player in order:
            before = values[place[present.tobytes()]]
            present[player] = True
            shares[player] += values[place[present.tobytes()]] - before
    return shares / math.factorial(n)


def random_game(n: int, dim: int, seed: int):
    """A smooth set function of the kind an encoder is: tokens look at each other and are pooled."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(n + 2, dim))
    mixing = random.normal(size=(dim, dim)) / math.sqrt(dim)
    scores = random.normal(size=(n + 2, n + 2))

    def game(coalitions: np.ndarray) -> np.ndarray:
        present = np.concatenate([coalitions, np.ones((len(coalitions), 2), dtype=bool)], axis=1).astype(float)
        attention = np.exp(scores) * present[:, None, :]
        attention /= attention.sum(-1, keepdims=True)
        states = vectors + np.tanh(attention @ vectors @ mixing)
        pooled = (states * present[:, :, None]).sum(1) / present.sum(1, keepdims=True)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    return game


def sample(n: int, passes: int, seed: int) -> np.ndarray:
    return shapley._Study(n, 1.0, seed).grow(passes)


@pytest.mark.parametrize("n", [1, 2, 5])
def test_all_subsets_give_the_average_over_all_orders(n):
    coalitions = np.random.default_rng(n).permutation(subsets(n))
    values = np.random.default_rng(0).normal(size=(2**n, 3))
    found = exact(coalitions, values)
    np.testing.assert_allclose(found.values, by_permutations(coalitions, values), atol=1e-12)
    assert not found.error.any()
    assert found.noise is None


def by_sizes(coalitions, values, near, *, complete=True):
    """What a player adds, by the chance of a set of others: of its size Beta(near, 1), among equal sizes the same."""
    n = coalitions.shape[1]
    places = {row.tobytes(): place for place, row in enumerate(coalitions)}
    beta = lambda x, y: math.gamma(x) * math.gamma(y) / math.gamma(x + y)  # noqa: E731
    shares = np.zeros((n, values.shape[1]))
    for place, player in itertools.product(range(len(coalitions)), range(n)):
        joined = coalitions[place].copy()
        if not joined[player]:
            size = int(joined.sum())
            joined[player] = True
            chance = beta(size + near, n - size) / beta(near, 1)
            shares[player] += chance * (values[places[joined.tobytes()]] - values[place])
    if not complete:
        return shares
    total = values[coalitions.all(1)][0] - values[~coalitions.any(1)][0]
    large = np.linalg.norm(shares, axis=1, keepdims=True)
    return shares + large / large.sum() * (total - shares.sum(0))


@pytest.mark.parametrize("near", [1, 1.5, 3])
def test_sets_near_the_whole_count_as_often_as_near_says(near):
    coalitions, values = subsets(5), np.random.default_rng(0).normal(size=(32, 3))
    np.testing.assert_allclose(exact(coalitions, values, near).values, by_sizes(coalitions, values, near), atol=1e-12)


def test_a_unit_that_never_changes_anything_has_no_share():
    coalitions = subsets(4)
    values = np.random.default_rng(0).normal(size=(16, 3))[coalitions @ np.array([1, 2, 4, 0])]
    for near in (1.0, 1.5, 1000.0):
        found = exact(coalitions, values, near)
        np.testing.assert_allclose(found.values[3], 0, atol=1e-15)
        np.testing.assert_allclose(found.values.sum(0), found.embedding - found.reference, atol=1e-12)


def test_the_nearest_is_leaving_one_out_and_still_adds_up():
    coalitions, values = subsets(5), np.random.default_rng(0).normal(size=(32, 3))
    found = exact(coalitions, values, 1e6).values
    whole = values[coalitions.all(1)][0]
    lost = np.array([whole - values[(coalitions == ~np.eye(5, dtype=bool)[i]).all(1)][0] for i in range(5)])
    miss = whole - values[~coalitions.any(1)][0] - lost.sum(0)
    large = np.linalg.norm(lost, axis=1, keepdims=True)
    np.testing.assert_allclose(found, lost + large / large.sum() * miss, atol=1e-4)


@pytest.mark.parametrize("near", [1.0, 2.0])
def test_the_closed_form_of_a_predictions_shares(near):
    n = 6
    coalitions = subsets(n)
    sizes = coalitions.sum(1)
    shared = coalitions.astype(float) @ coalitions.T
    games = _kernel(shared, sizes[:, None], sizes[None])  # column T is the game S ↦ kernel(S, T)
    expected = by_sizes(coalitions, games, near, complete=False)  # (players, T)
    sections, own, other = _sections(n, near)
    found = np.where(coalitions, sections[1][sizes][:, None], sections[0][sizes][:, None]).T
    np.testing.assert_allclose(found, expected, atol=1e-12)
    twice = by_sizes(coalitions, expected.T, near, complete=False)  # (players, players)
    np.testing.assert_allclose(twice, np.full((n, n), other) + (own - other) * np.eye(n), atol=1e-12)


def test_the_tails_that_a_long_texts_closed_form_leaves_out_are_nothing():
    # The game S ↦ 1 shares nothing, and the kernel with an empty set depends on the size alone: both are known sums.
    n = 300
    sections, *_ = _sections(n, 1.0)
    total = _kernel(np.array(0.0), np.array(n), np.array(0)) - _kernel(np.array(0.0), np.array(0), np.array(0))
    assert n * sections[0][0] == pytest.approx(float(total), rel=1e-9)


@given(n=st.integers(2, 40), pairs=st.integers(1, 200))
def test_pairs_are_spread_evenly_and_never_more_than_there_are(n, pairs):
    found = allot(n, pairs)
    room = {size: math.comb(n, size) // (2 if 2 * size == n else 1) for size in range(1, n // 2 + 1)}
    assert sum(found.values()) == min(pairs, sum(room.values()))
    assert all(0 < count <= room[size] for size, count in found.items())
    free = [found.get(size, 0) / (1 if 2 * size == n else 2) for size in room if found.get(size, 0) < room[size]]
    assert max(free, default=0) - min(free, default=0) <= 1


@given(n=st.integers(2, 12), seed=st.integers(0, 99), data=st.data())
def test_no_set_is_drawn_twice_nor_with_its_complement(n, seed, data):
    size = data.draw(st.integers(1, n // 2))
    possible = math.comb(n, size) // (2 if 2 * size == n else 1)
    count = data.draw(st.integers(1, possible))
    known: dict[bytes, None] = {}
    random = np.random.default_rng(seed)
    drawn = np.concatenate([draw(n, size, count // 2, known, random), draw(n, size, count - count // 2, known, random)])
    assert (drawn.sum(1) == size).all()
    both = {row.tobytes() for row in np.concatenate([drawn, ~drawn])}
    assert len(both) == 2 * count


@pytest.mark.parametrize(("n", "passes"), [(9, 60), (12, 160), (30, 160), (200, 160)])
def test_a_prediction_adds_up_and_comes_close(n, passes):
    game = random_game(n, 24, seed=1)
    coalitions = sample(n, passes, seed=3)
    assert abs(len(coalitions) - passes) <= 2
    found = kriged(coalitions, game(coalitions))
    np.testing.assert_allclose(found.values.sum(0), found.embedding - found.reference, atol=1e-12)
    if n <= 12:
        truth = exact(subsets(n), game(subsets(n))).values
        assert np.linalg.norm(found.values - truth) < 0.25 * np.linalg.norm(truth)


def test_predictions_need_fewer_passes_than_permutations():
    n, passes = 12, 96
    game = random_game(n, 24, seed=5)
    values = game(subsets(n))
    truth = exact(subsets(n), values).values
    errors: dict[str, list[float]] = {"permutations": [], "prediction": []}
    for seed in range(10):
        coalitions = sample(n, passes, seed)
        errors["prediction"].append(float(np.linalg.norm(kriged(coalitions, game(coalitions)).values - truth)))
        random, shares = np.random.default_rng(seed), np.zeros_like(truth)
        for _ in range(passes // n // 2):
            order = random.permutation(n)
            for antithetic in (order, order[::-1]):
                chain = np.cumsum(1 << antithetic)
                shares[antithetic] += np.diff(values[np.concatenate([[0], chain])], axis=0)
        errors["permutations"].append(float(np.linalg.norm(shares / (passes // n) - truth)))
    assert np.mean(errors["prediction"]) < 0.6 * np.mean(errors["permutations"])


@pytest.mark.parametrize(("n", "passes", "near"), [(10, 60, 1.0), (14, 160, 1.0), (10, 60, 1.5)])
def test_over_seeds_the_spread_is_what_was_claimed(n, passes, near):
    game = random_game(n, 24, seed=2)
    runs = [kriged(c, game(c), near) for c in (sample(n, passes, seed) for seed in range(50))]
    spread = np.sqrt(np.var([run.values for run in runs], axis=0, ddof=1).sum(-1))
    claimed = np.sqrt(np.mean([run.error**2 for run in runs], axis=0))
    assert 0.8 < np.median(spread / claimed) < 1.2


def test_a_sum_of_words_is_met_and_a_planted_pair_found():
    n = 40
    vectors = np.random.default_rng(0).normal(size=(n, 5))

    def game(coalitions: np.ndarray) -> np.ndarray:
        both = (coalitions[:, 3] & coalitions[:, 7]).astype(float)
        return np.concatenate([coalitions @ vectors, 5 * both[:, None]], axis=1)

    coalitions = sample(n, 320, seed=0)
    found = kriged(coalitions, game(coalitions))
    np.testing.assert_allclose(found.values[:, :5], vectors, atol=0.1)
    assert set(np.argsort(-found.values[:, 5])[:2]) == {3, 7}
    assert np.abs(found.values[[3, 7], 5] - 2.5).max() < 3 * found.error[[3, 7]].max()


@pytest.mark.slow
@pytest.mark.parametrize("options", [{"permutations": 8}, {"passes": 160}], ids=str)
def test_over_seeds_the_entries_of_the_real_model_spread_as_claimed(minilm, options):
    pair = ("A man with a hard hat is dancing in the street.", "A woman is wearing a hat and dances outside.")
    runs = [minilm.explain(*pair, method=Shapley(seed=seed, **options)) for seed in range(50)]
    inner = np.s_[1:-1, 1:-1]
    spread = np.std([run.matrix[inner] for run in runs], axis=0, ddof=1)
    claimed = np.sqrt(np.mean([run.entry_error[inner] ** 2 for run in runs], axis=0))
    ratio = spread / claimed
    assert 0.8 < np.median(ratio) < 1.2
    # Fifty seeds tell a spread to a tenth, so nine in ten lie within a third.
    assert np.mean((ratio > 0.67) & (ratio < 1.33)) > 0.85


def test_standard_errors_are_those_of_all_draws(minilm):
    texts = ["A man with a hard hat is dancing in the street.", "A woman is wearing a hat and dances outside."]
    a, b = minilm.decompose(texts, method=Shapley(passes=80), reference_terms="keep", progress=False)
    (weights_a, hits_a), (weights_b, hits_b) = (
        (one.noise_weights**2, one.noise_residuals @ other.values.T) for one, other in ((a, b), (b, a))
    )
    both = weights_a.T @ (a.noise_residuals @ b.noise_residuals.T) ** 2 @ weights_b
    variance = weights_a.T @ hits_a**2 + (weights_b.T @ hits_b**2).T + both
    claimed = minilm.compare(a, b, reference_terms="keep").entry_error
    np.testing.assert_allclose(claimed, np.sqrt(variance), rtol=1e-5, atol=1e-12)
    assert (both > 0.1 * variance).any()  # none of the three can be left out


def test_enough_passes_are_exact_and_few_agree_with_them(minilm):
    pair = ("A man is riding a white horse.", "Someone rides a pale animal.")
    few, full = (minilm.explain(*pair, method=Shapley(passes=passes)) for passes in (64, 2048))
    assert full.settings["nodes"] == [2**8, 2**6]
    assert not full.entry_error.any()
    inner = np.s_[1:-1, 1:-1]
    rank = [np.argsort(np.argsort(e.matrix[inner], axis=None)) for e in (few, full)]
    assert np.corrcoef(rank[0], rank[1])[0, 1] > 0.9
    assert np.abs(few.matrix - full.matrix).max() < 4 * few.entry_error.max()


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_every_family_adds_up(family):
    lens = Lens(zoo.encoder(family), dtype="float64")
    a, b = lens.decompose([A, B], method=Shapley(passes=40), progress=False)
    for text in (a, b):
        kept = np.array([unit.kind != "text" for unit in text.units])
        assert not text.values[kept].any()
        np.testing.assert_allclose(text.values.sum(0), text.embedding - text.reference, atol=1e-12)
        assert text.gap < 1e-12
    e = lens.compare(a, b)
    assert e.base + e.matrix.sum() + e.gap == pytest.approx(e.score, abs=1e-12)
    assert e.score == pytest.approx(lens.explain(A, B, layer=1).score, abs=1e-6)


def test_deletion_is_what_the_model_makes_of_the_shorter_text():
    model = zoo.encoder("bert", normalize=False)
    lens = Lens(model)
    texts = lens.decompose(
        ["The dog sleeps."], method="occlusion", reference_terms="shift", level="word", progress=False
    )
    text = next(texts)
    assert [unit.text for unit in text.units] == ["[CLS]", "The", "dog", "sleeps", ".", "[SEP]"]
    full, without = model.encode(["The dog sleeps.", "The sleeps."])
    np.testing.assert_allclose(text.values[2], full - without, atol=1e-5)
    assert not text.values[[0, -1]].any()


def test_occlusion_says_how_incomplete_it_is(minilm):
    text = next(minilm.decompose([A], method="occlusion", progress=False))
    missing = np.linalg.norm(text.values.sum(0) - (text.embedding - text.reference))
    assert text.gap == pytest.approx(missing / np.linalg.norm(text.embedding - text.reference))
    assert text.gap > 0.01
    e = minilm.explain(A, B, method="occlusion")
    assert e.base + e.matrix.sum() + e.gap == pytest.approx(e.score, abs=1e-12)
    assert abs(e.gap) > 0.01


def test_an_adjusted_model_has_nothing_left_for_the_reference():
    lens = Lens(zoo.encoder("bert"), dtype="float64")
    lens.encoder.adjusted = True
    e = lens.explain(A, B, method=Shapley(passes=40))
    assert e.base == 0
    assert e.matrix.sum() == pytest.approx(e.score, abs=1e-10)


def test_static_embeddings_need_no_sampling_but_can_be_sampled():
    lens = Lens(zoo.static())
    free = lens.explain(A, B)
    assert free.settings["method"] == "integrated-jacobian"
    assert not free.entry_error.any()
    sampled = lens.explain(A, B, method="shapley")
    assert sampled.matrix.sum() == pytest.approx(free.matrix.sum(), abs=1e-6)


def test_results_do_not_depend_on_company(minilm):
    alone = minilm.explain(A, B)
    crowd = list(minilm.explain_many([(B, A), (A, B), ("A bird sings today.", B)], progress=False))
    np.testing.assert_allclose(crowd[1].matrix, alone.matrix, atol=1e-5)
    np.testing.assert_allclose(crowd[0].matrix, alone.matrix.T, atol=1e-5)


def test_seeds_repeat_and_differ(minilm):
    text = "A man with a hard hat is dancing in the street."
    one, same, other = (
        next(minilm.decompose([text], method=Shapley(passes=40, seed=seed), progress=False)).values
        for seed in (1, 1, 2)
    )
    np.testing.assert_array_equal(one, same)
    assert np.abs(one - other).max() > 1e-4


def test_going_on_until_the_error_is_small(minilm, monkeypatch):
    text = "A man with a hard hat is dancing in the street."
    found = next(minilm.decompose([text], method=Shapley(passes=32, error=0.03), progress=False))
    assert found.error.max() <= 0.03 * np.linalg.norm(found.embedding - found.reference)
    assert found.settings["nodes"] > 64
    monkeypatch.setattr(shapley, "MOST_PASSES", 100)
    with pytest.raises(NotConverged, match="coarser level"):
        next(minilm.decompose([text], method=Shapley(passes=32, error=1e-4), progress=False))


def test_a_coarser_level_is_another_game(minilm):
    tokens = minilm.explain("The unhappiest dachshund sleeps.", B, method=Shapley(passes=64))
    sums, words = tokens.at("word"), minilm.explain("The unhappiest dachshund sleeps.", B, level="word")
    assert sums.settings["sums"] == "summed from tokens"
    assert "sums" not in words.settings
    assert sums.matrix.shape == words.matrix.shape
    assert np.abs(sums.matrix - words.matrix).max() > 1e-3
    text = next(minilm.decompose(["The unhappiest dachshund sleeps."], method="shapley", progress=False)).at("word")
    assert text.settings["sums"] == "summed from tokens"
    assert text.noise_weights is None or text.noise_weights.shape[1] == len(text.units)


@pytest.mark.parametrize("suffix", [".json", ".npz", ".csv", ".parquet"])
def test_the_noise_is_saved_too(minilm, tmp_path, suffix):
    a, b = minilm.decompose([A, "A dog ran home."], method=Shapley(passes=24), progress=False)
    assert a.noise_weights is not None
    for text in (a, b):
        text.save(tmp_path / f"{len(text.units)}{suffix}")
    loaded = [Contributions.load(tmp_path / f"{len(text.units)}{suffix}") for text in (a, b)]
    np.testing.assert_array_equal(minilm.compare(*loaded).entry_error, minilm.compare(a, b).entry_error)


def test_a_text_with_itself_has_its_errors_twice(minilm):
    text = "A man with a hard hat is dancing in the street."
    runs = [minilm.explain(text, text, method=Shapley(passes=40, seed=seed)) for seed in range(12)]
    spread = np.std([np.diag(run.matrix)[1:-1] for run in runs], axis=0, ddof=1)
    claimed = np.sqrt(np.mean([np.diag(run.entry_error)[1:-1] ** 2 for run in runs], axis=0))
    assert 0.6 < np.median(spread / claimed) < 1.4


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Shapley(permutations=4, passes=9), "give one of them"),
        (lambda: Shapley(passes=3), "at least 4"),
        (lambda: Shapley(seed=-1), "seed"),
        (lambda: Shapley(error=2), "between 0 and 1"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(InputError, match=message):
        make()


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "shapley", "layer": 3}, "for integrated-jacobian"),
        ({"method": Shapley(), "layer": 3}, "for integrated-jacobian"),
        ({"method": "shaply"}, "Did you mean 'shapley'"),
    ],
)
def test_bad_options(minilm, options, message):
    with pytest.raises(InputError, match=message):
        minilm.explain(A, B, **options)
