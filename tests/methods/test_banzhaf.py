"""Banzhaf values of a real model: what deletions do, standard errors over seeds, compounds, budgets."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from families import families
from pairlens import Banzhaf, InputError, Lens
from pairlens.text import rows_without

A, B = "A cat sleeps on the sofa today.", "The dog is sleeping."
LONG = "A man with a hard hat is dancing in the street.", "A woman is wearing a hat and dances outside."


@pytest.mark.slow
@pytest.mark.parametrize("level", ["token", "word"])
def test_over_seeds_the_entries_of_the_real_model_spread_as_claimed(minilm, level):
    runs = [minilm.explain(*LONG, method=Banzhaf(seed=seed), level=level) for seed in range(50)]
    exact = minilm.explain(*LONG, method=Banzhaf(passes=8192), level=level)
    inner = np.s_[1:-1, 1:-1]
    actual = np.sqrt(np.mean([(run.matrix - exact.matrix)[inner] ** 2 for run in runs], axis=0))
    claimed = np.sqrt(np.mean([run.entry_error[inner] ** 2 for run in runs], axis=0))
    ratio = actual / claimed
    assert 0.8 < np.median(ratio) < 1.2
    assert np.mean((ratio > 0.67) & (ratio < 1.33)) > 0.85


@pytest.mark.parametrize("family", families("bert", "t5", "qwen3"))
def test_every_family_adds_up(family):
    lens = Lens(zoo.encoder(family), dtype="float64")
    a, b = lens.decompose([A, B], progress=False)
    for text in (a, b):
        kept = np.array([unit.kind != "text" for unit in text.units])
        assert not text.values[kept].any()
        np.testing.assert_allclose(text.values.sum(0), text.embedding - text.reference, atol=1e-12)
        assert text.gap < 1e-12
    e = lens.compare(a, b)
    assert e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum() == pytest.approx(e.score, abs=1e-12)
    assert e.score == pytest.approx(lens.explain(A, B, layer=1).score, abs=1e-6)


def test_an_adjusted_model_is_explained_by_what_deletions_do_to_its_score():
    lens = Lens(zoo.encoder("bert"), dtype="float64")
    lens.encoder.adjusted = True
    e = lens.explain(A, B, method="banzhaf")
    assert e.settings["reference_terms"] == "keep"
    assert e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum() == pytest.approx(e.score, abs=1e-10)
    assert e.score == pytest.approx(lens.explain(A, B).score, abs=1e-6)


def test_static_embeddings_can_be_sampled():
    lens = Lens(zoo.static())
    free, sampled = lens.explain(A, B), lens.explain(A, B, method="banzhaf")
    assert free.settings["method"] == "integrated-jacobian"
    assert sampled.score == pytest.approx(free.score, abs=1e-6)
    assert sampled.forecast is not None


def test_results_do_not_depend_on_company(minilm):
    alone = minilm.explain(A, B)
    crowd = list(minilm.explain_many([(B, A), (A, B), ("A bird sings today.", B)], progress=False))
    np.testing.assert_allclose(crowd[1].matrix, alone.matrix, atol=1e-5)
    np.testing.assert_allclose(crowd[0].matrix, alone.matrix.T, atol=1e-5)


def test_the_default_budget_grows_with_the_text_and_every_unit_is_deleted_alone(minilm):
    long = "word " * 30 + "end"
    texts = minilm.decompose(["one two three", A, long], level="word", progress=False)
    nodes = [text.settings["nodes"] for text in texts]
    assert nodes == [2**3, 48, 4 * 31 - 12]
    few = next(minilm.decompose([long], level="word", method=Banzhaf(passes=4), progress=False))
    assert few.settings["nodes"] == 32
    assert ((~few.tried).sum(1) == 1).sum() == 31


def test_more_passes_estimate_the_same_thing(minilm):
    pair = ("A man is riding a white horse.", "Someone rides a pale animal.")
    few, more, exact = (minilm.explain(*pair, method=Banzhaf(passes=p), level="word") for p in (20, 120, 256))
    assert (few.settings["nodes"], exact.settings["nodes"]) == ([20, 20], [2**8, 2**6])
    assert not exact.entry_error.any()
    far, near = (np.abs(e.matrix - exact.matrix).max() for e in (few, more))
    assert near < 0.5 * far
    assert far < 5 * few.entry_error.max()


def test_going_on_until_the_error_is_small(minilm):
    text = next(minilm.decompose([LONG[0]], method=Banzhaf(passes=32, error=0.02), progress=False))
    assert text.error.max() <= 0.02 * np.linalg.norm(text.embedding - text.reference)
    assert text.settings["nodes"] > 32


def test_compounds_are_units_with_rows_of_their_own(minilm):
    text = "This film is not good and far too long."
    plain, e = (
        minilm.explain(text, "It is a bad film.", method=Banzhaf(compounds=count), level="word") for count in (0, 6)
    )
    compounds = [unit for unit in e.units_a if unit.kind == "compound"]
    assert compounds
    assert e.units_a[: len(plain.units_a)] == plain.units_a
    for unit in compounds:
        words = [text[start:end] for start, end in unit.parts]
        assert unit.text.split(" … ") == words or unit.text == " ".join(words)
    assert e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum() == pytest.approx(e.score, abs=1e-12)
    assert e.forecast.error < plain.forecast.error
    assert e.at("word").matrix.shape == e.matrix.shape
    assert e.at("sentence").matrix.sum() == pytest.approx(e.matrix.sum())


def test_compounds_are_deleted_with_their_words_and_survive_coarser_levels(minilm):
    text = "The service was not good at all. The staff in New York were friendly."
    e = minilm.explain(text, "Friendly staff in New York.", method=Banzhaf(compounds=8), level="word")
    for index, unit in enumerate(e.units_a):
        if unit.kind == "compound":
            words = [i for i, word in enumerate(e.units_a) if (word.start, word.end) in unit.parts]
            assert e.without([index]) == pytest.approx(e.without(words))
    sentences = e.at("sentence")
    assert any(unit.kind == "compound" for unit in sentences.units_a), "a compound of words in both sentences"
    second = [i for i, unit in enumerate(e.units_a) if unit.kind == "text" and unit.start > 32]
    whole = next(i for i, unit in enumerate(sentences.units_a) if unit.text.startswith("The staff"))
    assert sentences.without([whole]) == pytest.approx(e.without(second))
    with pytest.raises(InputError, match="from 0 to"):
        e.without([99])


def test_the_rest_of_a_text_can_be_in_a_compound(minilm):
    spans = [(0, 11), (12, 24)]
    e = minilm.explain(
        "The service was not good at all today.", "Bad service.", method=Banzhaf(compounds=3), level=(spans, "word")
    )
    rest = next(i for i, unit in enumerate(e.units_a) if unit.kind == "rest")
    compound = next(i for i, unit in enumerate(e.units_a) if unit.kind == "compound" and (0, 0) in unit.parts)
    assert rows_without(e.units_a, [rest]).count(compound) == 1
    assert e.units_a[compound].text.endswith(" … (rest)")


def test_deletions_are_those_of_the_units_after_regrouping(minilm):
    words = next(minilm.decompose(["Hello world"], level="word", progress=False))
    span = words.at([(6, 11)])
    assert len(span.units) == len(words.units)
    assert span.tried is None
    assert minilm.compare(span, words).measured_a is None


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: Banzhaf(keep=1.0), "between 0.01 and 0.99"),
        (lambda: Banzhaf(compounds=-1), "compounds"),
        (lambda: Banzhaf(passes=3), "at least 4"),
        (lambda: Banzhaf(error=2), "Banzhaf's error must lie between 0 and 1"),
    ],
)
def test_bad_settings(make, message):
    with pytest.raises(InputError, match=message):
        make()
