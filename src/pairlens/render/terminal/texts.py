"""Both texts in a terminal, with the numbers of the strongest pairs below their words."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from itertools import pairwise

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text

from pairlens.attribution.explanation import Explanation, Pair
from pairlens.render.axis import fold
from pairlens.render.headline import colour_floor
from pairlens.render.running import Piece, lay_out, to_pieces
from pairlens.render.terminal.style import Marks, cell_style
from pairlens.text import parts

_LINES = 6  # of one text
_TRUNCATED = "longer than the model takes: only its beginning is explained"


def both_texts(e: Explanation, pairs: Sequence[Pair], special: bool, width: int, marks: Marks) -> list[Text]:
    """The lines of both texts; a long text is shortened to the surroundings of its linked words."""
    peak = max((abs(pair.value) for pair in pairs), default=0.0)
    peak = max(peak, colour_floor(e)) or 1.0
    styles = [cell_style(pair.value / peak) for pair in pairs]
    cells = fold(e, special=special)
    lines: list[Text] = []
    for name, text, units, axis, places, truncated in (
        ("a", e.text_a, e.units_a, cells.down, [pair.row for pair in pairs], e.truncated_a),
        ("b", e.text_b, e.units_b, cells.across, [pair.column for pair in pairs], e.truncated_b),
    ):
        ranks: dict[int | None, list[int]] = {}
        places_of = axis.lines()
        for rank, place in enumerate(places):
            for unit in parts(units, place) if units[place].kind == "compound" else [place]:
                if places_of[unit] is not None:
                    ranks.setdefault(places_of[unit], []).append(rank)
        lines += _text(name, to_pieces(text, units, axis, ranks), ranks, styles, width, marks)
        if truncated:
            wrapped = textwrap.wrap(_TRUNCATED, max(width - 3, 20))
            lines += [Text(f"   {line}", style="yellow") for line in wrapped]
    return lines


def _text(
    name: str,
    pieces: list[Piece],
    ranks: dict[int | None, list[int]],
    styles: Sequence[Style],
    width: int,
    marks: Marks,
) -> list[Text]:
    """One text; below each of its lines the numbers of the pairs, where their words begin."""
    lines: list[Text] = []
    for placed in lay_out(pieces, ranks, lambda p: cell_len(marks.write(p.text)), width - 3, _LINES, gap=marks.cut):
        words = Text("   ", no_wrap=True)
        for item in placed:
            words.append(" " * (3 + int(item.start) - cell_len(words.plain)))
            linked = item.piece.line in ranks
            words.append(marks.write(item.piece.text), style=Style(bold=linked, dim=not linked))
        starts = [
            (3 + int(item.start), ranks.get(item.piece.line, []) if item.piece.first else [])
            for item in placed
            if item.piece.space or item.piece.line in ranks
        ]
        lines += [words, *_below(starts, styles, width)]
    lines[0] = Text.assemble((f"{name}  ", "bold"), lines[0][3:], no_wrap=True)
    return lines


def _below(starts: Sequence[tuple[int, list[int]]], styles: Sequence[Style], width: int) -> list[Text]:
    """The numbers below words: side by side up to the next word, then stacked.

    Args:
        starts: the column where each word begins, and the ranks of its pairs.
        styles: the style of each rank.
        width: the number of columns.
    """
    lines: list[Text] = []
    for (start, ranks), (end, _) in pairwise([*starts, (width + 1, [])]):
        used: list[Text] = []  # lines that end with a number of this word
        for number, style in ((str(rank + 1), styles[rank]) for rank in ranks):
            beside = [line for line in used if len(line.plain) + 1 + len(number) < end]
            free = [line for line in lines if len(line.plain) < start and line not in used]
            line = (beside or free or [Text(no_wrap=True)])[0]
            at = len(line.plain) + 1 if beside else min(start, width - len(number))
            line.append(" " * (at - len(line.plain))).append(number, style=style)
            lines += [line] if not beside and not free else []
            used += [line] if not beside else []
    return lines
