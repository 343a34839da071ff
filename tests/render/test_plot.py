import re
import subprocess
import sys
import warnings
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from itertools import pairwise
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.collections import QuadMesh
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.patches import PathPatch
from matplotlib.text import Text
from typer.testing import CliRunner

from explanations import COFFEE, LONG, make
from pairlens.attribution.explanation import Explanation
from pairlens.cli import app
from pairlens.errors import FontWarning, InputError
from pairlens.render import plot
from pairlens.render.colours import LIGHT, shade
from pairlens.render.plot.curves import THICKEST
from pairlens.render.plot.canvas import drawing
from pairlens.render.plot.fonts import families, unseen
from pairlens.render.plot.scale import plain
from pairlens.text import Unit

HOSTILE = r"$x$ $\frac{1}{0}$ <b>&amp;</b> _a_ ^2 100% \alpha #1 \begin{x} ${$"
TEXTS = {
    "short": COFFEE,
    "long": (LONG, LONG[:200]),
    "sixty": (" ".join(f"unit{i}" for i in range(60)), " ".join(f"other{i}" for i in range(60))),
    "one": ("coffee", "tea"),
    "hostile": (HOSTILE, '</script>"><img onerror=x> {0} %s'),
    "unbroken": ("x" * 300, "y " * 30),
    "hebrew": ("הקפה הזה לא טוב", "القهوة هنا ليست جيدة"),
}
KINDS: dict[str, Any] = {"heatmap": plot.heatmap, "links": plot.links}


def cells(ax) -> Any:
    (mesh,) = [found for found in ax.collections if isinstance(found, QuadMesh)]
    return mesh


def limit(ax) -> float:
    norm = cells(ax).norm
    assert norm.vmin == -norm.vmax  # zero is neutral
    return norm.vmax


def found(figure) -> list[Any]:
    return figure.findobj(Text)


def texts(figure) -> list[str]:
    return [text.get_text() for text in found(figure) if text.get_text() and text.get_visible()]


def labels(ax) -> tuple[list[str], list[str]]:
    return [t.get_text() for t in ax.get_yticklabels()], [t.get_text() for t in ax.get_xticklabels()]


def folded(e: Explanation) -> np.ndarray:
    """The matrix with the special tokens, which are first and last, added up in a last row and column."""
    rows = np.vstack([e.matrix[1:-1], e.matrix[[0, -1]].sum(0)])
    return np.hstack([rows[:, 1:-1], rows[:, [0, -1]].sum(1, keepdims=True)])


def pixels(figure) -> np.ndarray:
    from matplotlib.backends.backend_agg import FigureCanvasAgg

    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba()).copy()


# The heat map.


def test_cells_are_the_matrix():
    e = make(*COFFEE)
    _, ax = plot.heatmap(e)
    assert np.asarray(cells(ax).get_array()).reshape(8, 6) == pytest.approx(folded(e))
    words_a, words_b = (["The coffee here is not good .".split(), "This coffee is bad .".split()][i] for i in (0, 1))
    assert labels(ax) == ([*words_a, "special", "sum"], [*words_b, "special", "sum"])
    top, bottom = ax.get_ylim()[::-1]
    assert top < bottom  # the first unit is on top


def test_colours_are_the_values():
    e = make(*COFFEE)
    _, ax = plot.heatmap(e)
    mesh = cells(ax)
    mesh.update_scalarmappable()
    for colour, value in zip(mesh.get_facecolors(), folded(e).flat, strict=True):
        assert colour[:3] == pytest.approx(to_rgb(shade(value / limit(ax))), abs=0.01)
    strongest = np.abs(folded(e)[:-1, :-1]).max()
    assert strongest <= limit(ax) <= 1.25 * strongest


def test_numbers_and_sums_are_the_values():
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
    assert labels(ax)[0][-2:] == labels(ax)[1][-2:] == ["sum", "effects"]
    written = {(t.get_position()): t.get_text() for t in ax.texts}
    assert written[7.75, 0.5] == plain(e.effects_a[1], 2)
    assert written[0.5, 9.75] == plain(e.effects_b[1], 2)


def test_numbers_only_where_they_fit():
    assert not plot.heatmap(make(*TEXTS["sixty"]))[1].texts
    assert not plot.heatmap(make(*COFFEE), numbers=False)[1].texts
    assert plot.heatmap(make(*TEXTS["long"]), numbers=True)[1].texts


