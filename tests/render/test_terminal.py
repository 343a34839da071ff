import io
import re
from dataclasses import replace
from itertools import pairwise, takewhile
from typing import Any, Literal

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.color import Color
from rich.console import Console
from typer.testing import CliRunner

from explanations import COFFEE, LONG, make
from pairlens.attribution.contrast import Contrast
from pairlens.cli import app
from pairlens.render.axis import axis
from pairlens.render.colours import DARK, LIGHT, ink_on, luminance, shade
from pairlens.render.running import Piece, lay_out, to_pieces, wrap
from pairlens.render.terminal import view
from pairlens.render.terminal.matrix import plan
from pairlens.render.terminal.style import cell_style
from pairlens.render.text import clean, columns, contrast_summary, equation, shorten, summary
from pairlens.text import Unit, words

NUMBER = r"(?<=\s)(?:[+-]?\d*\.\d+|[·0])(?=\s|$)"


def show(e, width=80, *, top=5, colour: Literal["standard", "256", "truecolor"] | None = None, **options) -> str:
    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=colour is not None,
        color_system=colour,
        highlight=False,
        legacy_windows=False,
    )
    console.print(view(e, width=width, top=top, **options))
    return file.getvalue()


def table(shown: str) -> tuple[list[str], list[list[float]]]:
    """The matrix's column labels and its rows of numbers, read back from what is shown."""
    lines = shown.splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(r"[ab] \\ [ab]", line))
    stop = next(i for i, line in enumerate(lines) if i > start and not line.strip())
    rows = [
        [0.0 if number in "·0" else float(number) for number in re.findall(NUMBER, line)]
        for line in lines[start + 1 : stop]
    ]
    return lines[start].split()[3:], rows


def test_what_is_shown():
    shown = show(make(*COFFEE), 120)
    for text in (*COFFEE, "strongest pairs", "score", "base 0.0041", "gap 2e-07", "(gap of the texts: 3e-04, 5e-04)"):
        assert text in shown
    assert "all-MiniLM-L6-v2, integrated-jacobian, layer 0, level word" in shown
    labels, rows = table(shown)
    assert labels == ["This", "coffee", "is", "bad", ".", "special", "sum"]
    assert len(rows) == 7 + 2


def test_numbers_and_sums():
    e = make(*COFFEE)
    labels, rows = table(show(e))
    text_a, text_b = (np.array([unit.kind == "text" for unit in units]) for units in (e.units_a, e.units_b))
    inside = np.array(rows)[:7, :5]
    assert inside == pytest.approx(e.matrix[np.ix_(text_a, text_b)], abs=5e-4)
    assert rows[7][labels.index("special")] == pytest.approx(e.matrix[np.ix_(~text_a, ~text_b)].sum(), abs=5e-4)
    assert rows[-1][-1] == pytest.approx(e.matrix.sum(), abs=5e-4)
    assert [row[-1] for row in rows[:7]] == pytest.approx(e.row[text_a], abs=5e-4)


@pytest.mark.parametrize("width", [40, 60, 80, 200])
@pytest.mark.parametrize("effects", [False, True])
@pytest.mark.parametrize(
    "texts",
    [COFFEE, (COFFEE[0], LONG), (LONG, COFFEE[0]), (LONG, LONG), ("東京は大きい都市です。", "🙂🚀 naïve e\u0301")],
)
def test_it_fits_and_nothing_is_lost(texts, effects, width):
    e = make(*texts, effects=effects)
    shown = show(e, width)
    assert max(cell_len(line) for line in shown.splitlines()) <= width
    labels, rows = table(shown)
    assert rows[-2 if effects else -1][labels.index("sum")] == pytest.approx(e.matrix.sum(), abs=6e-3)
    entries = np.array([row[: labels.index("sum")] for row in rows[: -2 if effects else -1]])
    assert entries.size
    assert entries.sum() == pytest.approx(e.matrix.sum(), abs=0.006 * entries.size**0.5)


