"""The study of cumulative contributions."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.study.papers import cumulative


def test_curve_is_the_share_of_the_strongest_values():
    line = cumulative.curve(np.array([1.0, 4.0, -2.0, 1.0]))  # sorted: 4, -2, 1, 1; sums 4, 2, 3, 4 of 4
    assert [cumulative.at(line, share) for share in (0, 0.25, 0.26, 0.5, 0.75, 1)] == [0, 1, 0.5, 0.5, 0.75, 1]
    twenty = cumulative.curve(np.array([10.0, *[1.0] * 10, *[0.0] * 9]))
    assert cumulative.at(twenty, 0.05) == 0.5  # one of twenty: rounding must not make it two


def test_needed_share_is_where_the_spread_stays_below_the_bound():
    spread = np.full(201, 0.01)
    spread[:100] = 0.5
    spread[120] = 0.03  # a relapse counts
    assert cumulative.needed(spread, 0.05) == pytest.approx(0.5)
    assert cumulative.needed(spread, 0.02) == pytest.approx(121 / 200)
    assert cumulative.needed(spread, 0.001) is None


def test_row_of_two_constant_curves():
    curves = np.array([np.full(201, 0.5), np.full(201, 1.5)])
    row = cumulative.describe("x", curves)
    assert (row["top_mean"], row["top_sd"], row["top_median"]) == (1.0, 0.5, 1.0)
    assert row["needed_sd_5%"] is None