def test_special_tokens_are_folded_and_stated():
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
    assert "pairs with special tokens: 0.0000" in " ".join(texts(figure))


def test_special_tokens_do_not_pale_the_units():
    matrix = np.full((9, 7), 0.1)
    matrix[0, 0] = 5.0
    figure, ax = plot.heatmap(make(*COFFEE, matrix=matrix))
    assert limit(ax) == pytest.approx(0.1)
    colour_bar = next(axes for axes in figure.axes if axes is not ax)
    assert colour_bar.get_xlim()[1] >= 0.1
    assert len(colour_bar.patches) >= 1  # a pointed end says that there is more


def test_the_limit_can_be_set():
    figure, ax = plot.heatmap(make(*COFFEE), limit=2)
    assert limit(ax) == 2
    bar = next(axes for axes in figure.axes if axes is not ax)
    assert [t.get_text() for t in bar.get_xticklabels()] == ["−2", "−1", "0", "1", "2"]
    assert bar.get_xlabel() == "contribution to the cosine similarity"
    for bad in (0, -1, float("nan"), float("inf"), "x"):
        with pytest.raises(InputError, match="limit"):
            plot.heatmap(make(*COFFEE), limit=bad)  # pyright: ignore[reportArgumentType]


def test_title_and_note():
    e = make(*COFFEE)
    figure, _ = plot.heatmap(e, title="Coffee, $x$")
    assert "Coffee, $x$" in texts(figure)
    assert f"score {e.score:.4f}".replace("-", "−") in " ".join(texts(figure))
    assert "score" not in " ".join(texts(plot.heatmap(e, note=False)[0]))


def test_labels_keep_the_strongest_where_they_do_not_fit():
    e = make(*TEXTS["sixty"], special=False)
    _, ax = plot.heatmap(e, width=3.3)
    rows, columns = labels(ax)
    assert 10 < len(columns) < 60
    assert f"unit{np.abs(e.matrix).sum(1).argmax()}" in rows
    assert f"other{np.abs(e.matrix).sum(0).argmax()}" in columns
    assert labels(plot.heatmap(e, width=6.9)[1])[1] == [f"other{i}" for i in range(60)]
    for tick, label in zip(ax.get_yticks(), rows, strict=True):
        assert label == f"unit{int(tick)}"  # each label is at its own unit


def test_hundreds_of_units():
    e = make("a " * 300, "b " * 200, special=False)
    figure, ax = plot.heatmap(e)
    assert cells(ax).get_rasterized()
    assert figure.get_size_inches()[1] < 11


# Links.


def curves(ax) -> list[Any]:
    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


def test_curves_are_the_strongest_pairs():
    e = make(*COFFEE, special=False)
    _, ax = plot.links(e, top=6)
    found = curves(ax)
    pairs = e.top(6)
    assert len(found) == 6
    thickest = abs(pairs[0].value)
    for curve, pair in zip(found, pairs, strict=True):
        assert to_hex(curve.get_edgecolor()) == (LIGHT.together if pair.value > 0 else LIGHT.apart)
        assert curve.get_linewidth() / found[0].get_linewidth() == pytest.approx(abs(pair.value) / thickest, rel=1e-6)
        (start, _), (end, _) = curve.get_path().vertices[[0, -1]]
        for x, side, unit in ((start, 0, pair.row), (end, 1, pair.column)):
            left, right = span(
                ax, "The coffee here is not good .".split() if not side else "This coffee is bad .".split(), side, unit
            )
            assert left <= x <= right  # it begins and ends at its own words
    assert found[0].get_linewidth() <= THICKEST


def span(ax, words, side, unit) -> tuple[float, float]:
    """From where to where the unit-th word of a text stands, read from what is drawn."""
    drawn = [t for t in ax.texts if t.get_fontsize() == 8.0]
    lines = sorted({t.get_position()[1] for t in drawn})
    row = [t for t in drawn if t.get_position()[1] == lines[side]]
    assert [t.get_text() for t in row] == words
    box = row[unit].get_window_extent().transformed(ax.transData.inverted())
    return box.x0 - 0.5, box.x1 + 0.5


