"""The measures of one pair, on candidates whose explanations are known."""

from __future__ import annotations

import numpy as np
import pytest

from judging import PAIRS, deletable_texts, given_matrix
from pairlens import InputError
from pairlens.study.faithfulness import JudgeSettings, judge, make_candidates
from pairlens.study.faithfulness.evaluation import leave_one_out_losses, whole_score
from pairlens.study.statistics import score


def test_shapley_is_one_for_the_true_values_and_minus_one_for_their_negation(known_result):
    rows = {row["candidate"]: row for row in known_result.table}
    assert rows["perfect"]["shapley"] == pytest.approx(1.0)
    assert rows["perfect"]["shapley_low"] == pytest.approx(1.0)
    assert rows["negated"]["shapley"] == pytest.approx(-1.0)
    assert abs(rows["noise"]["shapley"]) < 0.2


def test_deletion_reverse_compares_an_order_with_that_of_the_negation(known_result):
    rows = {row["candidate"]: row for row in known_result.table}
    perfect, negated = rows["perfect"], rows["negated"]
    assert perfect["deletion_reverse"] == pytest.approx(-negated["deletion_reverse"])
    assert perfect["deletion"] - negated["deletion"] == pytest.approx(perfect["deletion_reverse"])


def test_leave_one_out_is_one_for_the_measured_losses_and_minus_one_for_their_negation(lens):
    def losses_matrix(_, a, b):
        losses_a, losses_b = leave_one_out_losses(a, b, "cosine")
        return losses_a[:, None] / b.count + losses_b[None] / a.count

    candidates = [
        given_matrix("losses", losses_matrix),
        given_matrix("negated", lambda lens, a, b: -losses_matrix(lens, a, b)),
    ]
    result = judge(lens, PAIRS[:1], candidates, settings=JudgeSettings(checks=0), progress=False)
    values = {row["candidate"]: row["leave_one_out"] for row in result.table}
    assert (values["losses"], values["negated"]) == (pytest.approx(1.0), pytest.approx(-1.0))


def test_leave_one_out_predicts_leave_one_out_exactly(lens):
    candidates = make_candidates(lens, methods=["occlusion", "output"])
    for level in ("word", "token"):
        result = judge(lens, PAIRS, candidates, settings=JudgeSettings(checks=0, level=level), progress=False)
        rows = {row["candidate"]: row for row in result.table}
        assert rows["occlusion"]["leave_one_out"] == pytest.approx(1.0, abs=1e-9)
        assert rows["occlusion"]["claimed"] == pytest.approx(1.0, abs=1e-3)
        assert rows["output/keep"]["leave_one_out"] < 0.99


def test_texts_of_one_word_have_no_correlations_and_no_r2(lens):
    pairs = [("Coffee", "Tea")]
    candidates = make_candidates(lens, methods=["banzhaf", "occlusion", "faith-shap", "shapley-taylor", "random"])
    result = judge(lens, pairs, candidates, settings=JudgeSettings(checks=1), progress=False)
    for row in result.table:
        assert row["pairs"] == 1
        assert row["shapley"] is row["leave_one_out"] is None
        assert (row["r2_75"] is None) is (row["candidate"] != "random")


def test_leave_one_out_loss_is_the_fall_of_the_models_score(lens):
    text_a, text_b = deletable_texts(lens, *PAIRS[0])
    losses_a, losses_b = leave_one_out_losses(text_a, text_b, "cosine")
    left_a = np.arange(text_a.count)[None] != 3
    left_b = np.arange(text_b.count)[None] != 1
    whole = score(text_a.whole()[None], text_b.whole()[None], "cosine")
    without_a = score(text_a.embed(left_a), text_b.whole()[None], "cosine")
    without_b = score(text_a.whole()[None], text_b.embed(left_b), "cosine")
    assert losses_a[3] == pytest.approx(float(whole[0] - without_a[0]))
    assert losses_b[1] == pytest.approx(float(whole[0] - without_b[0]))


@pytest.mark.parametrize("measure", ["cosine", "dot"])
def test_whole_score_is_the_score_of_the_lens(lens, measure):
    text_a, text_b = deletable_texts(lens, *PAIRS[0])
    expected = lens.explain(*PAIRS[0], method="output", measure=measure).score
    assert whole_score(text_a, text_b, measure) == pytest.approx(expected, abs=1e-6)


@pytest.mark.parametrize(("option", "value"), [("checks", -1), ("seed", -1), ("draws", 0)])
def test_wrong_settings_are_refused(option, value):
    with pytest.raises(InputError, match=f"{option} must be a whole number"):
        JudgeSettings(**{option: value})


def test_levels_are_word_and_token():
    with pytest.raises(InputError, match="unknown level 'sentence'"):
        JudgeSettings(level="sentence")
