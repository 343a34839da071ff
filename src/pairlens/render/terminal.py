"""Explanations in the terminal, with rich: the texts and their links, a coloured matrix that fits, and the sums.

Colour only repeats what the numbers say: without it, in a pipe or under NO_COLOR, nothing is lost.
"""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.style import Style
from rich.text import Text

from pairlens.render.axis import Axis, axis, decimals, strengths, table
from pairlens.render.colours import LIGHT, ink_on, shade
from pairlens.render.running import Piece, lay, run
from pairlens.render.text import clean, equation, provenance, signed, tiny

if TYPE_CHECKING:
    from pairlens.attribution.explanation import Explanation, Pair

_ROWS = 24
_TEXT_LINES = 6
_BAR = 32


def view(
    e: Explanation, *, width: int, top: int = 8, special: bool = False, rows: int = _ROWS, ascii_only: bool = False
) -> Group:
    """The explanation as something that rich prints.

    Args:
        e: the explanation.
        width: how many columns there are.
        top: how many of the strongest pairs to list; their numbers stand below their words in the two texts.
        special: show every special token; otherwise they are added up in one row and one column.
        rows: how many rows the matrix may have; the weakest are added up in one more, like columns that do not fit.
        ascii_only: draw with ASCII characters, and with ? for those of the texts that are not.
    """
    marks = _ASCII if ascii_only else _MARKS
    pairs = e.top(top, special=special) or e.top(top)
    links = [Text("strongest pairs", style="bold"), *_list(pairs, width, marks), Text()] if pairs else []
    texts = _texts(e, pairs, special, width, marks)
    return Group(*texts, Text(), *links, *_matrix(e, width, special, rows, marks), Text(), *_sums(e, width))


@dataclass(frozen=True)
class _Marks:
    """What is drawn with: characters that not every terminal has."""

    cut: str
    between: str
    full: str
    left_half: str
    right_half: str
    axis: str
    zero: str
    write: Callable[[str], str]


_MARKS = _Marks(*"…·█▌▐│·", write=lambda text: text)
_ASCII = _Marks(*"~x###|0", write=lambda text: text.encode("ascii", "replace").decode())


@dataclass(frozen=True)
class _Style:
    """How numbers and labels are written; narrow terminals get shorter ones."""

    decimals: int
    bare: bool  # .12 instead of 0.12, and a mark for what rounds to zero
    label: int  # the widest label of a column

    def write(self, value: float, zero: str = "0") -> str:
        text = signed(value, self.decimals)
        if not self.bare or abs(float(text)) >= 1:
            return text
        return text.replace("0.", ".", 1) if float(text) else zero


# The two texts, with the numbers of the pairs below their words, and the pairs.


def _texts(e: Explanation, pairs: Sequence[Pair], special: bool, width: int, marks: _Marks) -> list[Text]:
    """Both texts on a few lines each; a text that is too long is cut down to what is around the linked words."""
    lines: list[Text] = []
    strength_a, strength_b = strengths(e)
    for name, text, units, strength, places, truncated in (
        ("a", e.text_a, e.units_a, strength_a, [pair.row for pair in pairs], e.truncated_a),
        ("b", e.text_b, e.units_b, strength_b, [pair.column for pair in pairs], e.truncated_b),
    ):
        side = axis(units, strength, special=special)
        numbers: dict[int | None, list[int]] = {}
        for rank, line in enumerate(map(side.lines().__getitem__, places)):
            if line is not None:
                numbers.setdefault(line, []).append(rank)
        lines += _text(name, run(text, units, side, numbers), numbers, pairs, width, marks)
        if truncated:
            note = "longer than the model takes: only its beginning is explained"
            lines += [Text(f"   {line}", style="yellow") for line in textwrap.wrap(note, max(width - 3, 20))]
    return lines


def _text(
    name: str,
    pieces: list[Piece],
    numbers: dict[int | None, list[int]],
    pairs: Sequence[Pair],
    width: int,
    marks: _Marks,
) -> list[Text]:
    """One text as it is; below each of its lines the numbers of the pairs, where their words begin."""
    peak = max((abs(pair.value) for pair in pairs), default=0.0) or 1.0
    lines: list[Text] = []
    for placed in lay(pieces, numbers, lambda p: cell_len(marks.write(p.text)), width - 3, _TEXT_LINES, gap=marks.cut):
        words = Text("   ", no_wrap=True)
        for item in placed:
            words.append(" " * (3 + int(item.start) - cell_len(words.plain)))
            linked = item.piece.line in numbers
            words.append(marks.write(item.piece.text), style=Style(bold=linked, dim=not linked))
        begun = [item for item in placed if item.piece.space or item.piece.line in numbers]
        owned = [numbers.get(item.piece.line, []) if item.piece.first else [] for item in begun]
        starts = [(3 + int(item.start), ranks) for item, ranks in zip(begun, owned, strict=True)]
        lines += [words, *_below(starts, [_colour(pair.value / peak) for pair in pairs], width)]
    lines[0] = Text.assemble((f"{name}  ", "bold"), lines[0][3:], no_wrap=True)
    return lines