def test_curves_of_a_word_do_not_cross():
    matrix = np.zeros((7, 5))
    matrix[3, 0], matrix[3, 4], matrix[3, 2] = 0.5, 0.4, -0.3  # from the middle to the left, the right and the middle
    _, ax = plot.links(make(*COFFEE, matrix=matrix, special=False))
    left, right, middle = (curve.get_path().vertices[0, 0] for curve in curves(ax))
    assert left < middle < right


def test_curves_have_numbers_and_the_rest_is_stated():
    e = make(*COFFEE, special=False)
    figure, _ = plot.links(e, top=4, width=6.9)
    shown = texts(figure)
    for pair in e.top(4):
        assert plain(pair.value, 2) in shown
    rest = e.matrix.sum() - sum(pair.value for pair in e.top(4))
    assert f"{e.matrix.size - 4} pairs without a curve: {plain(rest, 4)}" in " ".join(shown)
    assert len(texts(plot.links(e, top=4, width=6.9, numbers=False)[0])) == len(shown) - 4


def test_unlinked_words_are_faint():
    matrix = np.zeros((7, 5))
    matrix[1, 1] = 0.5
    _, ax = plot.links(make(*COFFEE, matrix=matrix, special=False))
    assert len(curves(ax)) == 1  # a pair that contributes nothing has none
    colours = {t.get_text(): t.get_color() for t in ax.texts if t.get_fontsize() == 8.0}
    assert colours["coffee"] == LIGHT.ink
    assert colours["here"] == LIGHT.faint
    assert not curves(plot.links(make(*COFFEE, matrix=np.zeros((9, 7))))[1])


def test_special_tokens_as_one_or_each():
    matrix = np.zeros((9, 7))
    matrix[0, 0] = 0.5
    e = make(*COFFEE, matrix=matrix)
    assert texts(plot.links(e)[0]).count("special") == 2
    assert texts(plot.links(e, special=True)[0]).count("[CLS]") == 2


def test_running_text_is_the_text():
    e = make(LONG, COFFEE[1], special=False)
    _, ax = plot.links(e, width=6.9)
    drawn = [t for t in ax.texts if t.get_fontsize() == 8.0]
    lines = sorted({t.get_position()[1] for t in drawn})
    words = [t.get_text() for y in lines[:-1] for t in drawn if t.get_position()[1] == y]
    assert "".join(words) == re.sub(r"\s", "", LONG)


def test_right_to_left():
    _, ax = plot.links(make(*TEXTS["hebrew"], special=False))
    drawn = {t.get_text(): t.get_position()[0] for t in ax.texts if t.get_fontsize() == 8.0}
    for text in TEXTS["hebrew"]:
        places = [drawn[word] for word in text.split()]
        assert places == sorted(places, reverse=True)
    _, ax = plot.links(make("אבג one two דהו", "x", special=False))
    drawn = {t.get_text(): t.get_position()[0] for t in ax.texts if t.get_fontsize() == 8.0}
    assert drawn["דהו"] < drawn["one"] < drawn["two"] < drawn["אבג"]


def test_long_texts_are_cut_down_around_their_links():
    text = " ".join(f"w{i}" for i in range(2000))
    matrix = np.zeros((2002, 3))
    matrix[1001, 1] = 1.0
    figure, ax = plot.links(make(text, "b", matrix=matrix))
    shown = texts(figure)
    assert {"w1000", "…"} <= set(shown)
    assert figure.get_size_inches()[1] < 5
    assert len(curves(ax)) == 1


# Small multiples.


def test_layers_share_everything():
    found = {n: make(*COFFEE, seed=n, scale=0.05 * (n + 1)) for n in range(3)}
    figure, axes = plot.layers(found)
    assert {limit(ax) for ax in axes} == {limit(axes[0])}
    peak = max(np.abs(e.matrix[1:-1, 1:-1]).max() for e in found.values())
    assert peak <= limit(axes[0]) <= 1.25 * peak
    for ax, e in zip(axes, found.values(), strict=True):
        assert np.asarray(cells(ax).get_array()).reshape(8, 6) == pytest.approx(folded(e))
    assert [t for t in texts(figure) if t.startswith("layer")] == ["layer 0", "layer 1", "layer 2"]
    assert any(labels(axes[0])[0])
    assert not any(labels(axes[1])[0])  # the labels of rows stand once
    sizes = {tuple(np.round(ax.get_position().size, 6)) for ax in axes}
    assert len(sizes) == 1
    assert len(figure.axes) == 4  # and one colour bar


