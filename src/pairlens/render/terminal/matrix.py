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
from pairlens.render.axis import Cells, decimals, fold
from pairlens.render.deletion import Without
from pairlens.render.names import SENTENCES, noun
from pairlens.render.terminal.style import NOISE, Marks, cell_style
from pairlens.render.text import signed, without_note


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

    def write_score(self, known: Without | None) -> str:
        """The score without a unit, with a mark if it is a forecast; empty if it is not known."""
        if known is None:
            return ""
        text = signed(known.score, min(self.decimals, 2)).lstrip("+")
        return ("" if known.measured else "~") + (text.replace("0.", ".", 1) if self.bare else text)

    def table(self, cells: Cells, zero: str = "0") -> list[list[str]]:
        """The numbers of the cells, with the totals, and the score without each unit if that is known."""
        rows = [[self.write(value, zero) for value in row] for row in cells.table]
        down, across = cells.without
        if not any((*down, *across)):
            return rows
        totals = [None] * len(cells.totals)
        rows = [[*row, self.write_score(known)] for row, known in zip(rows, (*down, *totals), strict=True)]
        return [*rows, [*map(self.write_score, (*across, *totals)), ""]]

    def widths(self, table: Sequence[Sequence[str]], labels: Sequence[str], totals: Sequence[str]) -> list[int]:
        """The width of every column: that of its longest number, or more for its label; totals come last."""
        numbers = [max(map(len, column)) for column in zip(*table, strict=True)]
        whole = max(self.label, 7) if self.label > 5 else self.label  # the names of totals are cut last
        rooms = [self.label] * len(labels) + [whole] * len(totals)
        named = zip(numbers, (*labels, *totals), rooms, strict=True)
        return [max(n, min(cell_len(label), room)) for n, label, room in named]


def matrix_lines(e: Explanation, width: int, special: bool, rows: int, marks: Marks) -> list[Text]:
    """The matrix within the width, with its sums and, if there are any, the effects; then its legend.

    The units of a go down. If those of b do not all fit across and are more, the units of b go down instead, and the
    title says so.
    """
    cells, form, head = plan(e, width, special, rows)
    names = "a", "b"
    if cells.across.hidden and len(e.units_a) < len(e.units_b):
        e, names = e.swap(), ("b", "a")
        cells, form, head = plan(e, width, special, rows)
    if cells.across.hidden:  # with few columns, show fewer rows too
        cells, form, head = plan(e, width, special, min(rows, max(8, 3 * cells.across.single)))
    table = form.table(cells, marks.zero)
    totals = _totals(cells)
    labels_a, labels_b = ([marks.write(label) for label in axis.labels] for axis in (cells.down, cells.across))
    styles = _styles(cells, len(table))
    widths = form.widths(table, labels_b, totals)
    labels_a, labels_b = [*labels_a, *totals], [*labels_b, *totals]
    turned = ", turned to fit" * (names[0] == "b")
    title = Text.assemble(("every pair", "bold"), (f"  {names[0]} down, {names[1]} across{turned}", "dim"))
    lines = [Text(set_cell_size(" \\ ".join(names), head), style="dim", no_wrap=True)]
    last = cells.values.shape[1] - 1
    edges = [" " * (j in (last, last + cells.has_effects)) for j in range(len(labels_b))]  # after coloured columns
    for label, room, edge in zip(labels_b, widths, edges, strict=True):
        lines[0].append(" " + marks.cell(label, room, right=True) + edge, style="not dim bold")
    for label, numbers, shades in zip(labels_a, table, styles, strict=True):
        line = Text(marks.cell(label, head), style="bold", no_wrap=True)
        for number, room, style, edge in zip(numbers, widths, shades, edges, strict=True):
            line.append(f" {number:>{room}}", style=style).append(edge)
        line.rstrip()
        lines.append(line)
    return [title, *lines, Text(), *_legend(cells, names, width)]


def plan(e: Explanation, width: int, special: bool, rows: int) -> tuple[Cells, NumberFormat, int]:
    """The cells to show, the format of their numbers, and the width of the row labels.

    All columns are shown if they fit, with shorter numbers and labels if needed; else the strongest ones.
    """

    def columns(limit: int | None) -> Cells:
        return fold(e, special=special, rows=rows, columns=limit)

    def fits(cells: Cells, form: NumberFormat) -> bool:
        widths = form.widths(form.table(cells), cells.across.labels, _totals(cells))
        return sum(column + 1 for column in widths) + cells.has_effects < width - head

    everything = columns(None)
    head = min(max(cell_len(label) for label in (*everything.down.labels, "effects")), 18 if width >= 80 else 10)
    digits = decimals(float(np.abs(everything.units).max(initial=0.0)) or 1.0)
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


def _totals(cells: Cells) -> tuple[str, ...]:
    """The labels of the rows and columns after those of the values."""
    return (*cells.totals, "without") if any(map(any, cells.without)) else cells.totals


def _styles(cells: Cells, size: int) -> list[list[Style]]:
    """The style of every number: pairs and effects are coloured on one scale."""
    down, across = cells.values.shape
    columns = across + len(_totals(cells))
    plain, peak = Style(bold=False), (cells.peak or 1.0)

    def style(i: int, j: int) -> Style:
        if i < down and j < across and cells.noise[i, j]:
            return NOISE
        coloured = (i < down and j < across + cells.has_effects) or (i < down + cells.has_effects and j < across)
        return cell_style(cells.table[i, j] / peak) if coloured else plain

    return [[style(i, j) for j in range(columns)] for i in range(size)]


def _legend(cells: Cells, names: Sequence[str], width: int) -> list[Text]:
    """What the colours and the totals mean, and how many units the lines "rest" and "special" sum up."""
    down, across = cells.down, cells.across
    silent = ", all zero" if down.silent + across.silent == bool(down.folded) + bool(across.folded) else ""
    notes = [
        "effects: what a word does by itself" * cells.has_effects,
        "dim pairs: less than two standard errors from zero, may be noise" * bool(cells.noise.any()),
        without_note(cells.without, "without", noun(cells.e.settings)),
        SENTENCES * any(unit.kind == "sentence" for unit in (*cells.e.units_a, *cells.e.units_b)),
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
