"""The study of failures."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.study.papers import failures


def test_overlap_is_the_share_of_common_words():
    assert failures.overlap("A good tea.", "the GOOD tea") == 0.5  # good and tea of a, good, tea and the


def test_differences_from_the_labels_by_hand():
    overlaps = np.array([0.8, 0.5, 0.2, 0.9])
    row = failures.describe(np.array([0.9, 0.5, 0.1, np.nan]), np.array([0.1, 0.5, 0.6, 0.5]), overlaps)
    assert row["overlap"] == pytest.approx({"over": 0.8, "under": 0.2, "all": 0.5})
    assert row["mean_off"] == pytest.approx(0.1)  # 0.8, 0 and -0.5
    assert row["mean_absolute"] == pytest.approx(1.3 / 3)
    assert (row["over"], row["under"]) == pytest.approx((1 / 3, 1 / 3))
    assert row["spearman"] == pytest.approx(-1.0)
