"""The picture of the papers' Table 1."""

from __future__ import annotations

from typing import Any

import pytest

from pairlens.study.adjustment.picture import draw
from pairlens.study.adjustment.table import AdjustmentTable
from trained import records


def test_the_picture_has_our_and_the_papers_scores():
    figure = draw(AdjustmentTable([*records(), *records("me/tiny")], {}).rows)
    panels = figure.axes
    assert [axes.get_xlabel() for axes in panels] == ["Spearman × 100 by cosine", "Spearman × 100 by dot product"]
    names = [label.get_text() for label in panels[0].get_yticklabels()]
    assert names[0] == "all-mpnet-base-v2\ntrained with cosine"
    assert len(names) == 4
    drawn: Any = [line.get_xdata() for line in panels[0].get_lines() if line.get_marker() in ("o", "s")]
    places = sorted(float(data[0]) for data in drawn)
    ours = [row["cosine"] for row in AdjustmentTable(records(), {}).rows]
    assert places == pytest.approx(sorted([*ours, *ours, 85.9, 87.6]))
