"""The study of approximate and exact contributions."""

from __future__ import annotations

import pytest

from pairlens import study
from pairlens.study.papers import agreement

# Random weights leave much of a score to the reference.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


def test_means_of_correlations_leave_none_out():
    table = agreement.describe(
        [
            {"comparison": "c", "layer": 1, "pearson": 0.5, "spearman": 1.0},
            {"comparison": "c", "layer": 1, "pearson": 0.7, "spearman": None},
        ]
    )
    assert (table[0]["pearson_mean"], table[0]["pearson_sd"]) == pytest.approx((0.6, 0.1))
    assert (table[0]["spearman_mean"], table[0]["pairs"]) == (1.0, 2)


def test_an_adjusted_model_without_training_agrees_with_its_twin(everything):
    table = study.run("agreement", everything).table
    rows = [row for row in table if row["comparison"].startswith("“ignore” of the twin")]
    assert len(rows) == everything.lens.layers + 1
    assert all(row["spearman_mean"] == pytest.approx(1.0, abs=1e-3) for row in rows)
    plain = [row for row in table if "“project”, one model" in row["comparison"]]
    assert all(row["spearman_mean"] < 0.999 for row in plain)
