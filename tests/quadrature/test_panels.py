"""Panels for paths with kinks."""

from __future__ import annotations

import numpy as np

from oracles import miss_of
from pairlens import Adaptive
from plans import drive


def test_kinks_get_panels():
    corners = np.array([0.137, 0.31, 0.55, 0.72, 0.91])

    def e(a):
        return np.maximum(a[:, None] - corners, 0) ** 1.0

    def slope(a):
        return (a[:, None] > corners).astype(float)

    table, asked = drive(Adaptive(1e-4), e, slope)
    assert table.panels > 8
    assert miss_of(table, e, slope) <= 1e-4
    # Bisection homes in on the corners instead of refining everywhere.
    assert len(table) < 600
    assert asked["slopes"] < 6 * len(table)


def test_max_nodes_bounds_the_work():
    rng = np.random.default_rng(0)
    corners = rng.random(50)
    table, _ = drive(
        Adaptive(1e-9, max_nodes=60),
        lambda a: np.maximum(a[:, None] - corners, 0),
        lambda a: (a[:, None] > corners).astype(float),
    )
    assert len(table) <= 60