def test_layers_by_settings_and_of_other_texts():
    one, other = make(*COFFEE), make(*COFFEE, settings={"method": "fade"})
    figure, _ = plot.layers([one, other])
    assert [t for t in texts(figure) if t in ("layer 0", "fade")] == ["layer 0", "fade"]
    with pytest.raises(InputError, match="the same units"):
        plot.layers([one, make(COFFEE[0], COFFEE[0])])
    with pytest.raises(InputError, match="at least one"):
        plot.layers([])


def test_a_grid_of_pairs():
    found = {"first": make(*COFFEE, scale=0.2), "second $x$": make("one two", "three four five", seed=1)}
    figure, axes = plot.grid(found, columns=2, title="Pairs")
    assert limit(axes[0]) == limit(axes[1])
    assert labels(axes[1]) == (["one", "two", "special"], ["three", "four", "five", "special"])
    assert {"first", "second $x$", "Pairs", f"score {plain(found['first'].score, 3)}"} <= set(texts(figure))
    left, right = (ax.get_position() for ax in axes)
    assert left.x1 < right.x0
    stacked = plot.grid(list(found.values()), columns=1)[1]
    assert stacked[0].get_position().y0 > stacked[1].get_position().y1


# What holds for all of them.


@pytest.mark.parametrize("width", [3.3, 6.9])
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("kind", [*KINDS, "layers", "grid"])
def test_legible_and_inside_the_figure(kind, name, width):
    e = make(*TEXTS[name])
    if kind in KINDS:
        figure, _ = KINDS[kind](e, width=width, title="A title that is rather long for one column of a paper, " * 2)
    else:
        figure, _ = getattr(plot, kind)([e, replace(e, matrix=-e.matrix)], width=width)
    assert figure.get_size_inches()[0] == pytest.approx(width)
    assert figure.get_size_inches()[1] < 10
    figure.set_dpi(200)
    pixels(figure)
    page = figure.bbox
    for text in found(figure):
        if text.get_text() and text.get_visible():
            assert text.get_fontsize() >= 6
            box = text.get_window_extent()
            assert page.x0 - 1 <= box.x0, text
            assert box.x1 <= page.x1 + 1, text
            assert page.y0 - 1 <= box.y0, text
            assert box.y1 <= page.y1 + 1, text


@pytest.mark.parametrize("name", ["short", "long", "sixty"])
def test_row_labels_do_not_overlap(name):
    figure, ax = plot.heatmap(make(*TEXTS[name]))
    pixels(figure)
    boxes = [label.get_window_extent() for label in ax.get_yticklabels()]
    for one, other in pairwise(boxes):
        assert not one.shrunk(1, 0.8).overlaps(other.shrunk(1, 0.8))


def test_nothing_outside_is_changed():
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams), mpl.get_backend(), plt.get_fignums()
    e = make(*COFFEE)
    for figure in (plot.heatmap(e)[0], plot.links(e)[0], plot.layers([e, e])[0], plot.grid([e])[0]):
        pixels(figure)
    assert (dict(mpl.rcParams), mpl.get_backend(), plt.get_fignums()) == before


def test_threads_may_draw(tmp_path):
    explanations = [make(text, COFFEE[1]) for text in (COFFEE[0], "абв где", "x y z", HOSTILE)] * 2
    expected = [e.save(tmp_path / "one.svg").read_bytes() for e in explanations]
    before = dict(mpl.rcParams)
    with ThreadPoolExecutor(8) as pool:
        paths = list(pool.map(lambda i: explanations[i].save(tmp_path / f"{i}.svg"), range(8)))
    assert [path.read_bytes() for path in paths] == expected
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", KINDS)
def test_the_users_style_does_no_harm(kind):
    e = make(HOSTILE, COFFEE[1])
    expected = pixels(KINDS[kind](e)[0])
    with mpl.rc_context({"axes.grid": True, "axes.facecolor": "black", "text.color": "white", "axes.linewidth": 5}):
        assert (pixels(KINDS[kind](e)[0]) == expected).all()
    with mpl.rc_context({"text.usetex": True, "xtick.major.size": 9, "ytick.left": False, "lines.linewidth": 7}):
        figure = KINDS[kind](e)[0]
    assert (pixels(figure) == expected).all()
    with mpl.rc_context({"font.family": "serif"}):  # the paper's own letters are kept
        figure = KINDS[kind](e)[0]
        assert (pixels(figure).shape != expected.shape) or (pixels(figure) != expected).any()


