"""Edits of a text, the choice among them, and the comparison of explanations before and after."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from judging import PAIRS
from pairlens.study.faithfulness.rewording import CLOSE, compare, edits, reword
from pairlens.study.faithfulness.text_at_layer import layered_encoder


def test_edits_drop_the_full_stop_and_expand_contractions_but_never_repeat_the_text():
    assert "It isn't here" in edits("It isn't here.")
    assert "It is not here." in edits("It isn't here.")
    assert "It isn't here." not in edits("It isn't here.")


def test_reword_changes_the_tokens_and_hardly_the_embedding(minilm):
    encoder = layered_encoder(minilm)
    text = encoder.read("A man is playing a guitar and a woman isn't listening to him.")
    reworded = reword(encoder, text)
    assert reworded is not None
    assert encoder.read(reworded).tokens != text.tokens
    before, after = encoder.sentence_transformer.encode([text.text, reworded])
    assert before @ after >= CLOSE


def test_stability_is_one_for_equal_and_minus_one_for_negated_explanations(lens):
    e = lens.explain(*PAIRS[0], method="output")
    assert compare(e, e) == pytest.approx(1.0)
    assert compare(e, replace(e, matrix=-e.matrix)) == pytest.approx(-1.0)


def test_stability_compares_only_the_words_that_both_texts_have(lens):
    a, b = PAIRS[0]
    before, after = (lens.explain(text, b, method="output") for text in (a, a.replace("here ", "")))
    words_before, words_after = before.at("word"), after.at("word")
    rows_before = [i for i, unit in enumerate(words_before.units_a) if unit.kind == "text" and unit.text != "here"]
    rows_after = [i for i, unit in enumerate(words_after.units_a) if unit.kind == "text"]
    columns = [i for i, unit in enumerate(words_before.units_b) if unit.kind == "text"]
    matrices = words_before.matrix[np.ix_(rows_before, columns)], words_after.matrix[np.ix_(rows_after, columns)]
    expected = spearmanr(matrices[0].ravel(), matrices[1].ravel())[0]
    assert compare(before, after) == pytest.approx(expected)
