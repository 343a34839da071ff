import numpy as np
import pytest

from explanations import COFFEE, make
from figures import limit
from pairlens.errors import InputError
from pairlens.render import plot


def test_scale_is_made_for_units_and_not_for_special_tokens():
    matrix = np.full((9, 7), 0.3)
    matrix[0, 0] = 5.0
    figure, ax = plot.heatmap(make(*COFFEE, matrix=matrix))
    assert limit(ax) == pytest.approx(0.3)
    colour_bar = next(axes for axes in figure.axes if axes is not ax)
    assert colour_bar.get_xlim()[1] >= 0.1
    assert len(colour_bar.patches) >= 1  # a pointed end says that there is more


def test_limit_sets_the_ends_of_the_colour_bar():
    figure, ax = plot.heatmap(make(*COFFEE), limit=2)
    assert limit(ax) == 2
    bar = next(axes for axes in figure.axes if axes is not ax)
    assert [t.get_text() for t in bar.get_xticklabels()] == ["−2", "−1", "0", "1", "2"]
    assert bar.get_xlabel() == "contribution to the cosine similarity"
    for bad in (0, -1, float("nan"), float("inf"), "x"):
        with pytest.raises(InputError, match="limit"):
            plot.heatmap(make(*COFFEE), limit=bad)  # pyright: ignore[reportArgumentType]
