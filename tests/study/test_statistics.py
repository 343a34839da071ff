"""The statistics that studies share, against scipy and cases worked out by hand."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import spearmanr

from pairlens.study.statistics import distinct, group_by, mean_of, means, pearson, score, spearman, spread, where


def test_spearman_is_the_rank_correlation():
    random = np.random.default_rng(0)
    x, y = random.integers(0, 5, 30).astype(float), random.standard_normal(30)
    assert spearman(x, y) == pytest.approx(spearmanr(x, y)[0])
    assert spearman(y, np.exp(y)) == pytest.approx(1.0)
    assert spearman(y, -(y**3)) == pytest.approx(-1.0)
    assert spearman(y.reshape(5, 6), y.reshape(5, 6)) == pytest.approx(1.0)


def test_a_rank_correlation_that_means_nothing():
    assert spearman(np.ones(5), np.arange(5)) is None
    assert spearman(np.array([1.0, 2.0]), np.array([3.0, 4.0])) is None
    assert mean_of([None, 0.5, 1.0]) == 0.75
    assert mean_of([None]) is None


def test_the_score_of_embeddings():
    a, b = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([1.0, 0.0])
    assert score(a, b, "cosine").tolist() == [0.6, 0.0]
    assert score(a, b, "dot").tolist() == [3.0, 0.0]


def test_pearson_by_hand():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    assert pearson(x, y) == pytest.approx(3 / np.sqrt(2 * 14 / 3))
    assert pearson(x, 3 - 2 * x) == pytest.approx(-1.0)
    assert pearson(x, np.ones(3)) is None


def test_rows_are_grouped_selected_and_averaged_by_column():
    rows = [{"layer": 1, "gap": 0.5}, {"layer": 0, "gap": None}, {"layer": 1, "gap": 1.5}]
    assert distinct(rows, "layer") == [1, 0]
    assert where(rows, layer=0) == [rows[1]]
    assert group_by(rows, "layer") == {(1,): [rows[0], rows[2]], (0,): [rows[1]]}
    assert means(rows, "gap") == {"gap_mean": 1.0, "gap_sd": 0.5}
    assert means(rows[1:2], "gap") == {"gap_mean": None, "gap_sd": None}
    assert spread([]) == {"mean": None, "sd": None, "median": None}
