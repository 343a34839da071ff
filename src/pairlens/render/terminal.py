"""Explanations in the terminal, with rich: the texts, a coloured matrix that fits, the strongest pairs, the sums.

Colour only repeats what the numbers say: without it, in a pipe or under NO_COLOR, nothing is lost.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.console import Group
from rich.style import Style
from rich.table import Table
from rich.text import Text

from pairlens.render.text import clean, equation, provenance, signed, tiny

if TYPE_CHECKING:
    from pairlens.explanation import Explanation, Pair
    from pairlens.tokens import Unit

NEGATIVE, NEUTRAL, POSITIVE = (33, 102, 172), (247, 247, 247), (230, 97, 1)
"""Blue, near white, orange: told apart with every kind of colour vision, and each with a text colour of its own."""
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
        top: how many of the strongest pairs to list.
        special: show every special token; otherwise they are added up in one row and one column.
        rows: how many rows the matrix may have; the weakest are added up in one more, like columns that do not fit.
        ascii_only: draw with ASCII characters.
    """
    marks = _Marks(*("~", "x", "#", "#", "#", "|")) if ascii_only else _Marks(*"…·█▌▐│")
    parts = [_texts(e, width, marks), Text(), *_matrix(e, width, special, rows, marks), Text()]
    if pairs := e.top(top, special=special) or e.top(top):
        parts += [Text("strongest pairs", style="bold"), *_list(pairs, width, marks), Text()]
    return Group(*parts, *_sums(e, width))


@dataclass(frozen=True)
class _Marks:
    """What is drawn with: characters that not every terminal has."""

    cut: str
    between: str
    full: str
    left_half: str
    right_half: str
    axis: str


@dataclass(frozen=True)
class _Axis:
    """What is shown along one side of the matrix.

    `sums` (shown, units) adds up the units of each line; the first `single` lines are units of their own.
    """

    labels: tuple[str, ...]
    sums: np.ndarray
    single: int
    hidden: int


def _axis(units: Sequence[Unit], strength: np.ndarray, limit: int, special: bool) -> _Axis:
    """The strongest units in the text's order, then the special tokens as one, then what is left as one.

    Special tokens that contribute nothing at all, as at layer 0, are not shown.
    """
    folded = [i for i, unit in enumerate(units) if unit.kind == "special" and not special]
    listed = [i for i in range(len(units)) if i not in folded]
    order = sorted(listed, key=lambda i: -strength[i])
    shown, hidden = sorted(order[:limit]), sorted(order[limit:])
    groups = [(clean(units[i].text), [i]) for i in shown]
    groups += [("special", folded)] if strength[folded].any() else []
    groups += [("rest", hidden)] if hidden else []
    sums = np.zeros((len(groups), len(units)))
    for line, (_, members) in enumerate(groups):
        sums[line, members] = 1.0
    return _Axis(tuple(label for label, _ in groups), sums, len(shown), len(hidden))


@dataclass(frozen=True)
class _Style:
    """How numbers and labels are written; narrow terminals get shorter ones."""

    decimals: int
    bare: bool  # .12 instead of 0.12
    label: int  # the widest label of a column

    def write(self, value: float) -> str:
        text = signed(value, self.decimals)
        return text.replace("0.", ".", 1) if self.bare and self.decimals and abs(float(text)) < 1 else text


def _matrix(e: Explanation, width: int, special: bool, rows: int, marks: _Marks) -> list[Text]:
    """The lines of the matrix with its sums and, where there are any, the effects; within the width.

    The units of a go down. Where those of b do not all fit across and are more, they go down instead.
    """
    down, across, style, head = _plan(e, width, special, rows)
    names = "a", "b"
    if across.hidden and len(e.units_a) < len(e.units_b):
        e, names = e.swap(), ("b", "a")
        down, across, style, head = _plan(e, width, special, rows)
    grid = _grid(e, down, across)
    totals = ("sum", "effects")[: len(grid) - len(down.labels)]
    labels_a, labels_b = (*down.labels, *totals), (*across.labels, *totals)
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
            written = "" if math.isnan(value) else style.write(value)
            line.append(f" {written:>{room}}{edge[j]}", style=_colour(value / peak) if inside else Style(bold=False))
        lines.append(line)
    folded = [sum(unit.kind == "special" and not special for unit in units) for units in (e.units_a, e.units_b)]
    silent = sum(folded) and "special" not in (*down.labels[down.single :], *across.labels[across.single :])
    notes = [
        _note("rest", names, (down.hidden, across.hidden), "weaker unit"),
        _note("special", names, folded, "token") + (", all zero" if silent else ""),
    ]
    signs = [(" + ", _colour(0.6)), " adds to the score   ", (" - ", _colour(-0.6)), " takes from it"]
    return [*lines, Text(), Text.assemble(*signs), *(Text(note, style="dim") for note in notes if note)]


