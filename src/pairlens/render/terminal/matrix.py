"""The matrix in a terminal: coloured cells with numbers, sums and effects, shortened until they fit the width."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rich.cells import cell_len, set_cell_size
from rich.style import Style
from rich.text import Text

from pairlens.attribution.explanation import Explanation
from pairlens.render.axis import Cells, Grid, decimals, fold
from pairlens.render.terminal.style import Marks, cell_style
from pairlens.render.text import signed


@dataclass(frozen=True)
class NumberFormat:
    """How numbers and column labels are written; narrow terminals get shorter ones."""

    decimals: int
    bare: bool  # .12 instead of 0.12, and a mark for numbers that round to zero
    label: int  # the widest column label

    def write(self, value: float, zero: str = "0") -> str:
        """The number; NaN is empty."""
        if math.isnan(value):
            return ""
        text = signed(value, self.decimals)
        if not self.bare or abs(float(text)) >= 1:
            return text
        return text.replace("0.", ".", 1) if float(text) else zero

    def widths(self, table: Grid, labels: Sequence[str]) -> list[int]:
        """The width of every column: that of its longest number, or more for its label."""
        numbers = [max(len(self.write(value)) for value in column) for column in table.T]
        return [max(n, min(cell_len(label), self.label)) for n, label in zip(numbers, labels, strict=True)]


def matrix_lines(e: Explanation, width: int, special: bool, rows: int, marks: Marks) -> list[Text]:
    """The matrix within the width, with its sums and, if there are any, the effects; then its legend.

    The units of a go down. If those of b do not all fit across and are more, the units of b go down instead.
    """
    cells, form, head = plan(e, width, special, rows)
    names = "a", "b"
    if cells.across.hidden and len(e.units_a) < len(e.units_b):
        e, names = e.swap(), ("b", "a")
        cells, form, head = plan(e, width, special, rows)
    if cells.across.hidden:  # with few columns, show fewer rows too
        cells, form, head = plan(e, width, special, min(rows, max(8, 3 * cells.across.single)))
    down, across = cells.values.shape
    labels_a, labels_b = (
        [marks.write(label) for label in (*axis.labels, *cells.totals)] for axis in (cells.down, cells.across)
    )
    widths = form.widths(cells.table, labels_b)
    peak = _peak(cells)
    lines = [Text(set_cell_size(" \\ ".join(names), head), style="dim", no_wrap=True)]
    edge = [" " if j + 1 == across else "" for j in range(len(labels_b))]  # after the last coloured column
    for label, room, end in zip(labels_b, widths, edge, strict=True):
        lines[0].append(" " + marks.cell(label, room, right=True) + end, style="not dim bold")
    for i, (label, numbers) in enumerate(zip(labels_a, cells.table, strict=True)):
        line = Text(marks.cell(label, head), style="bold", no_wrap=True)
        for j, (value, room) in enumerate(zip(numbers, widths, strict=True)):
            style = cell_style(value / peak) if i < down and j < across else Style(bold=False)
            line.append(f" {form.write(value, marks.zero):>{room}}{edge[j]}", style=style)
        line.rstrip()
        lines.append(line)
    return [*lines, Text(), *_legend(cells, names, width)]


def plan(e: Explanation, width: int, special: bool, rows: int) -> tuple[Cells, NumberFormat, int]:
    """The cells to show, the format of their numbers, and the width of the row labels.

    All columns are shown if they fit, with shorter numbers and labels if needed; else the strongest ones.
    """

    def columns(limit: int | None) -> Cells:
        return fold(e, special=special, rows=rows, columns=limit)

    def fits(cells: Cells, form: NumberFormat) -> bool:
        widths = form.widths(cells.table, (*cells.across.labels, *cells.totals))
        return sum(column + 1 for column in widths) < width - head

    everything = columns(None)
    head = min(max(cell_len(label) for label in (*everything.down.labels, "effects")), 18 if width >= 80 else 10)
    digits = decimals(_peak(everything))
    forms = [NumberFormat(digits, False, label) for label in (12, 9, 7)]
    forms += [NumberFormat(max(digits - 1, 0), True, label) for label in (9, 7, 6, 5, 4)]
    for form in forms:
        if fits(everything, form):
            return everything, form, head
    form = next((form for form in forms[-4:] if fits(columns(1), form)), forms[-1])
    few, many = 1, everything.across.single  # one column is always shown; `many` do not fit
    while few + 1 < many:
        middle = (few + many) // 2
        few, many = (middle, many) if fits(columns(middle), form) else (few, middle)
    return columns(few), form, head


def _peak(cells: Cells) -> float:
    return float(np.abs(cells.units).max(initial=0.0)) or 1.0


def _legend(cells: Cells, names: Sequence[str], width: int) -> list[Text]:
    """What the colours mean, and how many units the lines "rest" and "special" sum up."""
    down, across = cells.down, cells.across
    silent = ", all zero" if down.silent + across.silent == bool(down.folded) + bool(across.folded) else ""
    notes = [
        _note("rest", names, (down.hidden, across.hidden), "weaker unit"),
        _note("special", names, (down.folded, across.folded), "token", silent),
    ]
    adds, takes = (" adds to the score   ", " takes from it") if width >= 44 else (" adds   ", " takes away")
    signs = Text.assemble((" + ", cell_style(0.6)), adds, (" - ", cell_style(-0.6)), takes)
    return [signs, *(Text(line, style="dim") for note in notes for line in textwrap.wrap(note, width))]


def _note(line: str, names: Sequence[str], counts: Sequence[int], noun: str, more: str = "") -> str:
    """What a line sums up, such as "rest: 3 weaker units of a"; empty if it sums up nothing."""
    listed = sorted((name, count) for name, count in zip(names, counts, strict=True) if count)
    parts = [f"{count} {noun}{'s' * (count > 1)} of {name}" for name, count in listed]
    return f"{line}: {', '.join(parts)}{more}" if parts else ""
