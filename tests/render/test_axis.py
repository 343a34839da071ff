import numpy as np
import pytest

from explanations import COFFEE, make
from pairlens.render.axis import axis, fold
from pairlens.text import Unit


def test_axis_sums_up_the_weakest_units_in_the_line_rest():
    units = [Unit(character, 0, 1) for character in "xyz"]
    lines = axis(units, np.array([1.0, 5.0, 3.0]), limit=2)
    assert lines.labels == ("y", "z", "rest")
    assert (lines.single, lines.hidden) == (2, 1)
    assert lines.lines() == [2, 0, 1]


def test_cells_sum_to_the_matrix_whatever_is_folded():
    e = make(*COFFEE, effects=True)
    for cells in (fold(e), fold(e, special=True), fold(e, rows=2, columns=3)):
        assert cells.values.sum() == pytest.approx(e.matrix.sum())
        down, across = cells.values.shape
        assert cells.table[:down, across + 1] == pytest.approx(cells.values.sum(1) + cells.effects[0])
        assert cells.table[down + 1, across] == pytest.approx(e.effects_a.sum())
        assert cells.table[down, across + 1] == pytest.approx(e.effects_b.sum())
        assert cells.table[-1, -1] == pytest.approx(e.score - e.base - e.gap)
        assert cells.totals == ("effects", "sum")
    assert fold(e, special=True).values == pytest.approx(e.matrix)
