import numpy as np
import pytest
from matplotlib.collections import PatchCollection
from matplotlib.colors import to_rgb

from explanations import COFFEE, make
from figures import TEXTS, cells, folded, labels, limit, texts
from pairlens.render import plot
from pairlens.render.colours import LIGHT, shade
from pairlens.render.plot.scale import plain
from pictures import noisy


def test_cells_are_the_matrix():
    e = make(*COFFEE)
    _, ax = plot.heatmap(e)
    assert np.asarray(cells(ax).get_array()).reshape(8, 6) == pytest.approx(folded(e))
    words_a, words_b = (["The coffee here is not good .".split(), "This coffee is bad .".split()][i] for i in (0, 1))
    assert labels(ax) == ([*words_a, "special", "sum"], [*words_b, "special", "sum"])
    top, bottom = ax.get_ylim()[::-1]
    assert top < bottom  # the first unit is on top


def test_colours_of_cells_are_those_of_their_values():
    e = make(*COFFEE)
    _, ax = plot.heatmap(e)
    mesh = cells(ax)
    mesh.update_scalarmappable()
    for colour, value in zip(mesh.get_facecolors(), folded(e).flat, strict=True):
        assert colour[:3] == pytest.approx(to_rgb(shade(value / limit(ax))), abs=0.01)
    strongest = np.abs(folded(e)[:-1, :-1]).max()
    assert strongest <= limit(ax) <= 1.25 * strongest


def test_numbers_and_sums_are_those_of_the_matrix():
    e = make(*COFFEE)
    _, ax = plot.heatmap(e)
    written = {(t.get_position()): t.get_text() for t in ax.texts}
    table = folded(e)
    for (i, j), value in np.ndenumerate(table):
        assert written[j + 0.5, i + 0.5] == plain(value, 2)
    for i, value in enumerate(table.sum(1)):
        assert written[6.75, i + 0.5] == plain(value, 2)
    for j, value in enumerate(table.sum(0)):
        assert written[j + 0.5, 8.75] == plain(value, 2)
    assert written[6.75, 8.75] == plain(e.matrix.sum(), 2)
    assert len(written) == 9 * 7


def test_effects_have_a_row_and_a_column():
    e = make(*COFFEE, effects=True)
    _, ax = plot.heatmap(e, width=6.9)
    assert labels(ax)[0][-2:] == labels(ax)[1][-2:] == ["effects", "sum"]
    written = {(t.get_position()): t.get_text() for t in ax.texts}
    assert written[6.75, 0.5] == plain(e.effects_a[1], 1)
    assert written[0.5, 8.75] == plain(e.effects_b[1], 1)
    assert written[8.0, 10.0] == plain(e.matrix.sum() + e.effects_a.sum() + e.effects_b.sum(), 1)


def test_effects_are_a_strip_in_the_colours_of_the_pairs():
    e = make(*COFFEE, effects=True)
    _, ax = plot.heatmap(e, numbers=False)
    (strip,) = [each for each in ax.collections if isinstance(each, PatchCollection)]
    assert strip.norm.vmax == limit(ax) >= max(np.abs(e.effects_a[1:-1]).max(), np.abs(e.effects_b[1:-1]).max())
    values = np.asarray(strip.get_array())
    assert values[:7] == pytest.approx(e.effects_a[1:-1])
    assert values[8:13] == pytest.approx(e.effects_b[1:-1])
    assert not [each for each in plot.heatmap(make(*COFFEE))[1].collections if isinstance(each, PatchCollection)]


def test_scores_without_a_word_are_written_or_stand_in_the_labels(guitar):
    without = {unit.text: f"{score:.2f}" for unit, score in zip(guitar.units_a, guitar.measured_a, strict=True)}
    figure, ax = plot.heatmap(guitar, width=6.9)
    assert labels(ax)[0][-1] == labels(ax)[1][-1] == "without"
    column = [t.get_text() for t in ax.texts if t.get_position()[0] == max(t.get_position()[0] for t in ax.texts)]
    assert column == [without[unit.text] for unit in guitar.units_a[1:-1]]
    assert labels(plot.heatmap(guitar, numbers=False)[1])[0][5] == f"guitar  {without['guitar']}"
    assert "the score without that word, measured" in " ".join(texts(figure))


def test_numbers_are_written_only_where_they_fit():
    assert not plot.heatmap(make(*TEXTS["sixty"]))[1].texts
    assert not plot.heatmap(make(*COFFEE), numbers=False)[1].texts
    assert plot.heatmap(make("a " * 20, "b " * 20), numbers=True)[1].texts


def test_special_tokens_are_folded_and_their_sum_is_noted():
    e = make(*COFFEE)
    rest = e.matrix.sum() - e.matrix[1:-1, 1:-1].sum()
    figure, ax = plot.heatmap(e)
    assert f"pairs with special tokens: {plain(rest, 4)}" in " ".join(texts(figure))
    figure, ax = plot.heatmap(e, special=True)
    assert labels(ax)[0] == ["[CLS]", *"The coffee here is not good .".split(), "[SEP]", "sum"]
    assert np.asarray(cells(ax).get_array()).ravel() == pytest.approx(e.matrix.ravel())
    assert "special" not in " ".join(texts(figure))
    silent = e.matrix.copy()
    silent[[0, -1]] = silent[:, [0, -1]] = 0.0
    figure, ax = plot.heatmap(make(*COFFEE, matrix=silent))
    assert "special" not in labels(ax)[0]
    assert "pairs with special tokens" not in " ".join(texts(figure))


def test_title_and_note_are_written():
    e = make(*COFFEE)
    figure, _ = plot.heatmap(e, title="Coffee, $x$")
    assert "Coffee, $x$" in texts(figure)
    assert f"score {e.score:.4f}".replace("-", "−") in " ".join(texts(figure))
    assert "score" not in " ".join(texts(plot.heatmap(e, note=False)[0]))


def test_hundreds_of_units_are_one_image_on_one_page():
    e = make("a " * 300, "b " * 200, special=False)
    figure, ax = plot.heatmap(e)
    assert cells(ax).get_rasterized()
    assert figure.get_size_inches()[1] < 11


def test_first_cells_that_may_be_noise_are_faded():
    e = noisy()
    _, ax = plot.heatmap(e)
    mesh = cells(ax)
    mesh.update_scalarmappable()
    colours = {
        round(float(value), 4): colour[:3]
        for value, colour in zip(mesh.get_array().flat, mesh.get_facecolors(), strict=True)
    }
    assert 0.6 not in colours
    assert colours[0.5] == pytest.approx(to_rgb(shade(0.5 / limit(ax))), abs=0.01)
    (number,) = [text for text in ax.texts if text.get_text() == "0.60"]
    assert number.get_color() == LIGHT.faint
