"""Shapley values: which subsets are tried, what is predicted of the rest, and how true the standard errors are."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from pairlens import Contributions, InputError, Lens, NotConverged, Shapley
from pairlens.methods import sampled

A, B = "A cat sleeps on the sofa today.", "The dog is sleeping."


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
    assert e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum() == pytest.approx(e.score, abs=1e-12)
    assert e.score == pytest.approx(lens.explain(A, B, layer=1).score, abs=1e-6)


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
    monkeypatch.setattr(sampled, "MOST_PASSES", 100)
    with pytest.raises(NotConverged, match="coarser level"):
        next(minilm.decompose([text], method=Shapley(passes=32, error=1e-4), progress=False))


def test_a_coarser_level_is_another_game(minilm):
    tokens = minilm.explain("The unhappiest dachshund sleeps.", B, method=Shapley(passes=64), level="token")
    sums, words = tokens.at("word"), minilm.explain("The unhappiest dachshund sleeps.", B, level="word")
    assert sums.settings["sums"] == "summed from tokens"
    assert "sums" not in words.settings
    assert sums.matrix.shape == words.matrix.shape
    assert np.abs(sums.matrix - words.matrix).max() > 1e-3
    texts = minilm.decompose(["The unhappiest dachshund sleeps."], method="shapley", level="token", progress=False)
    text = next(texts).at("word")
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
