"""A text typeset in a figure: its pieces in their places on lines, from right to left for Hebrew or Arabic."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import groupby

from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from pairlens.render.axis import Axis
from pairlens.render.colours import LIGHT, ink_on
from pairlens.render.plot.canvas import NUMBER, Pen
from pairlens.render.running import Piece, Placed, lay_out, to_pieces
from pairlens.text import Unit

SIZE = 8.0
"""The font size in points."""
LEADING = 11.6
"""Points from line to line."""
_ASCENT, _DESCENT = 7.4, 2.6  # of a line of text, above and below its baseline
_APART, _FILL = 18.0, 0.86  # spaces are widened up to this width, and until the line fills this share
_LINES = 12  # longer texts are shortened
_NUMBER = 7.5  # the height of the numbers above or below a line
_SHIFT = 9.0  # how far a number may be from the middle of its word


@dataclass(frozen=True)
class Looks:
    """What is shown of the units of a text besides its links.

    Attributes:
        tints: the colours behind units, by line of the axis.
        numbers: the numbers above or below units, by line of the axis; the first ones get a place first.
        above: whether the numbers are above the words.
        marked: units that belong to a compound, by line of the axis; they are underlined.
    """

    tints: Mapping[int | None, str]
    numbers: Mapping[int | None, str]
    above: bool
    marked: Collection[int | None] = ()


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
        looks: what is shown of the units themselves.
    """

    lines: list[list[Placed]]
    linked: frozenset[int]
    looks: Looks

    @property
    def leading(self) -> float:
        """The distance from line to line, with the numbers beside them."""
        return LEADING + (_NUMBER if self.looks.numbers else 0.0)

    @property
    def height(self) -> float:
        """The height of all lines."""
        return len(self.lines) * self.leading

    def draw(self, ax: Axes, top: float) -> dict[int, list[Spot]]:
        """Write the text, with units without a link in grey, and return the boxes of the linked units."""
        spots: dict[int, list[Spot]] = {}
        start = _NUMBER if self.looks.numbers and self.looks.above else 0.0
        for number, line in enumerate(self.lines):
            base = top + number * self.leading + start + (LEADING + _ASCENT - _DESCENT) / 2
            self._draw_looks(ax, line, base)
            for place in line:
                tint = self.looks.tints.get(place.piece.line)
                plain = LIGHT.ink if place.piece.line in self.linked else LIGHT.faint
                colour = plain if tint is None else ink_on(tint)
                ax.text(place.start, base, place.piece.text, fontsize=SIZE, color=colour, zorder=4)
            for unit in sorted({place.piece.line for place in line if place.piece.line is not None} & self.linked):
                parts = [place for place in line if place.piece.line == unit]
                left, right = min(part.start for part in parts), max(part.start + part.width for part in parts)
                spots.setdefault(unit, []).append(Spot(left, right, base - _ASCENT, base + _DESCENT))
                if len(parts) > 1:  # a unit of several words
                    ax.plot([left, right], [base + 2.1] * 2, color=LIGHT.faint, linewidth=0.5, zorder=4)
        return spots

    def _draw_looks(self, ax: Axes, line: Sequence[Placed], base: float) -> None:
        """The colours behind the units of a line, and the numbers above or below them where there is room."""
        at = base - _ASCENT - 2.0 if self.looks.above else base + _DESCENT + NUMBER - 0.2
        taken: list[tuple[float, float]] = []
        for place in (place for place in line if place.piece.line in self.looks.tints):
            box = Rectangle((place.start - 0.8, base - _ASCENT + 0.2), place.width + 1.6, _ASCENT + _DESCENT - 0.4)
            tint = self.looks.tints[place.piece.line]
            ax.add_collection(PatchCollection([box], color=tint, linewidth=0, zorder=3))
        for place in (place for place in line if place.piece.line in self.looks.marked):
            ends = [place.start, place.start + place.width]
            ax.plot(ends, [base + 2.0] * 2, color=LIGHT.faint, linewidth=0.8, linestyle=":", zorder=5)
        places = {place.piece.line: place for place in line if place.piece.first}
        for place, number in ((places[unit], text) for unit, text in self.looks.numbers.items() if unit in places):
            half = 0.29 * NUMBER * len(number)
            wanted = min(max(place.start + place.width / 2, half + 1), ax.get_xlim()[1] - half - 1)
            beside = [other + sign * (half + width + 1.5) for other, width in taken for sign in (-1, 1)]
            free = [
                middle
                for middle in sorted([wanted, *beside], key=lambda middle: abs(middle - wanted))
                if abs(middle - wanted) < _SHIFT and all(abs(middle - x) > half + width + 1 for x, width in taken)
            ]
            if free:
                ax.text(free[0], at, number, fontsize=NUMBER, color=LIGHT.faint, ha="center", zorder=4)
                taken.append((free[0], half))


def block(
    text: str,
    units: Sequence[Unit],
    axis: Axis,
    linked: Collection[int],
    edges: tuple[float, float],
    pen: Pen,
    looks: Looks,
) -> Block:
    """A text typeset and centred between two edges; if it has one line, the spaces between its words are widened."""
    left, right = edges

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
    return Block(moved, frozenset(linked), looks)


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
