"""The study of the distribution of contributions."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.study.papers import distribution
from studies import VIEW


def test_shares_means_and_deviations_of_two_pairs_by_hand():
    row = distribution.describe(VIEW, [np.array([-1.0, 1.0, 2.0, 2.0]), np.array([-3.0, 4.0])])
    assert row["view"] == "layer 3, ignore"
    assert (row["pairs"], row["token_pairs"]) == (2, 6)
    assert row["negative"] == pytest.approx(2 / 6)
    assert row["negative_sd"] == pytest.approx(0.125)  # of 1/4 and 1/2
    assert (row["mean"], row["median"]) == pytest.approx((5 / 6, 1.5))
