"""The judge from end to end: what it refuses and skips, and that it resumes an interrupted run."""

from __future__ import annotations

from typing import Any

import pytest

import zoo
from judging import PAIRS
from pairlens import InputError, Lens, ModelError
from pairlens.io.journal import Journal
from pairlens.study.faithfulness import FaithfulnessResult, JudgeSettings, judge, make_candidates
from pairlens.study.faithfulness.evaluation import PairEvaluator


def rows_without_seconds(result: FaithfulnessResult) -> list[dict[str, Any]]:
    """The table without the columns that differ between runs."""
    return [{name: row[name] for name in row if not name.startswith("seconds")} for row in result.table]


@pytest.mark.slow
def test_resumed_run_equals_uninterrupted_run_and_evaluates_no_pair_twice(lens, tmp_path, monkeypatch):
    candidates = make_candidates(lens, methods=["banzhaf", "output", "random"], passes=[16])
    settings = JudgeSettings(checks=1)
    uninterrupted = judge(lens, PAIRS, candidates, settings=settings, progress=False)
    evaluated: list[str] = []
    evaluate = PairEvaluator.evaluate

    def interrupt_at_third_pair(self, a, b, *, check):
        if len(evaluated) == 2 and a not in evaluated:
            evaluated.append("interrupted")
            raise KeyboardInterrupt
        evaluated.append(a)
        return evaluate(self, a, b, check=check)

    monkeypatch.setattr(PairEvaluator, "evaluate", interrupt_at_third_pair)
    with Journal(tmp_path / "journal", {}) as journal, pytest.raises(KeyboardInterrupt):
        judge(lens, PAIRS, candidates, settings=settings, journal=journal, progress=False)
    with Journal(tmp_path / "journal", {}) as journal:
        resumed = judge(lens, PAIRS, candidates, settings=settings, journal=journal, progress=False)
    assert evaluated == [PAIRS[0][0], PAIRS[1][0], "interrupted", PAIRS[2][0]]
    assert rows_without_seconds(resumed) == rows_without_seconds(uninterrupted)


def test_only_the_first_pairs_get_the_expensive_measures(result):
    assert [record["check"] for record in result.records] == [True, True, False]
    assert ["cost" in record["candidates"]["occlusion"] for record in result.records] == [True, True, False]


def test_unusable_pairs_and_candidates_are_skipped_with_a_reason():
    lens = Lens(zoo.encoder(pooling="max"))
    pairs = [PAIRS[0], ("word " * 200, "x"), (" ", "x")]
    candidates = make_candidates(lens, methods=["rollout", "fade", "output"])
    result = judge(lens, pairs, candidates, settings=JudgeSettings(checks=0), progress=False)
    skipped = result.summary["pairs"]["skipped"]
    assert [entry["pair"] for entry in skipped] == [1, 2]
    assert "longer than the model takes" in skipped[0]["reason"]
    rows = {row["candidate"]: row for row in result.table}
    assert (rows["output/keep"]["pairs"], rows["output/keep"]["skipped"]) == (1, "")
    assert (rows["rollout"]["pairs"], rows["rollout"]["shapley"]) == (0, None)
    assert "max pooling" in rows["rollout"]["skipped"]
    assert "pooling" in rows["fade/keep"]["skipped"]
    assert result.table[0]["family"] == "output"


def test_static_embeddings_can_be_judged():
    lens = Lens(zoo.static())
    result = judge(lens, PAIRS[:1], make_candidates(lens, methods=["occlusion", "bilrp"]), progress=False)
    rows = {row["candidate"]: row for row in result.table}
    assert rows["occlusion"]["shapley"] > 0.9  # the tokens of a mean hardly interact
    assert "no layers" in rows["bilrp"]["skipped"]


def test_duplicate_names_no_pairs_and_black_boxes_are_refused(lens):
    duplicates = make_candidates(lens, methods=["random"]) * 2
    with pytest.raises(InputError, match="names differ"):
        judge(lens, PAIRS, duplicates)
    with pytest.raises(InputError, match="one pair at least"):
        judge(lens, [])
    black_box = Lens.from_function(lambda texts: [[1.0, len(text)] for text in texts])
    with pytest.raises(ModelError, match="black box"):
        judge(black_box, PAIRS, duplicates[:1])
