from itertools import pairwise

import numpy as np
import pytest

from explanations import make
from figures import TEXTS, labels
from pairlens.render import plot


def test_strongest_units_keep_their_labels_where_not_all_fit():
    e = make(*TEXTS["sixty"], special=False)
    _, ax = plot.heatmap(e, width=3.3)
    rows, columns = labels(ax)
    assert 10 < len(columns) < 60
    assert f"unit{np.abs(e.matrix).sum(1).argmax()}" in rows
    assert f"other{np.abs(e.matrix).sum(0).argmax()}" in columns
    assert labels(plot.heatmap(e, width=6.9)[1])[1] == [f"other{i}" for i in range(60)]
    for tick, label in zip(ax.get_yticks(), rows, strict=True):
        assert label == f"unit{int(tick)}"  # each label is at its own unit


@pytest.mark.parametrize("name", ["short", "long", "sixty"])
def test_row_labels_do_not_overlap(name):
    figure, ax = plot.heatmap(make(*TEXTS[name]))
    figure.draw_without_rendering()
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    for one, other in pairwise(boxes):
        assert not one.shrunk(1, 0.8).overlaps(other.shrunk(1, 0.8))