@settings(max_examples=40, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40), st.integers(0, 5), st.sampled_from([40, 60, 80]), st.floats(1e-3, 1e3))
def test_every_size_fits(n, m, seed, width, scale):
    e = make("word " * n, "incomprehensibility " * m, seed=seed, scale=scale)
    assert max(cell_len(line) for line in show(e, width).splitlines()) <= width


def test_columns_line_up():
    shown = show(make("東京は大きい都市です。", "🙂 naïve é ok"), 80)
    lines = shown.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("a \\ b"))
    stop = next(i for i, line in enumerate(lines) if i > start and not line)
    assert len({cell_len(line) for line in lines[start:stop]}) == 1


def test_hidden_lines_are_the_weakest_and_are_counted():
    e = make(LONG, LONG)
    shown = show(e, 80, rows=10)
    labels, rows = table(shown)
    assert "rest" in labels
    assert len(rows) == 10 + 3  # special, rest, sum
    texts = sum(unit.kind == "text" for unit in e.units_a)
    shown_columns = len(labels) - 3
    assert f"rest: {texts - 10} weaker units of a, {texts - shown_columns} weaker units of b" in shown
    strength = np.array([1.0, 5.0, 3.0])
    kept = axis([Unit(c, 0, 1) for c in "xyz"], strength, limit=2)
    assert kept.labels == ("y", "z", "rest")
    assert (kept.single, kept.hidden) == (2, 1)


def test_the_longer_text_goes_down_when_it_does_not_fit_across():
    assert "b \\ a" in show(make(COFFEE[0], LONG), 80)
    assert "a \\ b" in show(make(LONG, COFFEE[0]), 80)
    assert "b \\ a" not in show(make(*COFFEE), 80)


def test_special_tokens():
    e = make(*COFFEE)
    assert table(show(e, special=True))[0][0] == "[CLS]"
    assert "special: 2 tokens of a, 2 tokens of b" in show(e)
    silent = e.matrix.copy()
    silent[[0, -1]] = silent[:, [0, -1]] = 0.0
    shown = show(make(*COFFEE, matrix=silent))
    assert "special" not in table(shown)[0]
    assert "special: 2 tokens of a, 2 tokens of b, all zero" in shown
    assert "special" not in show(make(*COFFEE, special=False))


def pairs_of(shown: str) -> list[str]:
    """The lines that list the strongest pairs."""
    return [line for line in shown.splitlines() if re.match(r"\s*\d+  .*[│|]", line)]


def test_strongest_pairs_have_signed_bars():
    matrix = np.zeros((3, 3))
    matrix[1, 1], matrix[0, 2] = 0.5, -0.25
    shown = show(make("one two three", "one two three", matrix=matrix, special=False), top=2)
    first, second = pairs_of(shown)
    assert first.split()[:5] == ["1", "two", "·", "two", "+0.500"]
    assert second.split()[:5] == ["2", "one", "·", "three", "-0.250"]
    axis = first.index("│")
    assert second.index("│") == axis
    assert first[axis + 1 :].count("█") > 15
    assert second[:axis].endswith("█")
    assert not second[axis + 1 :].strip()


@pytest.mark.parametrize("value", [0.0, 1e-12])
def test_nothing_to_show(value):
    assert "0.0000" in show(make(*COFFEE, matrix=np.full((9, 7), value)))


def test_texts_are_never_obeyed():
    evil = "[bold red]x[/] \\[y] \x1b[31mred\x1b[0m \u202eabc"
    shown = show(make(evil, "b [/] c"), colour="truecolor")
    assert "[bold red]x[/]" in re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown
    assert "\x1b" not in show(make(evil, "b"))
    assert "[/]" in shown