@pytest.mark.parametrize("kind", KINDS)
def test_axes_of_the_callers(kind):
    figure = Figure(figsize=(7, 4))
    left, right = figure.subplots(1, 2)
    same, ax = KINDS[kind](make(*COFFEE), ax=right, title="mine")
    assert same is figure
    assert ax is right
    assert not left.has_data()
    assert "mine" in texts(figure)
    part: Any = Figure(figsize=(7, 4)).subfigures(1, 1)
    assert KINDS[kind](make(*COFFEE), ax=part.subplots())[0] is part.figure
    gone = Figure().subplots()
    gone.remove()
    with pytest.raises(InputError, match="no figure"):
        KINDS[kind](make(*COFFEE), ax=gone)


@pytest.mark.parametrize("kind", KINDS)
def test_impossible_requests(kind):
    for bad in (0, 1000, "wide", float("nan")):
        with pytest.raises(InputError, match="width"):
            KINDS[kind](make(*COFFEE), width=bad)
    with pytest.raises(InputError, match="top"):
        plot.links(make(*COFFEE), top=0)
    nothing = make("a", "b", special=False)
    nothing = replace(nothing, units_a=(), matrix=np.zeros((0, 1)), effects_a=np.zeros(0), entry_error=np.zeros((0, 1)))
    with pytest.raises(InputError, match="nothing to draw"):
        KINDS[kind](nothing)


@pytest.mark.parametrize("kind", KINDS)
def test_texts_of_special_tokens_alone(kind):
    e = make("a", "b")
    units = e.units_a[::2]
    e = replace(
        e, text_a="", units_a=units, matrix=e.matrix[::2], effects_a=np.zeros(2), entry_error=e.entry_error[::2]
    )
    figure, _ = KINDS[kind](e)
    assert "special" in texts(figure)
    silent = replace(e, matrix=e.matrix * 0)
    pixels(KINDS[kind](silent)[0])


@settings(max_examples=15, deadline=None)
@given(st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=40), st.sampled_from([*KINDS]))
def test_any_text_makes_a_valid_svg(tmp_path_factory, text, kind):
    path = tmp_path_factory.getbasetemp() / "any.svg"
    e = make(f"x{text}", "b")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        plot.save(KINDS[kind](e, title=text)[0], path)
    assert ET.parse(path).getroot().tag == "{http://www.w3.org/2000/svg}svg"


# Files.


@pytest.mark.parametrize("kind", KINDS)
def test_text_stays_text(kind, tmp_path):
    e = make(HOSTILE, COFFEE[1])
    figure, _ = e.plot(kind, title="$T$ & <title>", width=6.9)
    plot.save(figure, tmp_path / "a.svg")
    root = ET.parse(tmp_path / "a.svg").getroot()
    found = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "$T$ & <title>" in found
    assert {"$x$", "This", "coffee"} <= set(found)
    for unit in e.units_a[1:-1] if kind == "heatmap" else ():
        assert unit.text in found
    plot.save(figure, tmp_path / "a.pdf")
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in content  # TrueType
    assert b"/Type3" not in content


@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml"), ("pdf", b"%PDF-"), ("PDF", b"%PDF-")]
)
def test_files(suffix, magic, tmp_path):
    e = make(*COFFEE)
    path = e.save(tmp_path / f"why.{suffix}")
    content = path.read_bytes()
    assert content.startswith(magic)
    e.save(path)
    assert path.read_bytes() == content  # the same picture is the same file
    assert [found.name for found in tmp_path.iterdir()] == [path.name]


def test_sizes_of_files(tmp_path):
    import struct

    e = make(*COFFEE)
    path = plot.save(e.plot(width=3.3)[0], tmp_path / "a.png", dpi=100)
    assert struct.unpack(">I", path.read_bytes()[16:20])[0] == 330
    big = plot.save(make("a " * 100, "b " * 100).plot()[0], tmp_path / "a.svg")
    assert big.stat().st_size < 500_000


