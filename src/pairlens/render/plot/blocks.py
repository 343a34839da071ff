"""A text set in type: lines of pieces in their places, from right to left where that is how the text is written."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Sequence
from dataclasses import dataclass, replace
from itertools import groupby
from typing import TYPE_CHECKING

from pairlens.render.colours import LIGHT
from pairlens.render.running import Piece, Placed, lay, run

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairlens.render.axis import Axis
    from pairlens.render.plot.figure import Pen
    from pairlens.text import Unit

SIZE = 8.0
"""Points of the letters."""
LEADING = 11.6
"""Points from line to line."""
_ASCENT, _DESCENT = 7.4, 2.6  # of a line, above and below the baseline
_APART, _FILL = 18.0, 0.86  # the widest space between words, and how much of the width may be filled with it
_LINES = 12  # longer texts are cut down around what is linked


@dataclass(frozen=True)
class Spot:
    """Where a unit stands on one line: from left to right, from its top to its bottom."""

    left: float
    right: float
    top: float
    bottom: float


@dataclass(frozen=True)
class Block:
    """A text set in type.

    Attributes:
        lines: the pieces of each line, with the points from the left of the page.
        linked: the lines of the axis that are linked.
    """

    lines: list[list[Placed]]
    linked: frozenset[int]

    @property
    def height(self) -> float:
        """How high it is."""
        return len(self.lines) * LEADING

    def draw(self, ax: Axes, top: float) -> dict[int, list[Spot]]:
        """Write it, and say where the linked units are; those without a link are faint."""
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
    """A text set between two edges, in the middle between them; one of a single line has its words set apart."""

    def measure(piece: Piece) -> float:
        return pen.width(piece.text, SIZE)

    backwards = _direction(text) == "R"
    room, blank = right - left, pen.width(" ", SIZE)
    lines = lay(run(text, units, axis, linked), linked, measure, room, _LINES)
    if len(lines) == 1 and all(place.piece.first or place.piece.line is None for place in lines[0]):
        gaps = sum(place.piece.space for place in lines[0])
        blank += (
            min(_APART - blank, (_FILL * room - _end(lines[0])) / gaps) if gaps and _end(lines[0]) < _FILL * room else 0
        )
    lines = [_visual(line, backwards, blank) for line in lines]
    widest = max(map(_end, lines))
    shifts = [left + (room - widest) / 2 + (widest - _end(line) if backwards else 0.0) for line in lines]
    moved = [[replace(p, start=p.start + by) for p in line] for line, by in zip(lines, shifts, strict=True)]
    return Block(moved, frozenset(linked))


def _end(line: Sequence[Placed]) -> float:
    return line[-1].start + line[-1].width if line else 0.0


def _visual(line: Sequence[Placed], backwards: bool, blank: float) -> list[Placed]:
    """The pieces of a line in the order in which they stand from left to right."""
    ways = [_direction(place.piece.text) or ("R" if backwards else "L") for place in line]
    runs = [list(numbers) for _, numbers in groupby(range(len(line)), key=lambda i: ways[i])]
    order = [i for part in (runs[::-1] if backwards else runs) for i in (part[::-1] if ways[part[0]] == "R" else part)]
    found: list[Placed] = []
    end = 0.0
    for before, here in zip([None, *order], order, strict=False):
        end += blank if before is not None and line[max(before, here)].piece.space else 0.0
        found.append(replace(line[here], start=end))
        end += line[here].width
    return found


def _direction(text: str) -> str:
    """L or R, by the first letter that has a direction; nothing if none has."""
    kinds = {"L": "L", "R": "R", "AL": "R"}
    return next((kinds[kind] for kind in map(unicodedata.bidirectional, text) if kind in kinds), "")