def _plan(e: Explanation, width: int, special: bool, rows: int) -> tuple[_Axis, _Axis, _Style, int]:
    """What goes down, what goes across, how numbers are written, and the width of the rows' labels."""
    down = _axis(e.units_a, np.abs(e.matrix).sum(1) + np.abs(e.effects_a), rows, special)
    head = min(max(cell_len(label) for label in (*down.labels, "effects")), 18 if width >= 80 else 10)
    return down, *_fit(e, down, width - head, special), head


def _grid(e: Explanation, down: _Axis, across: _Axis) -> np.ndarray:
    """The numbers to show: the matrix, a row and a column of its sums, and one each of effects if there are any."""
    values = down.sums @ e.matrix @ across.sums.T
    grid = np.block([[values, values.sum(1)[:, None]], [values.sum(0), values.sum()]])
    if e.effects_a.any() or e.effects_b.any():
        grid = np.pad(grid, (0, 1), constant_values=math.nan)
        grid[:-1, -1] = *(down.sums @ e.effects_a), e.effects_a.sum()
        grid[-1, :-1] = *(across.sums @ e.effects_b), e.effects_b.sum()
    return grid


def _fit(e: Explanation, down: _Axis, room: int, special: bool) -> tuple[_Axis, _Style]:
    """The columns to show and how: all of them, with shorter numbers and labels if need be, else fewer of them."""
    strength = np.abs(e.matrix).sum(0) + np.abs(e.effects_b)

    def fits(across: _Axis, style: _Style) -> bool:
        labels = (*across.labels, "sum", "effects")
        return sum(width + 1 for width in _widths(labels, _grid(e, down, across), style)) < room

    everything = _axis(e.units_b, strength, len(e.units_b), special)
    peak = float(np.abs(_grid(e, down, everything)[: down.single, : everything.single]).max(initial=0.0)) or 1.0
    decimals = _decimals(peak)
    short = max(decimals - 1, 0)
    styles = _Style(decimals, False, 12), _Style(decimals, False, 7), _Style(short, True, 7), _Style(short, True, 5)
    for style in styles:
        if fits(everything, style):
            return everything, style
    few, many = 1, everything.single  # one column is always shown; `many` do not fit
    while few + 1 < many:
        middle = (few + many) // 2
        few, many = (middle, many) if fits(_axis(e.units_b, strength, middle, special), styles[2]) else (few, middle)
    return _axis(e.units_b, strength, few, special), styles[2]


def _decimals(peak: float) -> int:
    """How many decimals give the largest number three digits."""
    return min(max(2 - math.floor(math.log10(peak)), 0), 6)


def _widths(labels: Sequence[str], grid: np.ndarray, style: _Style) -> list[int]:
    """The width of every column of the grid: that of its longest number, or more for its label."""
    numbers = [max(len(style.write(value)) for value in column if not math.isnan(value)) for column in grid.T]
    return [max(n, min(cell_len(label), style.label)) for n, label in zip(numbers, labels, strict=False)]


def _note(name: str, names: Sequence[str], counts: Sequence[int], what: str) -> str:
    """What a row and a column add up: "rest: 3 weaker units of a"; nothing if they add up nothing."""
    found = sorted((side, count) for side, count in zip(names, counts, strict=True) if count)
    parts = [f"{count} {what}{'s' * (count > 1)} of {side}" for side, count in found]
    return f"{name}: {', '.join(parts)}" if parts else ""