def test_long_texts_are_cut():
    text = " ".join(f"word{i}" for i in range(3000))
    matrix = np.zeros((3002, 3))
    matrix[1701, 1] = 1.0
    shown = show(make(text, "b", matrix=matrix), 80, top=1)
    lines = [line for line in shown.splitlines() if re.search(r"word\d+ word\d", line)]
    assert len(lines) <= 6
    around = [f"word{i}" for i in range(1690, 1710)]
    assert set(around) <= set(shown.split())  # what is linked, word1700, and around it
    assert lines[0].startswith("a  …")
    assert shown.count("…") == 2  # before and after


def test_truncated_texts_say_so():
    assert "only its beginning" in show(make(*COFFEE, truncated_b=True))
    assert "only its beginning" not in show(make(*COFFEE))


def test_ascii_only():
    shown = show(make(*COFFEE), ascii_only=True)
    assert shown.isascii()
    assert "##" in shown
    wide = show(make("東京 café", "🙂 ok"), ascii_only=True)
    assert wide.isascii()
    lines = wide.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("a \\ b"))
    assert (
        len({len(line) for line in lines[start : start + 5]}) == 1
    )  # columns line up where ? stands for wide characters


def test_effects_have_a_row_and_a_column():
    e = make(*COFFEE, effects=True)
    labels, rows = table(show(e, 120))
    assert labels[-2:] == ["sum", "effects"]
    assert rows[-1][-1] == pytest.approx(e.effects_b.sum(), abs=5e-3)
    assert rows[0][-1] == pytest.approx(e.effects_a[1], abs=5e-3)
    assert "effects a" in equation(e)
    assert "effects" not in equation(make(*COFFEE))


def background(value: float) -> tuple[int, ...]:
    colour: Any = cell_style(value).bgcolor
    return tuple(colour.triplet)


def test_colours_are_legible_and_diverge():
    def light(colour: Any) -> float:
        parts = [channel / 255 for channel in colour.triplet]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    assert light(Color.parse("#2166ac")) == pytest.approx(luminance("#2166ac"))
    for value in np.linspace(-1.5, 1.5, 61):
        style = cell_style(value)
        darker, lighter = sorted((light(style.color), light(style.bgcolor)))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5  # WCAG AA
    assert (background(1.0), background(-1.0)) == (triplet(LIGHT.together), triplet(LIGHT.apart))
    assert len(set(background(0.0))) == 1
    orange = show(make("a", "b", matrix=np.array([[-1.0]]), special=False), colour="truecolor")
    assert f"48;2;{';'.join(map(str, triplet(LIGHT.apart)))}" in orange
    blue = show(make("a", "b", matrix=np.array([[1.0]]), special=False), colour="truecolor")
    assert f"48;2;{';'.join(map(str, triplet(LIGHT.together)))}" in blue


def triplet(colour: str) -> tuple[int, ...]:
    return tuple(Color.parse(colour).get_truecolor())


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_palettes(palette):
    def contrast(one: str, other: str) -> float:
        darker, lighter = sorted((luminance(one), luminance(other)))
        return (lighter + 0.05) / (darker + 0.05)

    for colour in (palette.together, palette.apart, palette.ink, palette.faint):
        assert contrast(colour, palette.paper) >= 4.5
    assert contrast(palette.together, palette.apart) < 1.25  # equally strong
    red, _, blue = (np.array(triplet(palette.together)) - triplet(palette.apart)).tolist()
    assert blue > 100 > -100 > red  # far apart on the axis that all kinds of colour vision have
    for strength in np.linspace(-1, 1, 41):
        colour = shade(strength, palette)
        assert contrast(ink_on(colour), colour) >= 4.5


@pytest.mark.parametrize("colour", ["standard", "256", "truecolor"])
def test_colour_changes_no_character(colour):
    e = make(*COFFEE)
    assert re.sub(r"\x1b\[[\d;]*m", "", show(e, colour=colour)) == show(e)


def test_numbers_get_shorter_before_columns_are_hidden():
    e = make(*COFFEE)
    (wide, long, _), (narrow, short, _) = (plan(e, width, False, 24) for width in (77, 52))
    assert wide.across.hidden == narrow.across.hidden == 0
    assert long.decimals == short.decimals + 1
    assert plan(e, 37, False, 24)[0].across.hidden > 0


