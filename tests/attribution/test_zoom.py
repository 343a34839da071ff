"""Long texts, from sentences to words: the words of a sentence against their definition, and sums over levels."""

from __future__ import annotations

import itertools
import re
import zlib

import numpy as np
import pytest

from pairlens import Adaptive, Banzhaf, InputError, Lens, Shapley
from pairlens.attribution import Decomposer
from pairlens.attribution.zoom import LONGEST, OPENED, strongest_sentences
from pairlens.text import sentences, words

QUERY = "Who likes bad tea?"
TEXT = "Cats sleep all day. Nobody here likes cold tea. Trains are late."
KEEP = 0.82


def embed(texts: list[str]) -> np.ndarray:
    """A black box in which words act together: the hyperbolic tangent of a sum of random vectors."""
    vectors = []
    for text in texts:
        found = re.findall(r"\w+", text.lower())
        parts = [np.random.default_rng(zlib.crc32(word.encode())).normal(size=8) for word in found]
        vectors.append(np.tanh(0.3 * np.sum(parts, 0)) + 0.1 if parts else np.full(8, 0.1))
    return np.array(vectors)


@pytest.fixture(scope="module")
def lens() -> Lens:
    return Lens.from_function(embed, name="tanh")


def by_least_squares(text: str, sentence: tuple[int, int]) -> np.ndarray:
    """The words of a sentence by definition: least squares over all deletions inside it, through the whole text."""
    inside = [span for span in words(text) if sentence[0] <= span[0] < sentence[1]]
    kept = np.array(list(itertools.product([True, False], repeat=len(inside))))
    texts = []
    for row in kept:
        left = text
        for start, end in reversed([span for span, stays in zip(inside, row, strict=True) if not stays]):
            left = left[:start] + left[end:]
        texts.append(left)
    vectors = embed(texts)
    vectors /= np.linalg.norm(vectors, axis=1, keepdims=True)
    root = np.sqrt(KEEP ** kept.sum(1) * (1 - KEEP) ** (~kept).sum(1))[:, None]
    return np.linalg.lstsq(root * ~kept, root * (vectors[0] - vectors), rcond=None)[0]


def test_words_of_an_opened_sentence_equal_brute_force(lens):
    e = lens.explain(QUERY, TEXT, level=("word", "zoom"), method=Banzhaf(passes=64))
    query = next(lens.decompose([QUERY], progress=False))
    opened = [unit for unit in e.units_b if unit.kind == "sentence"]
    assert {unit.text for unit in opened} == {"(sentence 1)", "(sentence 2)", "(sentence 3)"}
    for one in opened:
        rows = [i for i, u in enumerate(e.units_b) if u.kind == "text" and one.start <= u.start and u.end <= one.end]
        expected = query.values @ by_least_squares(TEXT, (one.start, one.end)).T
        np.testing.assert_allclose(e.matrix[:, rows], expected, atol=1e-9)


@pytest.mark.parametrize("method", [Banzhaf(), Banzhaf(passes=12), Shapley()])
def test_words_sum_to_their_sentence_and_sentences_to_the_score(lens, method):
    fine = lens.explain(QUERY, TEXT, level=("word", "zoom"), method=method)
    coarse = lens.explain(QUERY, TEXT, level=("word", "sentence"), method=method)
    summed = fine.at(("word", "sentence"))
    assert [unit.text for unit in summed.units_b] == [unit.text for unit in coarse.units_b]
    np.testing.assert_allclose(summed.matrix, coarse.matrix, atol=1e-12)
    np.testing.assert_allclose(summed.effects_b, coarse.effects_b, atol=1e-12)
    assert fine.base == pytest.approx(coarse.base, abs=1e-12)
    total = fine.base + fine.effects_a.sum() + fine.effects_b.sum() + fine.matrix.sum() + fine.gap
    assert total == pytest.approx(fine.score, abs=1e-12)
    assert "sums" not in summed.settings


def test_one_sentence_has_its_plain_values(lens):
    zoomed = lens.explain(QUERY, "Nobody here likes cold tea.", level="zoom")
    plain = lens.explain(QUERY, "Nobody here likes cold tea.", level="word")
    assert zoomed.units_b == plain.units_b
    np.testing.assert_array_equal(zoomed.matrix, plain.matrix)


def test_the_sentence_whose_deletion_changes_the_score_most_is_opened(lens):
    coarse = lens.explain(QUERY, TEXT, level=("word", "sentence"))
    spans = sentences(TEXT)
    losses = [abs(coarse.score - lens.explain(QUERY, TEXT[:i] + TEXT[j:]).score) for i, j in spans]
    assert coarse.measured_b is not None
    np.testing.assert_allclose(np.abs(coarse.score - coarse.measured_b), losses, atol=1e-6)
    strongest = strongest_sentences(coarse, "b")
    assert (strongest[0].start, strongest[0].end) == spans[int(np.argmax(losses))]
    assert sum(len(words(unit.text)) for unit in strongest) <= OPENED