def _below(starts: Sequence[tuple[int, list[int]]], styles: Sequence[Style], width: int) -> list[Text]:
    """Numbers below the words that begin at some columns: side by side as far as the next word, then stacked."""
    lines: list[Text] = []
    for (start, ranks), (end, _) in pairwise([*starts, (width + 1, [])]):
        own: list[Text] = []  # lines that end with a number of this word
        for number, style in ((str(rank + 1), styles[rank]) for rank in ranks):
            beside = [line for line in own if len(line.plain) + 1 + len(number) < end]
            free = [line for line in lines if len(line.plain) < start and line not in own]
            line = (beside or free or [Text(no_wrap=True)])[0]
            at = len(line.plain) + 1 if beside else min(start, width - len(number))
            line.append(" " * (at - len(line.plain))).append(number, style=style)
            lines += [line] if not beside and not free else []
            own += [line] if not beside else []
    return lines


def _list(pairs: Sequence[Pair], width: int, marks: _Marks) -> list[Text]:
    """The pairs with their values and bars, which go left from the axis for what takes from the score."""
    peak = max((abs(pair.value) for pair in pairs), default=0.0) or 1.0
    numbers = [signed(pair.value, decimals(peak)) for pair in pairs]
    labels = [(marks.write(clean(pair.a.text)), marks.write(clean(pair.b.text))) for pair in pairs]
    digits, order = max(map(len, numbers)), len(str(len(pairs)))
    half = (width - order - digits - 15) // 2
    room_a, room_b = (min(max(map(cell_len, side)), half) for side in zip(*labels, strict=True))
    room = min(width - order - room_a - room_b - digits - 9, _BAR)
    low, high = (max(0.0, *(sign * pair.value for pair in pairs)) for sign in (-1, 1))
    scale = room / ((low + high) or 1.0)
    left = math.ceil(low * scale)
    lines = []
    for rank, (pair, (a, b), number) in enumerate(zip(pairs, labels, numbers, strict=True), 1):
        length = abs(pair.value) * scale
        if pair.value < 0:
            bar = f"{(marks.right_half if length % 1 >= 0.5 else '') + marks.full * int(length):>{left}}"
            drawn = Text.assemble((bar, _end(pair.value)), marks.axis)
        else:
            bar = marks.full * int(length) + (marks.left_half if length % 1 >= 0.5 else "")
            drawn = Text.assemble(" " * left, marks.axis, (bar, _end(pair.value)))
        names = f"  {_cell(a, room_a, marks)} {marks.between} {_cell(b, room_b, marks)}  {number:>{digits}} "
        lines.append(Text.assemble((f"{rank:>{order}}", _colour(pair.value / peak)), names, drawn, no_wrap=True))
    return lines


# The matrix.


def _matrix(e: Explanation, width: int, special: bool, rows: int, marks: _Marks) -> list[Text]:
    """The lines of the matrix with its sums and, where there are any, the effects; within the width.

    The units of a go down. Where those of b do not all fit across and are more, they go down instead.
    """
    down, across, style, head = _plan(e, width, special, rows)
    names = "a", "b"
    if across.hidden and len(e.units_a) < len(e.units_b):
        e, names = e.swap(), ("b", "a")
        down, across, style, head = _plan(e, width, special, rows)
    if across.hidden:  # a few columns do not deserve many rows
        down, across, style, head = _plan(e, width, special, min(rows, max(8, 3 * across.single)))
    grid = table(e, down, across)
    totals = ("sum", "effects")[: len(grid) - len(down.labels)]
    labels_a, labels_b = ([marks.write(label) for label in (*side.labels, *totals)] for side in (down, across))
    widths = _widths(labels_b, grid, style)
    peak = float(np.abs(grid[: down.single, : across.single]).max(initial=0.0)) or 1.0
    lines = [Text(set_cell_size(" \\ ".join(names), head), style="dim", no_wrap=True)]
    edge = [" " if j + 1 == len(across.labels) else "" for j in range(len(labels_b))]  # of the coloured field
    for label, room, end in zip(labels_b, widths, edge, strict=True):
        lines[0].append(" " + _cell(label, room, marks, right=True) + end, style="not dim bold")
    for i, (label, numbers) in enumerate(zip(labels_a, grid, strict=True)):
        line = Text(_cell(label, head, marks), style="bold", no_wrap=True)
        for j, (value, room) in enumerate(zip(numbers, widths, strict=True)):
            inside = i < len(down.labels) and j < len(across.labels)
            written = "" if math.isnan(value) else style.write(value, marks.zero)
            line.append(f" {written:>{room}}{edge[j]}", style=_colour(value / peak) if inside else Style(bold=False))
        line.rstrip()
        lines.append(line)
    return [*lines, Text(), *_key(down, across, names, width)]


def _plan(e: Explanation, width: int, special: bool, rows: int) -> tuple[Axis, Axis, _Style, int]:
    """What goes down, what goes across, how numbers are written, and the width of the rows' labels."""
    down = axis(e.units_a, strengths(e)[0], limit=rows, special=special)
    head = min(max(cell_len(label) for label in (*down.labels, "effects")), 18 if width >= 80 else 10)
    return down, *_fit(e, down, width - head, special), head


