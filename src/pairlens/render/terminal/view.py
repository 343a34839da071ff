"""The view of an explanation that a terminal prints, put together from its parts."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Sequence

from rich.cells import cell_len
from rich.console import Group
from rich.text import Text

from pairlens.attribution.explanation import Explanation, Pair
from pairlens.render.axis import decimals
from pairlens.render.terminal.matrix import matrix_lines
from pairlens.render.terminal.style import ASCII, UNICODE, Marks, bar_colour, cell_style
from pairlens.render.terminal.texts import both_texts
from pairlens.render.text import clean, equation, provenance, signed, tiny

_ROWS = 24
_BAR = 32


def view(
    e: Explanation, *, width: int, top: int = 8, special: bool = False, rows: int = _ROWS, ascii_only: bool = False
) -> Group:
    """The explanation as a rich renderable.

    Args:
        e: the explanation.
        width: the number of columns of the terminal.
        top: how many of the strongest pairs to list; their numbers are repeated below their words in both texts.
        special: show every special token; otherwise they are summed up in one row and one column.
        rows: how many rows the matrix may have; one more row sums up the weakest units, as one more column does.
        ascii_only: draw with ASCII characters, and write ? for other characters of the texts.
    """
    marks = ASCII if ascii_only else UNICODE
    pairs = e.top(top, special=special) or e.top(top)
    listed = [Text("strongest pairs", style="bold"), *_list(pairs, width, marks), Text()] if pairs else []
    texts = both_texts(e, pairs, special, width, marks)
    return Group(*texts, Text(), *listed, *matrix_lines(e, width, special, rows, marks), Text(), *_sums(e, width))


def _list(pairs: Sequence[Pair], width: int, marks: Marks) -> list[Text]:
    """The pairs with their values and bars; bars of negative values go left from the axis."""
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
            drawn = Text.assemble((bar, bar_colour(pair.value)), marks.axis)
        else:
            bar = marks.full * int(length) + (marks.left_half if length % 1 >= 0.5 else "")
            drawn = Text.assemble(" " * left, marks.axis, (bar, bar_colour(pair.value)))
        names = f"  {marks.cell(a, room_a)} {marks.between} {marks.cell(b, room_b)}  {number:>{digits}} "
        lines.append(Text.assemble((f"{rank:>{order}}", cell_style(pair.value / peak)), names, drawn, no_wrap=True))
    return lines


def _sums(e: Explanation, width: int) -> list[Text]:
    """The equation of the score with the gaps of both texts, and the settings."""
    gaps = f"(gap of the texts: {tiny(e.gap_a)}, {tiny(e.gap_b)})"
    if e.settings.get("method") == "shapley":
        worst = float(e.entry_error.max())
        gaps = f"(standard error of a pair: at most {worst:.1g})" if worst else "(every deletion tried: exact)"
    total = equation(e)
    lines = [f"{total}   {gaps}"] if len(total) + len(gaps) + 3 <= width else [*_broken(total, width), gaps]
    settings = textwrap.wrap(provenance(e), width)
    return [*(Text(line, style="bold") for line in lines), *(Text(line, style="dim") for line in settings)]


def _broken(total: str, width: int) -> list[str]:
    """The equation on several lines, each of which begins with a sign."""
    lines = [""]
    for part in total.replace(" = ", "\n= ").replace(" + ", "\n+ ").split("\n"):
        if lines[-1] and len(lines[-1]) + 1 + len(part) > width:
            lines.append("  ")
        lines[-1] += part if not lines[-1].strip() else f" {part}"
    return lines