def marked(shown: str, name: str) -> list[tuple[str, list[int]]]:
    """The words of a text, each with the numbers that stand below it."""
    lines = shown.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"{name}  "))
    words = [(match.start(), match.group()) for match in re.finditer(r"\S+", lines[start]) if match.start() > 2]
    found: list[tuple[str, list[int]]] = [(word, []) for _, word in words]
    for line in takewhile(lambda line: re.fullmatch(r"[\s\d]+", line), lines[start + 1 :]):
        for match in re.finditer(r"\d+", line):
            found[max(i for i, (place, _) in enumerate(words) if place <= match.start())][1].append(int(match.group()))
    return found


def test_pairs_are_numbered_in_the_texts():
    e = make("red green blue black", "one two three", special=False)
    shown = show(e, 80, top=6)
    found_a, found_b = marked(shown, "a"), marked(shown, "b")
    assert [word for word, _ in found_a] == ["red", "green", "blue", "black"]
    for rank, pair in enumerate(e.top(6), 1):
        assert rank in found_a[pair.row][1]
        assert rank in found_b[pair.column][1]
        assert pairs_of(shown)[rank - 1].split()[:4] == [str(rank), pair.a.text, "·", pair.b.text]
    assert sum(len(ranks) for _, ranks in found_a) == 6


def test_numbers_are_stacked_where_there_is_no_room_beside():
    matrix = np.arange(9, 0, -1.0).reshape(3, 3)
    shown = show(make("(a)", "x y z", matrix=matrix, special=False), 80, top=9)  # three units in one word
    assert shown.splitlines()[:7] == ["a  (a)", "   1 7 8 9", "   2", "   3", "    4", "    5", "    6"]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 12), st.integers(0, 9), st.sampled_from([30, 80]))
def test_every_number_stands_below_its_words(top, n, m, seed, width):
    random = np.random.default_rng(seed)
    text_a, text_b = (" ".join("x" * random.integers(1, 8) for _ in range(count)) for count in (n, m))
    e = make(text_a, text_b, seed=seed, special=False)
    shown = show(e, width, top=top)
    for name, places in (("a", [pair.row for pair in e.top(top)]), ("b", [pair.column for pair in e.top(top)])):
        if len({"a": text_a, "b": text_b}[name]) <= width - 3:
            found = marked(shown, name)
            assert {(i, rank) for i, (_, ranks) in enumerate(found) for rank in ranks} == {
                (place, rank) for rank, place in enumerate(places, 1)
            }


def test_special_tokens_have_a_place_when_they_are_linked():
    matrix = np.zeros((4, 3))
    matrix[0, 0] = matrix[3, 2] = 1.0
    e = make("one two", "three", matrix=matrix)
    assert "[CLS] one two [SEP]" in show(e, special=True, top=2)
    assert "[CLS]" not in show(make("one two", "three"), top=1).splitlines()[0]


def test_nothing_but_silent_special_tokens_on_one_side():
    e = make("one two", "x", matrix=np.zeros((4, 3)))
    e = replace(e, units_b=e.units_b[::2], matrix=np.zeros((4, 2)), effects_b=np.zeros(2), entry_error=np.zeros((4, 2)))
    shown = show(e, top=1)
    assert "one two" in shown
    assert shown.splitlines()[1].startswith("b")  # nothing of a is linked


def test_what_is_bare_of_zeros():
    matrix = np.full((8, 8), 1e-5)
    matrix[0, 0] = 0.5
    shown = show(make("a b c d e f g h", "a b c d e f g h", matrix=matrix, special=False), 48)
    row = next(line for line in shown.splitlines() if line.startswith("b   "))
    assert row.count("·") == 9  # the sum too
    assert show(make("a b c d e f g h", "a b c d e f g h", matrix=matrix, special=False), 48, ascii_only=True).isascii()


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["a", "bb", "ccc", "incomprehensibility", "東", "京都"]), min_size=1, max_size=40))
def test_wrapping_loses_nothing(words):
    pieces = [Piece(word, None, i % 3 > 0) for i, word in enumerate(words)]
    lines = wrap(pieces, lambda piece: cell_len(piece.text), 12)
    assert "".join(placed.piece.text for line in lines for placed in line) == "".join(words)
    for line in lines:
        assert line[-1].start + line[-1].width <= 12
        for one, other in pairwise(line):
            assert other.start == one.start + one.width + other.piece.space


