"""An explanation as a model of the score: it agrees with `Explanation.without`, and compounds count once."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

from judging import PAIRS, deletable_texts, explanation_of_fits, random_text
from pairlens.methods.banzhaf import Banzhaf
from pairlens.study.faithfulness.rivals import explain_by_rival
from pairlens.study.faithfulness.score_model import ScoreModel
from pairlens.subsets import banzhaf


@pytest.mark.parametrize("options", [{"compounds": 3, "passes": 60}, {}])
def test_predictions_equal_those_of_the_explanation_for_every_deletion(lens, options):
    a, b = deletable_texts(lens, *PAIRS[0], level="word")
    e = lens.explain(*PAIRS[0], method=Banzhaf(**options), level="word")
    assert any(unit.kind == "compound" for unit in (*e.units_a, *e.units_b)) is bool(options)
    model, random = ScoreModel(e, a, b), np.random.default_rng(0)
    lefts = [random.random((20, text.count)) < 0.6 for text in (a, b)]
    expected = [
        e.without(a.players[~left_a].tolist(), b.players[~left_b].tolist())
        for left_a, left_b in zip(*lefts, strict=True)
    ]
    assert np.allclose(model.predict(*lefts), expected, atol=1e-9)


def test_prediction_for_whole_texts_is_the_score_for_methods_and_rivals(lens):
    a, b = deletable_texts(lens, *PAIRS[0], level="word")
    whole = [np.ones((1, text.count), dtype=bool) for text in (a, b)]
    explanations = [
        lens.explain(*PAIRS[0], method="fade", reference_terms="keep", level="word"),
        explain_by_rival("bilrp", lens, *PAIRS[0], "cosine", "word"),
        explain_by_rival("word-cosine", lens, *PAIRS[0], "cosine", "word"),
    ]
    for e in explanations:
        assert ScoreModel(e, a, b).predict(*whole)[0] == pytest.approx(e.score, abs=1e-12)


def test_losses_and_joint_losses_are_falls_of_the_prediction():
    texts = [random_text(5, 1, pairs=True), random_text(4, 2, pairs=True)]
    tried = [(np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool) for n in (5, 4)]
    fits = [banzhaf(rows, text.embed(rows), 0.8, compounds=2) for rows, text in zip(tried, texts, strict=True)]
    assert fits[0].compounds
    model = ScoreModel(explanation_of_fits(texts, fits), *texts)
    whole = model.predict(np.ones((1, 5), dtype=bool), np.ones((1, 4), dtype=bool))[0]
    for s, t in itertools.product(range(5), range(4)):
        without_s, without_t = ~np.eye(5, dtype=bool)[[s]], ~np.eye(4, dtype=bool)[[t]]
        assert model.losses[0][s] == pytest.approx(whole - model.predict(without_s, np.ones((1, 4), dtype=bool))[0])
        assert model.losses[1][t] == pytest.approx(whole - model.predict(np.ones((1, 5), dtype=bool), without_t)[0])
        assert model.joint_losses[s, t] == pytest.approx(whole - model.predict(without_s, without_t)[0])


def test_matrix_divides_the_entries_of_compounds_among_their_units():
    texts = [random_text(4, 1, pairs=True), random_text(3, 2)]
    tried = [(np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool) for n in (4, 3)]
    fits = [banzhaf(rows, text.embed(rows), 0.8, compounds=1) for rows, text in zip(tried, texts, strict=True)]
    e = explanation_of_fits(texts, fits)
    ((first, second),) = fits[0].compounds
    matrix = ScoreModel(e, *texts).matrix
    assert matrix.sum() == pytest.approx(e.matrix.sum())
    columns = texts[1].players
    assert np.allclose(matrix[first], e.matrix[1 + first, columns] + e.matrix[-1, columns] / 2)
    assert np.allclose(matrix[second], e.matrix[1 + second, columns] + e.matrix[-1, columns] / 2)


def test_matrix_leaves_out_special_tokens(lens):
    a, b = deletable_texts(lens, *PAIRS[0])
    e = lens.explain(*PAIRS[0], method="output", level="token")
    assert e.matrix.shape == (a.count + 2, b.count + 2)  # [CLS] and [SEP]
    assert np.array_equal(ScoreModel(e, a, b).matrix, e.matrix[1:-1, 1:-1])