def _list(pairs: Sequence[Pair], width: int, marks: _Marks) -> list[Text]:
    """The pairs with their values and bars, which go left from the axis for what takes from the score."""
    peak = max(abs(pair.value) for pair in pairs) or 1.0
    decimals = _decimals(peak)
    numbers = [signed(pair.value, decimals) for pair in pairs]
    labels = [(clean(pair.a.text), clean(pair.b.text)) for pair in pairs]
    digits = max(map(len, numbers))
    room_a, room_b = (min(max(map(cell_len, side)), (width - digits - 16) // 2) for side in zip(*labels, strict=True))
    room = min(width - room_a - room_b - digits - 9, _BAR)
    low, high = (max(0.0, *(sign * pair.value for pair in pairs)) for sign in (-1, 1))
    scale = room / ((low + high) or 1.0)
    left = math.ceil(low * scale)
    lines = []
    for pair, (a, b), number in zip(pairs, labels, numbers, strict=True):
        length = abs(pair.value) * scale
        if pair.value < 0:
            bar = f"{(marks.right_half if length % 1 >= 0.5 else '') + marks.full * int(length):>{left}}"
            drawn = Text.assemble((bar, _rgb(NEGATIVE)), marks.axis)
        else:
            bar = marks.full * int(length) + (marks.left_half if length % 1 >= 0.5 else "")
            drawn = Text.assemble(" " * left, marks.axis, (bar, _rgb(POSITIVE)))
        names = f"  {_cell(a, room_a, marks)} {marks.between} {_cell(b, room_b, marks)}  {number:>{digits}}  "
        lines.append(Text.assemble(names, drawn, no_wrap=True))
    return lines


def _texts(e: Explanation, width: int, marks: _Marks) -> Table:
    grid = Table.grid(padding=(0, 2))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column(overflow="fold")
    for name, text, truncated in (("a", e.text_a, e.truncated_a), ("b", e.text_b, e.truncated_b)):
        grid.add_row(name, Text(_cell(clean(text), (width - 3) * _TEXT_LINES, marks).rstrip()))
        if truncated:
            grid.add_row("", Text("longer than the model takes: only its beginning is explained", style="yellow"))
    return grid


def _sums(e: Explanation, width: int) -> list[Text]:
    """The one line of sums and gap, and how the explanation was made."""
    total, gaps = equation(e), f"(gap of the texts: {tiny(e.gap_a)}, {tiny(e.gap_b)})"
    if e.settings.get("method") == "shapley":
        worst = float(e.entry_error.max())
        gaps = f"(standard error of a pair: at most {worst:.0e})" if worst else "(every deletion tried: exact)"
    together = [f"{total}   {gaps}"] if len(total) + len(gaps) + 3 <= width else [total, gaps]
    return [*(Text(line, style="bold") for line in together), Text(provenance(e), style="dim")]


def _cell(label: str, room: int, marks: _Marks, *, right: bool = False) -> str:
    """A label in exactly `room` columns."""
    if cell_len(label) > room:
        label = set_cell_size(label, room - 1) + marks.cut
    padding = " " * (room - cell_len(label))
    return padding + label if right else label + padding


def _colour(strength: float) -> Style:
    """The cell of a value between -1 and 1: black or white on a shade, the same in light and in dark terminals."""
    share = min(abs(strength), 1.0) ** 0.6  # so that one strong pair does not pale all others
    end = POSITIVE if strength > 0 else NEGATIVE
    shade = tuple(round(zero + share * (full - zero)) for zero, full in zip(NEUTRAL, end, strict=True))
    red, green, blue = ((channel / 255) ** 2.2 for channel in shade)
    dark = 0.2126 * red + 0.7152 * green + 0.0722 * blue < 0.18  # where white and black have the same contrast
    return Style(color="#ffffff" if dark else "#000000", bgcolor=_rgb(shade), bold=False, dim=False)


def _rgb(colour: tuple[int, ...]) -> str:
    return f"rgb({','.join(map(str, colour))})"