def test_cutting_down_keeps_what_is_linked():
    text = " ".join(f"w{i}" for i in range(400))
    units = [Unit(text[i:j], i, j) for i, j in words(text)]
    pieces = to_pieces(text, units, axis(units, np.ones(400)), {3, 200, 399})
    lines = lay_out(pieces, {3, 200, 399}, lambda piece: len(piece.text), 60, 3)
    shown = [placed.piece.text for line in lines for placed in line]
    assert {"w3", "w200", "w399", "…"} <= set(shown)
    assert len(lines) <= 3


def test_colour_only_where_someone_watches(minilm, monkeypatch):
    monkeypatch.setattr("pairlens.cli.options.Request.load", lambda request: minilm)
    for name in ("FORCE_COLOR", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)

    def explain(*more: str, **environment: str) -> str:
        given = ["explain", *COFFEE, "--method", "output", *more]
        done = CliRunner().invoke(app, given, env={"COLUMNS": "80", **environment})
        assert done.exit_code == 0, done.output
        return done.stdout

    piped, watched = explain(), explain(FORCE_COLOR="1", COLORTERM="truecolor", TERM="xterm-256color")
    assert "\x1b" not in piped
    assert "\x1b[38;2;" in watched
    assert re.sub(r"\x1b\[[\d;]*m", "", watched) == piped
    plain = explain(FORCE_COLOR="1", NO_COLOR="1", COLORTERM="truecolor", TERM="xterm-256color")
    assert not re.search(r"\x1b\[[\d;]*[34]8;", plain)
    assert len(pairs_of(piped)) == 8
    assert len(pairs_of(explain("--top", "3"))) == 3
    assert max(map(len, explain(COLUMNS="40").splitlines())) <= 40


def test_summary():
    text = summary(make(*COFFEE))
    lines = text.splitlines()
    assert lines[:2] == [f"a: {COFFEE[0]}", f"b: {COFFEE[1]}"]
    assert re.match(r"score -?\d\.\d{4} = base 0\.0041 \+ pairs -?\d\.\d{4} \+ gap 2e-07", lines[2])
    assert len(lines) == 3 + 5 + 2
    assert repr(make(*COFFEE)) == text


@pytest.mark.parametrize(
    "texts", [COFFEE, (LONG, LONG), ("東京は大きい都市です。" * 9, "x" * 300), ("a\nb\x1b[0m", "\t")]
)
def test_summaries_have_80_columns(texts):
    e = make(*texts) if texts[1].strip() else make(texts[0], "b")
    for text in (summary(e), contrast_summary(Contrast(e, make(e.text_a, "something else")))):
        assert max(columns(line) for line in text.splitlines()) <= 80
        assert "\x1b" not in text


def test_contrast_summary():
    one, other = make(COFFEE[0], COFFEE[1], seed=1), make(COFFEE[0], "Tea is fine.", seed=2)
    c = Contrast(one, other)
    text = repr(c)
    assert text == contrast_summary(c)
    assert "query: The coffee" in text
    assert f"{'a' if c.difference >= 0 else 'b'} is closer" in text
    assert f"difference {c.difference:.4f} = units {c.effects.sum():.4f}" in text


def test_clean_and_shorten():
    assert clean("a\r\n\tb ") == "a b"
    assert clean("\x1b[0m") == "\ufffd[0m"
    assert clean(" \n") == " "
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("東京都", 4) == "東…"
    assert columns("e\u0301") == 1
