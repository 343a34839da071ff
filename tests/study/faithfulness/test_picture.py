"""The judge's picture: labels that do not overlap, and the Pareto front."""

from __future__ import annotations

import itertools
from typing import Any

import matplotlib as mpl
import numpy as np

from pairlens.study.faithfulness.picture import draw, front, place_labels


def random_rows(count: int) -> list[dict[str, Any]]:
    """Rows of a table with random values and narrow intervals."""
    generator = np.random.default_rng(0)
    rows = []
    for number in range(count):
        name = f"integrated-jacobian/{number}/x"
        row: dict[str, Any] = {"candidate": name, "family": "fade", "rival": number % 2 == 0}
        for measure in ("r2_75", "cost"):
            value = float(generator.random()) * (100 if measure == "cost" else 1) + (measure == "cost")
            row |= {measure: value, f"{measure}_low": value * 0.97, f"{measure}_high": value * 1.03}
        rows.append(row)
    return rows


def count_overlaps(figure: Any) -> int:
    """The number of pairs of labels in the first panel that cover each other."""
    from matplotlib.text import Annotation, Text

    renderer = figure.canvas.get_renderer()
    labels = [text for text in figure.axes[0].texts if isinstance(text, Annotation)]
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(label, renderer) for label in labels]
    return sum(box.overlaps(other) for box, other in itertools.combinations(boxes, 2))


def test_labels_do_not_overlap(monkeypatch):
    figure = draw(random_rows(20), "a model", 3)
    assert sum("x" in text.get_text() for text in figure.axes[0].texts) == 20
    assert count_overlaps(figure) == 0
    # The check can fail: where every label must stay on its point, labels cover each other.
    monkeypatch.setattr("pairlens.study.faithfulness.picture._offsets", lambda *_: [(0.0, 0.0)])
    place_labels(figure.axes[0], random_rows(20))
    assert count_overlaps(figure) > 0


def test_drawing_leaves_matplotlibs_settings_unchanged():
    before = dict(mpl.rcParams)
    draw(random_rows(2), "a model", 3)
    assert dict(mpl.rcParams) == before


def test_pareto_front_holds_exactly_the_candidates_that_no_other_beats():
    rows = random_rows(20)
    best = front(rows)
    assert best[0]["cost"] == min(row["cost"] for row in rows)
    assert best[-1]["r2_75"] == max(row["r2_75"] for row in rows)
    for row in rows:
        beaten = any(other["cost"] < row["cost"] and other["r2_75"] > row["r2_75"] for other in rows)
        assert beaten is (row not in best)


def test_candidates_below_the_floor_are_named_with_their_value():
    rows = random_rows(3)
    rows[0] |= {"r2_75": -34.21, "r2_75_low": -40.0, "r2_75_high": -30.0}
    figure = draw(rows, "a model", 3)
    assert "jacobian 0 x (−34.2)" in [text.get_text() for text in figure.axes[0].texts]
    assert count_overlaps(figure) == 0


def test_picture_without_costs_says_so():
    rows = [row | {"cost": None, "cost_low": None, "cost_high": None} for row in random_rows(2)]
    assert "no cost is known" in draw(rows, "a model", 3).axes[0].texts[0].get_text()
