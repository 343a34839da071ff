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
from pairlens.render.headline import colour_floor, headline, lead, standing_out, unknown
from pairlens.render.names import label
from pairlens.render.terminal.matrix import matrix_lines
from pairlens.render.terminal.style import ASCII, UNICODE, Marks, bar_colour, cell_style
from pairlens.render.terminal.texts import both_texts
from pairlens.render.text import MEANINGS, SAMPLED, clean, forecast, number, provenance, signed, terms

_ROWS = 24
_BAR = 32
_RANKS = "   numbers: pairs in the list below"


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
    pairs = standing_out(e, top, special=special)
    listed = [Text("strongest pairs", style="bold"), *_list(pairs, colour_floor(e), width, marks)] if pairs else []
    texts = both_texts(e, pairs, special, width, marks)
    if pairs:
        texts.append(Text(marks.write(_RANKS), style="dim"))
    said = [Text(lead(e), style="bold"), *map(Text, textwrap.wrap(marks.write(headline(e)), width))]
    said += [Text(line, style="yellow") for line in textwrap.wrap(marks.write(unknown(e)), width)]
    sections = said, texts, listed, matrix_lines(e, width, special, rows, marks), _sums(e, width, marks)
    lines = [line for section in sections if section for line in (*section, Text())]
    return Group(*lines[:-1])


def _list(pairs: Sequence[Pair], least: float, width: int, marks: Marks) -> list[Text]:
    """The pairs with their values and bars, which are short where all values are below `least`.

    Bars of negative values go left from the axis.
    """
    strongest = max(abs(pair.value) for pair in pairs)
    peak = max(strongest, least) or 1.0
    numbers = [signed(pair.value, decimals(strongest or 1.0)) for pair in pairs]
    labels = [(marks.write(clean(label(pair.a))), marks.write(clean(label(pair.b)))) for pair in pairs]
    digits, order = max(map(len, numbers)), len(str(len(pairs)))
    half = (width - order - digits - 15) // 2
    room_a, room_b = (min(max(map(cell_len, side)), half) for side in zip(*labels, strict=True))
    room = min(width - order - room_a - room_b - digits - 9, _BAR)
    low, high = (max(0.0, *(sign * pair.value for pair in pairs)) for sign in (-1, 1))
    scale = room / max(low + high, peak)
    left = math.ceil(low * scale)
    lines = []
    for rank, (pair, (a, b), value) in enumerate(zip(pairs, labels, numbers, strict=True), 1):
        length = abs(pair.value) * scale
        if pair.value < 0:
            bar = f"{(marks.right_half if length % 1 >= 0.5 else '') + marks.full * int(length):>{left}}"
            drawn = Text.assemble((bar, bar_colour(pair.value)), marks.axis)
        else:
            bar = marks.full * int(length) + (marks.left_half if length % 1 >= 0.5 else "")
            drawn = Text.assemble(" " * left, marks.axis, (bar, bar_colour(pair.value)))
        names = f"  {marks.cell(a, room_a)} {marks.between} {marks.cell(b, room_b)}  {value:>{digits}} "
        lines.append(Text.assemble((f"{rank:>{order}}", cell_style(pair.value / peak)), names, drawn, no_wrap=True))
    return lines


def _sums(e: Explanation, width: int, marks: Marks) -> list[Text]:
    """The terms that add up to the score, what they mean, how far they can be trusted, and the settings."""
    rows = [*terms(e), ("score", number(e.score), e.score)]
    names, digits = max(len(name) for name, _, _ in rows), max(len(text) for _, text, _ in rows)
    room = width - names - digits - 6
    lines = [Text("what the score is made of", style="bold")]
    for name, text, _ in rows:
        line = Text(f"  {name:<{names}}  {text:>{digits}}", style="bold" if name == "score" else "", no_wrap=True)
        meaning = MEANINGS.get(name, "")
        if meaning and len(meaning) <= room:
            line.append(f"  {meaning}", style="dim")
        lines.append(line)
        if len(meaning) > room:
            lines += [Text(f"    {part}", style="dim") for part in textwrap.wrap(meaning, width - 4)]
    style = "yellow" if e.forecast is not None and e.forecast.is_low else "bold"
    notes = (forecast(e), style), (_error(e), "dim"), (provenance(e), "dim")
    footer = [Text(line, style=style) for note, style in notes for line in textwrap.wrap(marks.write(note), width)]
    return [*lines, Text(), *footer]


def _error(e: Explanation) -> str:
    """How exact the pairs of a method that samples are; empty for other methods."""
    if e.settings.get("method") not in SAMPLED:
        return ""
    worst = float(e.entry_error.max(initial=0.0))
    return f"standard error of a pair: at most {worst:.1g}" if worst else "every deletion tried: exact"