def test_refused_files(tmp_path):
    e = make(*COFFEE)
    with pytest.raises(InputError, match=r"\.gif.*\.png, \.svg, \.pdf"):
        e.save(tmp_path / "a.gif")
    with pytest.raises(InputError, match="does not exist"):
        e.save(tmp_path / "none" / "a.png")
    with pytest.raises(InputError, match="file suffix"):
        plot.save(e.plot()[0], tmp_path / "a.json")
    with pytest.raises(InputError, match=r"kind of plot 'heat'\. Did you mean 'heatmap'"):
        e.plot("heat")


def test_characters_without_a_font(tmp_path):
    odd = "\U000f1234"  # for private use
    assert unseen([odd, "abc"]) == odd
    figure, _ = make(f"x{odd}", "b").plot()
    with pytest.warns(FontWarning, match=odd):
        plot.save(figure, tmp_path / "a.png")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        plot.save(figure, tmp_path / "a.svg")
        plot.save(make(*COFFEE).plot()[0], tmp_path / "a.pdf")
    assert odd in (tmp_path / "a.svg").read_text(encoding="utf-8")


def test_fonts_help_out():
    with mpl.rc_context({"font.family": ["cmr10"]}):  # has few letters
        found = families(["абв"])
        assert found[0] == "cmr10"
        assert "DejaVu Sans" in found[1:]
        assert families(["abc"]) == ["cmr10"]


def test_a_label_that_has_exactly_its_own_room_is_not_cut():
    words = ["can", "common", "You", "the", "there's", "Philips", "a", "12,5", "über-cool", "isn’t"]
    with drawing(words) as pen:
        assert [pen.shorten(word, pen.width(word) + 4 - 4) for word in words] == words
        assert pen.shorten("common", pen.width("common") - 1) == "comm…"


def test_the_command_line_saves_plots(minilm, monkeypatch, tmp_path):
    monkeypatch.setattr("pairlens.cli.options.Request.load", lambda request: minilm)
    paths = [tmp_path / name for name in ("a.png", "a.svg", "a.pdf")]
    saves = [option for path in paths for option in ("--save", str(path))]
    done = CliRunner().invoke(app, ["explain", "A cat.", "A dog.", "--method", "output", *saves])
    assert done.exit_code == 0, done.output
    assert all(path.stat().st_size > 1000 for path in paths)
    odd = CliRunner().invoke(app, ["explain", "x\U000f1234", "A dog.", "--method", "output", "--save", str(paths[0])])
    assert odd.exit_code == 0
    assert "no installed font has \U000f1234" in odd.stderr


MISSING = """
import sys
sys.modules["matplotlib"] = None  # as if it were not installed
from pairlens.errors import MissingExtra
from pairlens.attribution.explanation import Explanation
e = Explanation.load(sys.argv[1])
for use in (lambda: e.save("never.png"), lambda: e.save("never.pdf"), e.plot, lambda: e.plot("links")):
    try:
        use()
    except MissingExtra as error:
        print(error)
"""


def test_a_missing_matplotlib_is_named(tmp_path):
    path = make(*COFFEE).save(tmp_path / "e.json")
    line = [sys.executable, "-c", MISSING, str(path)]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=tmp_path)
    needed = "matplotlib is not installed and this needs it. Install it with: pip install 'pairlens[plot]'"
    assert done.stdout.splitlines() == [needed] * 4, done.stderr


def test_the_real_model(minilm):
    e = minilm.explain(*COFFEE, level="word", method="output")
    _, ax = e.plot()
    rows, _ = labels(ax)
    assert rows[:-2] == [unit.text for unit in e.units_a[1:-1]]
    assert np.asarray(cells(ax).get_array()).reshape(8, 6) == pytest.approx(folded(e))
    strongest = e.top(1, special=False)[0]
    _, ax = e.plot("links", top=1)
    assert {t.get_text() for t in ax.texts if t.get_color() == LIGHT.ink} >= {strongest.a.text, strongest.b.text}


def test_units_with_prompts_and_rests():
    e = make("one two three", "four", special=False)
    units = Unit("(prompt)", 0, 0, "prompt"), Unit("two", 4, 7), Unit("(rest)", 0, 0, "rest")
    e = replace(e, units_a=units)
    figure, ax = plot.links(e)
    assert {"(prompt)", "one", "two", "three", "(rest)"} <= set(texts(figure))
    assert len(curves(ax)) == 3
