"""The forecast of an explanation against fresh deletions of the real model."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from pairlens import Banzhaf, Explanation, Shapley

PAIRS = [
    ("A man is playing a guitar on the stage.", "A man is playing a flute in the park."),
    ("The young boys are playing outdoors near a man.", "The kids play outdoors while a man smiles nearby."),
    ("A person in a black jacket is doing tricks on a bike.", "A man on a motorcycle jumps over a red car."),
    ("The stock market fell sharply on Monday morning.", "Shares dropped after the bank raised its rates."),
    ("Two dogs run across the snowy field.", "A dog is running through deep snow."),
    ("The film was not good, and far too long.", "I did not like this long and boring movie."),
]


def real_scores(lens: Any, e: Explanation, kept_a: np.ndarray, kept_b: np.ndarray) -> np.ndarray:
    """What the model itself says of the shortened texts; kept_a and kept_b are (draws, words)."""
    sides = []
    for text, units, kept in ((e.text_a, e.units_a, kept_a), (e.text_b, e.units_b, kept_b)):
        read = lens.encoder.read(text, None)
        words = [unit for unit in units if unit.kind == "text"]
        home = [
            next((i for i, w in enumerate(words) if u.kind == "text" and w.start <= u.start < w.end), -1)
            for u in read.units
        ]
        tokens = [np.array([i < 0 or row[i] for i in home]) for row in kept]
        sides.append(lens.encoder.encode([read], [0] * len(tokens), tokens, "unit"))
    return (sides[0] * sides[1]).sum(1)


def predicted_scores(e: Explanation, kept_a: np.ndarray, kept_b: np.ndarray) -> np.ndarray:
    words = [[i for i, unit in enumerate(units) if unit.kind == "text"] for units in (e.units_a, e.units_b)]
    rows = zip(kept_a, kept_b, strict=True)
    return np.array([e.without(np.array(words[0])[~a].tolist(), np.array(words[1])[~b].tolist()) for a, b in rows])


@pytest.mark.parametrize(
    "method",
    [
        pytest.param(Banzhaf(), id="banzhaf"),
        pytest.param(Banzhaf(compounds=6), id="compounds", marks=pytest.mark.slow),
        pytest.param(Shapley(), id="shapley", marks=pytest.mark.slow),
    ],
)
def test_the_error_is_that_of_fresh_deletions(minilm, method):
    ratios, gaps = [], []
    for number, pair in enumerate(PAIRS):
        e = minilm.explain(*pair, method=method, level="word")
        counts = [sum(unit.kind == "text" for unit in units) for units in (e.units_a, e.units_b)]
        random = np.random.default_rng(number)
        kept = [random.random((100, count)) < e.forecast.keep for count in counts]
        real, said = real_scores(minilm, e, *kept), predicted_scores(e, *kept)
        error = np.sqrt(np.mean((real - said) ** 2))
        ratios.append(e.forecast.error / error)
        gaps.append(e.forecast.r2 - (1 - error**2 / real.var()))
    assert 0.8 < np.mean(ratios) < 1.2
    assert abs(np.mean(gaps)) < 0.06


def test_the_default_predicts_what_deletions_do(minilm):
    values = []
    for number, pair in enumerate(PAIRS):
        e = minilm.explain(*pair, level="word")
        counts = [sum(unit.kind == "text" for unit in units) for units in (e.units_a, e.units_b)]
        random = np.random.default_rng(number)
        kept = [random.random((100, count)) < 0.75 for count in counts]
        real = real_scores(minilm, e, *kept)
        values.append(1 - np.mean((real - predicted_scores(e, *kept)) ** 2) / real.var())
    assert np.mean(values) > 0.8


def test_measured_deletions_are_the_models_own(minilm):
    e = minilm.explain(*PAIRS[0], level="word")
    count = sum(unit.kind == "text" for unit in e.units_a)
    alone = ~np.eye(count, dtype=bool)
    whole = np.ones((count, sum(unit.kind == "text" for unit in e.units_b)), dtype=bool)
    np.testing.assert_allclose(e.measured_a[1:-1], real_scores(minilm, e, alone, whole), atol=1e-6)
    assert e.measured_a[0] == e.measured_a[-1] == pytest.approx(e.score)
    np.testing.assert_allclose(e.swap().measured_b, e.measured_a)
    other = ~np.eye(len(whole[0]), dtype=bool)[[2] * count]  # without the third word of b
    np.testing.assert_allclose(e.measured_pairs[1:-1, 3], real_scores(minilm, e, alone, other), atol=1e-6)
    np.testing.assert_allclose(e.swap().measured_pairs, e.measured_pairs.T)
    np.testing.assert_allclose(e.measured_pairs[:, 0], e.measured_a, atol=1e-6)


def test_what_is_no_forecast_has_none(minilm):
    a, b = PAIRS[0]
    assert minilm.explain(a, b, layer=5).forecast is None
    assert minilm.explain(a, b, layer=5).measured_a is None
    words = minilm.explain(a, b, level="word")
    assert words.at("sentence").forecast is None
    assert words.at("sentence").measured_a is None
    assert words.at("word").forecast == words.forecast
    project = minilm.explain(a, b, level="word", reference_terms="project")
    assert project.forecast is None
    np.testing.assert_allclose(project.measured_a, words.measured_a)


def test_compounds_that_would_help_are_announced(minilm):
    e = minilm.explain("A man is playing a guitar.", "A man is playing a flute.", level="word")
    richer = minilm.explain(e.text_a, e.text_b, level="word", method=Banzhaf(compounds=8, passes=48))
    assert e.forecast.with_compounds == pytest.approx(richer.forecast.r2, abs=1e-6)
    assert richer.forecast.with_compounds is None
    assert e.forecast.with_compounds > e.forecast.r2 + 0.05


def test_too_few_deletions_make_no_forecast(minilm):
    assert minilm.explain(*PAIRS[0], level="word", method=Banzhaf(passes=4)).forecast is None
    assert minilm.explain("Good morning", "Hello world", level="word").forecast is not None, "all deletions were tried"


@pytest.mark.slow
def test_a_text_of_a_hundred_words_has_a_true_forecast(minilm):
    text = " ".join(text for pair in PAIRS for text in pair)
    e = minilm.explain(PAIRS[4][0], text, level="word", method=Banzhaf(passes=250))
    kept = [np.ones((120, 8), dtype=bool), np.random.default_rng(0).random((120, len(e.units_b) - 2)) < e.forecast.keep]
    assert kept[1].shape[1] > 100
    real = real_scores(minilm, e, *kept)
    error = np.sqrt(np.mean((real - predicted_scores(e, *kept)) ** 2))
    assert 1 - error**2 / real.var() > 0.5


@pytest.mark.parametrize("suffix", [".json", ".npz", ".csv", ".parquet"])
def test_forecasts_compounds_and_measured_deletions_are_saved(minilm, tmp_path, suffix):
    e = minilm.explain(*PAIRS[5], level="word", method=Banzhaf(compounds=3))
    loaded = Explanation.load(e.save(tmp_path / f"e{suffix}"))
    assert loaded.forecast == e.forecast
    assert loaded.units_a == e.units_a
    np.testing.assert_array_equal(loaded.measured_a, e.measured_a)
    np.testing.assert_array_equal(loaded.measured_pairs, e.measured_pairs)
    assert loaded.without([2], [3]) == e.without([2], [3])