def test_a_longer_sentence_is_opened_alone(lens):
    long = "Tea " + "and tea " * OPENED + "is bad."
    assert len(strongest_sentences(lens.explain(QUERY, f"{long} Cats sleep.", level=("word", "sentence")), "b")) == 1


def test_scores_without_words_of_an_opened_sentence_are_measured(lens):
    e = lens.explain(QUERY, TEXT, level=("word", "zoom"))
    place = next(i for i, unit in enumerate(e.units_b) if unit.text == "cold")
    assert e.measured_b is not None
    assert e.measured_b[place] == pytest.approx(lens.explain(QUERY, TEXT.replace("cold ", "")).score, abs=1e-6)


def test_without_all_words_of_a_sentence_its_row_goes_too(lens):
    e = lens.explain(QUERY, TEXT, level=("word", "zoom"))
    row = next(i for i, unit in enumerate(e.units_b) if unit.text == "(sentence 2)")
    inside = [i for i, u in enumerate(e.units_b) if u.kind == "text" and (u.start, u.end) in e.units_b[row].parts]
    coarse = lens.explain(QUERY, TEXT, level=("word", "sentence"))
    assert e.without(b=inside) == pytest.approx(e.without(b=[row]), abs=1e-12)
    assert e.without(b=inside) == pytest.approx(coarse.without(b=[1]), abs=1e-12)
    assert e.without(b=inside[:-1]) != pytest.approx(e.without(b=inside), abs=1e-6)


def test_long_texts_are_zoomed_into_by_default(lens):
    text = "Nobody likes cold tea. " * (LONGEST // 5 + 1)
    levels = [lens.explain(QUERY, text, **options).settings["level"] for options in ({}, {"level": "word"})]
    assert levels == [["word", "zoom"], "word"]
    assert lens.explain(QUERY, "Nobody likes tea " * LONGEST).settings["level"] == "word"  # one sentence
    assert lens.explain(QUERY, TEXT).settings["level"] == "word"


def test_decomposing_stores_sentences_since_the_choice_needs_the_other_text(lens):
    (contributions,) = lens.decompose([TEXT], level="zoom", progress=False)
    assert [unit.text for unit in contributions.units] == [TEXT[i:j] for i, j in sentences(TEXT)]


def test_the_errors_of_words_and_of_their_row_cancel_in_the_sentence(minilm):
    text = " ".join(
        f"The coffee in town {place} is not good, and nobody wants it." for place in ("A", "B", "C", "D", "E")
    )
    sentence = next(minilm.decompose([text], method=Banzhaf(passes=24), level="sentence", progress=False))
    decomposer = Decomposer(minilm.encoder, Banzhaf(passes=24), Adaptive(), "unit")
    job = decomposer.job(text, None, "zoom")
    opened = decomposer.open_sentences([job], [sentence], [[sentence.units[1]]])[0]
    assert opened.noise_weights is not None
    assert opened.error[-1] > sentence.error[1] > 0
    np.testing.assert_allclose(opened.at("sentence").error, sentence.error, rtol=1e-5, atol=1e-9)
    np.testing.assert_allclose(opened.at("sentence").values, sentence.values, atol=1e-12)


def test_pairs_are_settled_if_they_are_among_the_strongest_for_sure(minilm):
    e = minilm.explain(
        "A man plays a guitar on a stage.", "A man plays the flute in a park.", method=Banzhaf(passes=24)
    )
    strongest = e.top(3)
    following = e.top(4)[3]
    for pair in strongest:
        distance = abs(pair.value) - abs(following.value)
        assert pair.settled == (distance >= 2 * np.hypot(pair.error, following.error))
    assert strongest[0].settled
    assert not all(pair.settled for pair in e.top(30))
    assert all(pair.settled for pair in e.top(e.matrix.size))


def test_methods_that_integrate_do_not_zoom(minilm):
    with pytest.raises(InputError, match=r"use level='word', and at\('sentence'\)"):
        minilm.explain(QUERY, TEXT, level="zoom", layer=5)
    assert minilm.explain(QUERY, "Nobody likes cold tea. " * 12, layer=5).settings["level"] == "word"


def test_pairs_before_one_that_fails_inside_a_sentence_come_first():
    def fails(texts: list[str]) -> np.ndarray:
        if any("tea" in text and "cold" not in text and "sugar" in text for text in texts):
            raise ValueError("no tea with sugar but without cold")
        return embed(texts)

    lens = Lens.from_function(fails, name="fails")
    pairs = [(QUERY, TEXT), (QUERY, TEXT.replace("cold tea", "cold tea with sugar"))]
    stream = lens.explain_many(pairs, level=("word", "zoom"), progress=False)
    assert next(stream).text_b == TEXT
    with pytest.raises(ValueError, match="without cold"):
        next(stream)
