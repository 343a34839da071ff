"""The expensive measures: cost in forward passes, and the sanity check under random weights."""

from __future__ import annotations

import numpy as np
import pytest


def test_cost_is_in_forward_passes_per_text(result):
    rows = {row["candidate"]: row for row in result.table}
    assert rows["bertscore"]["cost"] == pytest.approx(2.0, rel=0.05)  # the text and its reference
    units = np.mean([sum(record["units"]) for record in result.judged[:2]]) / 2
    # One pass without each unit, which is shorter; besides the whole text, the empty text and the output.
    assert units * 0.8 < rows["occlusion"]["cost"] < units + 3
    assert rows["shapley/32/keep"]["cost"] < 32


def test_explanations_under_random_weights_do_not_correlate_with_the_models(result):
    rows = {row["candidate"]: row for row in result.table}
    for name in ("banzhaf", "shapley/keep", "integrated-jacobian/2/project"):
        assert abs(rows[name]["sanity"]) < 0.6
    assert abs(rows["random"]["sanity"]) < 0.5


def test_cost_is_counted_for_each_candidate_that_shares_a_decomposition(result):
    rows = {row["candidate"]: row for row in result.table}
    assert rows["shapley/32/project"]["cost"] == rows["shapley/32/keep"]["cost"] > 4
