import numpy as np
import pytest
from matplotlib.colors import to_hex

from explanations import COFFEE, make
from figures import curves, texts, words
from pairlens.render import plot
from pairlens.render.colours import LIGHT
from pairlens.render.plot.curves import THICKEST
from pairlens.render.plot.scale import plain


def test_curves_connect_the_words_of_the_strongest_pairs():
    e = make(*COFFEE, special=False)
    _, ax = plot.links(e, top=6)
    drawn = curves(ax)
    pairs = e.top(6)
    assert len(drawn) == 6
    thickest = abs(pairs[0].value)
    for curve, pair in zip(drawn, pairs, strict=True):
        assert to_hex(curve.get_edgecolor()) == (LIGHT.together if pair.value > 0 else LIGHT.apart)
        assert curve.get_linewidth() / drawn[0].get_linewidth() == pytest.approx(abs(pair.value) / thickest, rel=1e-6)
        (start, _), (end, _) = curve.get_path().vertices[[0, -1]]
        for x, side, unit in ((start, 0, pair.row), (end, 1, pair.column)):
            left, right = span(ax, side, unit)
            assert left <= x <= right  # the curve begins and ends at the words of its pair
    assert drawn[0].get_linewidth() <= THICKEST


def span(ax, side, unit) -> tuple[float, float]:
    """The left and the right edge of a word of text a (0) or b (1), read from the drawn texts."""
    drawn = words(ax)
    lines = sorted({t.get_position()[1] for t in drawn})
    row = [t for t in drawn if t.get_position()[1] == lines[side]]
    assert [t.get_text() for t in row] == ("The coffee here is not good .", "This coffee is bad .")[side].split()
    box = row[unit].get_window_extent().transformed(ax.transData.inverted())
    return box.x0 - 0.5, box.x1 + 0.5


def test_curves_of_a_word_do_not_cross():
    matrix = np.zeros((7, 5))
    matrix[3, 0], matrix[3, 4], matrix[3, 2] = 0.5, 0.4, -0.3  # from the middle to the left, the right and the middle
    _, ax = plot.links(make(*COFFEE, matrix=matrix, special=False))
    left, right, middle = (curve.get_path().vertices[0, 0] for curve in curves(ax))
    assert left < middle < right


def test_curves_have_numbers_and_the_other_pairs_are_noted():
    e = make(*COFFEE, special=False)
    figure, _ = plot.links(e, top=4, width=6.9)
    shown = texts(figure)
    for pair in e.top(4):
        assert plain(pair.value, 2) in shown
    rest = e.matrix.sum() - sum(pair.value for pair in e.top(4))
    assert f"{e.matrix.size - 4} pairs without a curve: {plain(rest, 4)}" in " ".join(shown)
    assert len(texts(plot.links(e, top=4, width=6.9, numbers=False)[0])) == len(shown) - 4
