"""A text typeset in a figure: its pieces in their places on lines, from right to left for Hebrew or Arabic."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from matplotlib.axes import Axes

from pairlens.render.axis import Axis
from pairlens.render.colours import LIGHT
from pairlens.render.plot.canvas import Pen
from pairlens.render.running import Piece, Placed, lay_out, to_pieces
from pairlens.text import Unit

SIZE = 8.0
"""The font size in points."""
LEADING = 11.6
"""Points from line to line."""
_ASCENT, _DESCENT = 7.4, 2.6  # of a line of text, above and below its baseline
_APART, _FILL = 18.0, 0.86  # spaces are widened up to this width, and until the line fills this share
_LINES = 12  # longer texts are shortened


@dataclass(frozen=True)
class Spot:
    """The box of a unit on one line of text."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Block:
    """A typeset text.

    Attributes:
        lines: the pieces of each line of text; they start at points from the left of the figure.
        linked: the linked units, as lines of the axis.
    """

    lines: list[list[Placed]]
    linked: frozenset[int]

    @property
    def height(self) -> float:
        """The height of all lines."""
        return len(self.lines) * LEADING

    def draw(self, ax: Axes, top: float) -> dict[int, list[Spot]]:
        """Write the text, with units without a link in grey, and return the boxes of the linked units."""
        spots: dict[int, list[Spot]] = {}
        for number, line in enumerate(self.lines):
            base = top + number * LEADING + (LEADING + _ASCENT - _DESCENT) / 2
            for place in line:
                linked = place.piece.line in self.linked
                colour = LIGHT.ink if linked else LIGHT.faint
                ax.text(place.start, base, place.piece.text, fontsize=SIZE, color=colour, zorder=4)
            for unit in sorted({place.piece.line for place in line if place.piece.line is not None} & self.linked):
                parts = [place for place in line if place.piece.line == unit]
                left, right = min(part.start for part in parts), max(part.start + part.width for part in parts)
                spots.setdefault(unit, []).append(Spot(left, right, base - _ASCENT, base + _DESCENT))
                if len(parts) > 1:  # a unit of several words
                    ax.plot([left, right], [base + 2.1] * 2, color=LIGHT.faint, linewidth=0.5, zorder=4)
        return spots


def block(
    text: str, units: Sequence[Unit], axis: Axis, linked: Collection[int], left: float, right: float, pen: Pen
) -> Block:
    """A text typeset and centred between two edges; if it has one line, the spaces between its words are widened."""

    def measure(piece: Piece) -> float:
        return pen.width(piece.text, SIZE)

    backwards = _direction(text) == "R"
    room, blank = right - left, pen.width(" ", SIZE)
    lines = lay_out(to_pieces(text, units, axis, linked), linked, measure, room, _LINES)
    if len(lines) == 1 and all(place.piece.first or place.piece.line is None for place in lines[0]):
        spaces = sum(place.piece.space for place in lines[0])
        missing = _FILL * room - _end(lines[0])
        if spaces and missing > 0:
            blank += min(_APART - blank, missing / spaces)
    lines = [_visual(line, backwards, blank) for line in lines]
    widest = max(map(_end, lines))
    shifts = [left + (room - widest) / 2 + (widest - _end(line) if backwards else 0.0) for line in lines]
    moved = [[replace(p, start=p.start + by) for p in line] for line, by in zip(lines, shifts, strict=True)]
    return Block(moved, frozenset(linked))


def _end(line: Sequence[Placed]) -> float:
    return line[-1].start + line[-1].width if line else 0.0


def _visual(line: Sequence[Placed], backwards: bool, blank: float) -> list[Placed]:
    """The pieces of a line in their order from left to right, with their positions."""
    ways = [_direction(place.piece.text) or ("R" if backwards else "L") for place in line]
    runs = [list(numbers) for _, numbers in groupby(range(len(line)), key=lambda i: ways[i])]
    order = [i for part in (runs[::-1] if backwards else runs) for i in (part[::-1] if ways[part[0]] == "R" else part)]
    placed: list[Placed] = []
    end = 0.0
    for before, here in zip([None, *order], order, strict=False):
        end += blank if before is not None and line[max(before, here)].piece.space else 0.0
        placed.append(replace(line[here], start=end))
        end += line[here].width
    return placed


def _direction(text: str) -> str:
    """L or R, by the first letter that has a direction; empty if none has."""
    kinds = {"L": "L", "R": "R", "AL": "R"}
    return next((kinds[kind] for kind in map(unicodedata.bidirectional, text) if kind in kinds), "")