def _fit(e: Explanation, down: Axis, room: int, special: bool) -> tuple[Axis, _Style]:
    """The columns to show and how: all of them, with shorter numbers and labels if need be, else fewer of them."""
    strength = strengths(e)[1]

    def fits(across: Axis, style: _Style) -> bool:
        labels = (*across.labels, "sum", "effects")
        return sum(width + 1 for width in _widths(labels, table(e, down, across), style)) < room

    def columns(limit: int) -> Axis:
        return axis(e.units_b, strength, limit=limit, special=special)

    everything = columns(len(e.units_b))
    peak = float(np.abs(table(e, down, everything)[: down.single, : everything.single]).max(initial=0.0)) or 1.0
    long = decimals(peak)
    short = max(long - 1, 0)
    styles = [_Style(long, False, label) for label in (12, 9, 7)] + [
        _Style(short, True, label) for label in (9, 7, 6, 5, 4)
    ]
    for style in styles:
        if fits(everything, style):
            return everything, style
    style = next((style for style in styles[-4:] if fits(columns(1), style)), styles[-1])
    few, many = 1, everything.single  # one column is always shown; `many` do not fit
    while few + 1 < many:
        middle = (few + many) // 2
        few, many = (middle, many) if fits(columns(middle), style) else (few, middle)
    return columns(few), style


def _widths(labels: Sequence[str], grid: np.ndarray, style: _Style) -> list[int]:
    """The width of every column of the grid: that of its longest number, or more for its label."""
    numbers = [max(len(style.write(value)) for value in column if not math.isnan(value)) for column in grid.T]
    return [max(n, min(cell_len(label), style.label)) for n, label in zip(numbers, labels, strict=False)]


def _key(down: Axis, across: Axis, names: Sequence[str], width: int) -> list[Text]:
    """What the colours mean, and what the folded lines add up."""
    silent = ", all zero" if down.silent + across.silent == bool(down.folded) + bool(across.folded) else ""
    notes = [
        _note("rest", names, (down.hidden, across.hidden), "weaker unit"),
        _note("special", names, (down.folded, across.folded), "token", silent),
    ]
    adds, takes = (" adds to the score   ", " takes from it") if width >= 44 else (" adds   ", " takes away")
    signs = Text.assemble((" + ", _colour(0.6)), adds, (" - ", _colour(-0.6)), takes)
    return [signs, *(Text(line, style="dim") for note in notes for line in textwrap.wrap(note, width))]


def _note(name: str, names: Sequence[str], counts: Sequence[int], what: str, more: str = "") -> str:
    """What a row and a column add up: "rest: 3 weaker units of a"; nothing if they add up nothing."""
    found = sorted((side, count) for side, count in zip(names, counts, strict=True) if count)
    parts = [f"{count} {what}{'s' * (count > 1)} of {side}" for side, count in found]
    return f"{name}: {', '.join(parts)}{more}" if parts else ""


def _sums(e: Explanation, width: int) -> list[Text]:
    """The one line of sums and gap, and how the explanation was made."""
    gaps = f"(gap of the texts: {tiny(e.gap_a)}, {tiny(e.gap_b)})"
    if e.settings.get("method") == "shapley":
        worst = float(e.entry_error.max())
        gaps = f"(standard error of a pair: at most {worst:.1g})" if worst else "(every deletion tried: exact)"
    total = equation(e)
    together = [f"{total}   {gaps}"] if len(total) + len(gaps) + 3 <= width else [*_broken(total, width), gaps]
    made = textwrap.wrap(provenance(e), width)
    return [*(Text(line, style="bold") for line in together), *(Text(line, style="dim") for line in made)]


def _broken(total: str, width: int) -> list[str]:
    """The equation on lines that begin with a sign."""
    lines = [""]
    for part in total.replace(" = ", "\n= ").replace(" + ", "\n+ ").split("\n"):
        if lines[-1] and len(lines[-1]) + 1 + len(part) > width:
            lines.append("  ")
        lines[-1] += part if not lines[-1].strip() else f" {part}"
    return lines


def _cell(label: str, room: int, marks: _Marks, *, right: bool = False) -> str:
    """A label in exactly `room` columns."""
    if cell_len(label) > room:
        label = set_cell_size(label, room - 1) + marks.cut
    padding = " " * (room - cell_len(label))
    return padding + label if right else label + padding


def _end(value: float) -> str:
    return LIGHT.apart if value < 0 else LIGHT.together


def _colour(strength: float) -> Style:
    """The cell of a value between -1 and 1: black or white on a shade, the same in light and in dark terminals."""
    # The root, so that one strong pair does not pale all others: the numbers are there to say how strong it is.
    colour = shade(math.copysign(min(abs(strength), 1.0) ** 0.6, strength))
    return Style(color=ink_on(colour), bgcolor=colour, bold=False, dim=False)
