import numpy as np
import pytest

from explanations import COFFEE, make
from figures import cells, folded, labels, limit, texts
from pairlens.errors import InputError
from pairlens.render import plot
from pairlens.render.plot.scale import plain


def test_layers_share_rows_columns_and_colours():
    explanations = {n: make(*COFFEE, seed=n, scale=0.05 * (n + 1)) for n in range(3)}
    figure, axes = plot.layers(explanations)
    assert {limit(ax) for ax in axes} == {limit(axes[0])}
    peak = max(np.abs(e.matrix[1:-1, 1:-1]).max() for e in explanations.values())
    assert peak <= limit(axes[0]) <= 1.25 * peak
    for ax, e in zip(axes, explanations.values(), strict=True):
        assert np.asarray(cells(ax).get_array()).reshape(8, 6) == pytest.approx(folded(e))
    assert [t for t in texts(figure) if t.startswith("layer")] == ["layer 0", "layer 1", "layer 2"]
    assert any(labels(axes[0])[0])
    assert not any(labels(axes[1])[0])  # the labels of rows stand once
    sizes = {tuple(np.round(ax.get_position().size, 6)) for ax in axes}
    assert len(sizes) == 1
    assert len(figure.axes) == 4  # and one colour bar


def test_layers_are_titled_by_settings_and_refuse_other_texts():
    one, other = make(*COFFEE), make(*COFFEE, settings={"method": "fade"})
    figure, _ = plot.layers([one, other])
    assert [t for t in texts(figure) if t in ("layer 0", "fade")] == ["layer 0", "fade"]
    with pytest.raises(InputError, match="the same units"):
        plot.layers([one, make(COFFEE[0], COFFEE[0])])
    with pytest.raises(InputError, match="at least one"):
        plot.layers([])


def test_grid_has_a_titled_panel_for_every_pair():
    explanations = {"first": make(*COFFEE, scale=0.2), "second $x$": make("one two", "three four five", seed=1)}
    figure, axes = plot.grid(explanations, columns=2, title="Pairs")
    assert limit(axes[0]) == limit(axes[1])
    assert labels(axes[1]) == (["one", "two", "special"], ["three", "four", "five", "special"])
    assert {"first", "second $x$", "Pairs", f"score {plain(explanations['first'].score, 3)}"} <= set(texts(figure))
    left, right = (ax.get_position() for ax in axes)
    assert left.x1 < right.x0
    stacked = plot.grid(list(explanations.values()), columns=1)[1]
    assert stacked[0].get_position().y0 > stacked[1].get_position().y1
