import struct
import warnings
import xml.etree.ElementTree as ET
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from matplotlib.figure import Figure

from explanations import COFFEE, make
from figures import KINDS, MARKUP, TEXTS, drawn_texts, pixels, texts
from pairlens.errors import InputError
from pairlens.render import plot
from pairlens.render.plot.canvas import drawing


@pytest.mark.parametrize("width", [3.3, pytest.param(6.9, marks=pytest.mark.slow)])
@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("kind", [*KINDS, "layers", "grid"])
def test_texts_are_legible_and_inside_the_figure(kind, name, width):
    e = make(*TEXTS[name])
    if kind in KINDS:
        figure, _ = KINDS[kind](e, width=width, title="A title that is rather long for one column of a paper, " * 2)
    else:
        figure, _ = getattr(plot, kind)([e, replace(e, matrix=-e.matrix)], width=width)
    assert figure.get_size_inches()[0] == pytest.approx(width)
    assert figure.get_size_inches()[1] < 10
    figure.set_dpi(200)
    figure.draw_without_rendering()
    page = figure.bbox
    for text in drawn_texts(figure):
        assert text.get_fontsize() >= 6
        box = text.get_window_extent()
        assert page.x0 - 1 <= box.x0, text
        assert box.x1 <= page.x1 + 1, text
        assert page.y0 - 1 <= box.y0, text
        assert box.y1 <= page.y1 + 1, text


def test_plots_change_no_setting_of_matplotlib():
    import matplotlib.pyplot as plt

    before = dict(mpl.rcParams), mpl.get_backend(), plt.get_fignums()
    e = make(*COFFEE)
    for figure in (plot.heatmap(e)[0], plot.links(e)[0], plot.layers([e, e])[0], plot.grid([e])[0]):
        pixels(figure)
    assert (dict(mpl.rcParams), mpl.get_backend(), plt.get_fignums()) == before


def test_threads_may_draw_at_the_same_time(tmp_path):
    explanations = [make(text, COFFEE[1]) for text in (COFFEE[0], "абв где", "x y z", MARKUP)]
    expected = [e.save(tmp_path / "one.svg").read_bytes() for e in explanations]
    before = dict(mpl.rcParams)
    with ThreadPoolExecutor(4) as pool:
        paths = list(pool.map(lambda i: explanations[i].save(tmp_path / f"{i}.svg"), range(4)))
    assert [path.read_bytes() for path in paths] == expected
    assert dict(mpl.rcParams) == before


@pytest.mark.parametrize("kind", KINDS)
def test_plots_look_the_same_under_the_users_style(kind):
    e = make(MARKUP, COFFEE[1])
    expected = pixels(KINDS[kind](e)[0])
    with mpl.rc_context({"axes.grid": True, "axes.facecolor": "black", "text.color": "white", "axes.linewidth": 5}):
        assert (pixels(KINDS[kind](e)[0]) == expected).all()
    with mpl.rc_context({"text.usetex": True, "xtick.major.size": 9, "ytick.left": False, "lines.linewidth": 7}):
        figure = KINDS[kind](e)[0]
    assert (pixels(figure) == expected).all()
    with mpl.rc_context({"font.family": "serif"}):  # the user's font is kept
        figure = KINDS[kind](e)[0]
        assert (pixels(figure).shape != expected.shape) or (pixels(figure) != expected).any()


@pytest.mark.parametrize("kind", KINDS)
def test_plots_draw_into_the_callers_axes(kind):
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
def test_impossible_widths_and_empty_matrices_are_refused(kind):
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
def test_texts_of_special_tokens_only_are_drawn(kind):
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


@pytest.mark.parametrize("kind", KINDS)
def test_saved_files_keep_text_as_text(kind, tmp_path):
    e = make(MARKUP, COFFEE[1])
    figure, _ = e.plot(kind, title="$T$ & <title>", width=6.9)
    plot.save(figure, tmp_path / "a.svg")
    root = ET.parse(tmp_path / "a.svg").getroot()
    shown = ["".join(node.itertext()) for node in root.iter("{http://www.w3.org/2000/svg}text")]
    assert "$T$ & <title>" in shown
    assert {"$x$", "This", "coffee"} <= set(shown)
    for unit in e.units_a[1:-1] if kind == "heatmap" else ():
        assert unit.text in shown
    plot.save(figure, tmp_path / "a.pdf")
    content = (tmp_path / "a.pdf").read_bytes()
    assert b"/FontFile2" in content  # TrueType
    assert b"/Type3" not in content


@pytest.mark.parametrize(
    ("suffix", "magic"), [("png", b"\x89PNG\r\n"), ("svg", b"<?xml"), ("pdf", b"%PDF-"), ("PDF", b"%PDF-")]
)
def test_equal_figures_give_equal_files(suffix, magic, tmp_path):
    e = make(*COFFEE)
    path = e.save(tmp_path / f"why.{suffix}")
    content = path.read_bytes()
    assert content.startswith(magic)
    e.save(path)
    assert path.read_bytes() == content  # the same picture is the same file
    assert [file.name for file in tmp_path.iterdir()] == [path.name]


def test_files_have_the_asked_size_and_stay_small(tmp_path):
    e = make(*COFFEE)
    path = plot.save(e.plot(width=3.3)[0], tmp_path / "a.png", dpi=100)
    assert struct.unpack(">I", path.read_bytes()[16:20])[0] == 330
    big = plot.save(make("a " * 100, "b " * 100).plot()[0], tmp_path / "a.svg")
    assert big.stat().st_size < 500_000


def test_files_that_cannot_be_written_are_refused(tmp_path):
    e = make(*COFFEE)
    with pytest.raises(InputError, match=r"\.gif.*\.png, \.svg, \.pdf"):
        e.save(tmp_path / "a.gif")
    with pytest.raises(InputError, match="does not exist"):
        e.save(tmp_path / "none" / "a.png")
    with pytest.raises(InputError, match="file suffix"):
        plot.save(e.plot()[0], tmp_path / "a.json")
    with pytest.raises(InputError, match=r"kind of plot 'heat'\. Did you mean 'heatmap'"):
        e.plot("heat")


def test_text_with_exactly_its_own_width_is_not_shortened():
    words = ["can", "common", "You", "the", "there's", "Philips", "a", "12,5", "über-cool", "isn’t"]
    with drawing(words) as pen:
        assert [pen.shorten(word, pen.width(word) + 4 - 4) for word in words] == words
        assert pen.shorten("common", pen.width("common") - 1) == "comm…"
