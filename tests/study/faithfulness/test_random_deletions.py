"""R² of predicted deletions: 1 for a model that is linear in its words, and never from deletions that were tried."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from judging import PAIRS, deletable_texts, explanation_of_fits, random_text
from pairlens.study.faithfulness.random_deletions import FEWEST, KEEPS, draw_deletions, prediction_measures, r2
from pairlens.study.faithfulness.score_model import ScoreModel
from pairlens.subsets import DeletionSampler, banzhaf


def measured(a, b):
    """The measures of the default method on two made-up texts, from 40 subsets each."""
    deletions = draw_deletions(a, b, "dot", np.random.default_rng(0))
    tried = [DeletionSampler(text.count, np.random.default_rng(0), 0.64).grow(40) for text in (a, b)]
    fits = [banzhaf(rows, text.embed(rows), 0.8) for rows, text in zip(tried, (a, b), strict=True)]
    return prediction_measures(ScoreModel(explanation_of_fits((a, b), fits), a, b), deletions, (tried[0], tried[1]))


def test_r2_and_correlation_are_one_for_texts_that_are_linear_in_their_words():
    measures = measured(random_text(10, 1), random_text(9, 2))
    for keep in (50, 75, 90):
        for name in (f"r2_{keep}", f"r2_{keep}_all", f"correlation_{keep}"):
            assert measures[name] == pytest.approx(1.0, abs=1e-6)
    assert 1 > measures["untried_50"] > measures["untried_90"] > 0
    # The measure can fail: with units that act together, a linear model is not enough.
    assert measured(random_text(10, 1, pairs=True), random_text(9, 2, pairs=True))["r2_50"] < 0.9


def test_deletions_that_were_tried_never_count(lens):
    a, b = deletable_texts(lens, *PAIRS[1], level="word")
    deletions = draw_deletions(a, b, "cosine", np.random.default_rng(0))
    c_a, c_b = lens.decompose(PAIRS[1], level="word", reference_terms="keep", progress=False)
    tried_a, tried_b = c_a.tried[:12, a.players], c_b.tried[:12, b.players]
    model = ScoreModel(lens.compare(c_a, c_b), a, b)
    known = [{row.tobytes() for row in rows} for rows in (tried_a, tried_b)]
    for keep in KEEPS:
        drawn = deletions[keep]
        counted = drawn.untried(tried_a, tried_b)
        expected = [
            not (left_a.tobytes() in known[0] and left_b.tobytes() in known[1])
            for left_a, left_b in zip(drawn.left_a, drawn.left_b, strict=True)
        ]
        assert counted.tolist() == expected
        assert 0 < counted.sum() < len(counted)
        # The measures do not see the scores of the others.
        spoilt = {keep: replace(drawn, scores=np.where(counted, drawn.scores, 99.0))}
        tried, percent = (tried_a, tried_b), int(keep * 100)
        one, other = (prediction_measures(model, each, tried) for each in (spoilt, {keep: drawn}))
        assert one[f"r2_{percent}"] == other[f"r2_{percent}"]
        assert one[f"correlation_{percent}"] == other[f"correlation_{percent}"]
        assert one[f"r2_{percent}_all"] != other[f"r2_{percent}_all"]
        assert one[f"untried_{percent}"] == np.mean(counted)


def test_pair_whose_deletions_were_all_tried_has_no_value(lens):
    a, b = deletable_texts(lens, *PAIRS[1], level="word")
    drawn = draw_deletions(a, b, "cosine", np.random.default_rng(0))[0.5]
    every = [(np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool) for n in (a.count, b.count)]
    e = lens.explain(*PAIRS[1], level="word")
    assert not drawn.untried(every[0], every[1]).any()
    measures = prediction_measures(ScoreModel(e, a, b), {0.5: drawn}, (every[0], every[1]))
    assert (measures["r2_50"], measures["correlation_50"], measures["untried_50"]) == (None, None, 0.0)
    assert drawn.untried(None, None).sum() == len(drawn.scores) > FEWEST


def test_draws_depend_on_the_random_generator_alone(lens):
    def scores(seed):
        a, b = deletable_texts(lens, *PAIRS[1], level="word")
        return draw_deletions(a, b, "cosine", np.random.default_rng(seed))[0.75].scores

    assert np.allclose(scores(1), scores(1), atol=1e-6)
    assert not np.allclose(scores(1), scores(2), atol=1e-6)


def test_r2_of_the_mean_is_zero_and_constant_scores_have_none():
    real = np.array([0.0, 1.0, 5.0])
    assert r2(real, np.full(3, 2.0)) == pytest.approx(0.0)
    assert r2(np.ones(3), real) is None
