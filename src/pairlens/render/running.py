"""A text as running text, cut into pieces that belong to units: wrapped to any width, and cut down around some units.

Widths are whatever `measure` says: columns of a terminal, or points of a page.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING

from pairlens.render.html import pieces as cut
from pairlens.render.text import clean

if TYPE_CHECKING:
    from pairlens.render.axis import Axis
    from pairlens.text import Unit

Measure = Callable[["Piece"], float]
_CONTEXTS = (32, 16, 8, 4, 2, 1, 0)
"""How many pieces stay on either side of one that must not be lost, in a text that is cut down."""


@dataclass(frozen=True)
class Piece:
    """Characters without a space among them.

    Attributes:
        text: the characters, safe to show.
        line: the line of the axis that they belong to, None for characters between the units.
        space: a space goes before.
        first: no piece before belongs to the same line.
    """

    text: str
    line: int | None
    space: bool
    first: bool = False


@dataclass(frozen=True)
class Placed:
    """A piece in its place on a line: where it begins, and how wide it is."""

    piece: Piece
    start: float
    width: float


def run(text: str, units: Sequence[Unit], axis: Axis, keep: Collection[int | None]) -> list[Piece]:
    """The pieces of a text in its order.

    Args:
        text: the caller's text.
        units: its units.
        axis: what they are along the side of a matrix.
        keep: lines that must have a piece, whether or not the text has characters for them.

    Example:
        >>> import numpy as np
        >>> from pairlens.render.axis import axis
        >>> from pairlens.tokens import Unit
        >>> units = [Unit("It", 0, 2), Unit("rains", 3, 8), Unit(".", 8, 9)]
        >>> [(piece.text, piece.space) for piece in run("It rains.", units, axis(units, np.ones(3)), [])]
        [('It', False), ('rains', True), ('.', False)]
    """
    found: list[Piece] = []
    lines = axis.lines()
    space = False
    seen: set[int | None] = set()
    for characters, unit in cut(text, tuple(units)):
        line = None if unit is None else lines[unit]
        runs = re.findall(r"\s+|\S+", characters)
        if line is not None and line in keep and not characters.strip() and line not in seen:
            # Special tokens, a prompt, the rest, or one more token of a character that an earlier one has taken.
            runs = [" ", axis.labels[line].strip() or "␣", " "]
        for word in runs:
            if word.isspace():
                space = True
                continue
            found.append(Piece(clean(word), line, space and bool(found), line not in seen))
            seen.add(line)
            space = False
    return found


def lay(
    pieces: Sequence[Piece], keep: Collection[int | None], measure: Measure, width: float, limit: int, *, gap: str = "…"
) -> list[list[Placed]]:
    """The pieces on at most `limit` lines; if there are too many, those far from the lines to keep leave a gap."""
    lines = wrap(pieces, measure, width)
    for context in _CONTEXTS if len(lines) > limit else ():
        lines = wrap(_excerpt(pieces, keep, context, gap), measure, width)
        if len(lines) <= limit:
            break
    return lines[:limit]


def wrap(pieces: Sequence[Piece], measure: Measure, width: float) -> list[list[Placed]]:
    """The pieces on lines of at most a width, broken at spaces and around wide characters, else anywhere.

    Example:
        >>> words = [Piece(word, None, True) for word in "one two three".split()]
        >>> [[(placed.piece.text, placed.start) for placed in line] for line in wrap(words, lambda p: len(p.text), 8)]
        [[('one', 0.0), ('two', 4.0)], [('three', 0.0)]]
    """
    blank = measure(Piece(" ", None, False))
    lines: list[list[Placed]] = [[]]
    end = 0.0
    for cluster in _clusters(pieces, measure, width):
        widths = [measure(piece) for piece in cluster]
        space = blank if cluster[0].space and lines[-1] else 0.0
        if lines[-1] and end + space + sum(widths) > width:
            lines.append([])
            space = end = 0.0
        for piece, room in zip(cluster, widths, strict=True):
            if lines[-1] and end + space + room > width:
                lines.append([])
                space = end = 0.0
            lines[-1].append(Placed(piece, end + space, room))
            end, space = end + space + room, 0.0
    return lines


def _clusters(pieces: Sequence[Piece], measure: Measure, width: float) -> Iterator[list[Piece]]:
    """Pieces that stay together on a line if they can."""
    cluster: list[Piece] = []
    for piece in pieces:
        if cluster and (piece.space or _wide(cluster[-1].text[-1]) or _wide(piece.text[0])):
            yield cluster
            cluster = []
        while measure(piece) > width and len(piece.text) > 1:
            text = piece.text
            fits = bisect_right(range(len(text)), width, lo=1, key=lambda n: measure(replace(piece, text=text[:n])))
            fits = max(1, fits - 1)
            cluster.append(replace(piece, text=text[:fits]))
            piece = replace(piece, text=text[fits:], space=False, first=False)
        cluster.append(piece)
    if cluster:
        yield cluster


def _wide(char: str) -> bool:
    return unicodedata.east_asian_width(char) in "WF"


def _excerpt(pieces: Sequence[Piece], keep: Collection[int | None], context: int, gap: str) -> list[Piece]:
    kept = [i for i, piece in enumerate(pieces) if piece.line in keep] or [0]
    near = sorted({i for j in kept for i in range(max(0, j - context), min(len(pieces), j + context + 1))})
    found: list[Piece] = []
    for before, here in pairwise([-1, *near]):
        if here > before + 1:
            found += [Piece(gap, None, bool(found)), replace(pieces[here], space=True)]
        else:
            found.append(pieces[here])
    return [*found, Piece(gap, None, True)] if near[-1] + 1 < len(pieces) else found
