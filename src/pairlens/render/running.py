"""Running text: a text cut into pieces that belong to units, wrapped to a width and shortened to a number of lines.

A `Measure` gives the width of a piece: in columns of a terminal, or in points of a figure.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from pairlens.render.axis import Axis
from pairlens.render.text import clean, is_wide
from pairlens.text import Unit, parts

Measure = Callable[["Piece"], float]
_NAMED = ("compound", "sentence")
"""The kinds of units that have no characters of their own, and whose names stand in brackets."""
_CONTEXTS = (32, 16, 8, 4, 2, 1, 0)
"""How many pieces to keep on either side of a linked piece in a text that is too long; the first that fits is used."""


@dataclass(frozen=True)
class Piece:
    """Characters without white space.

    Attributes:
        text: the characters, safe to show.
        line: the line of the axis that the characters belong to; None between units.
        space: whether a space goes before the piece.
        first: whether this is the first piece of its line.
    """

    text: str
    line: int | None
    space: bool
    first: bool = False


@dataclass(frozen=True)
class Placed:
    """A piece on a line of text: where it begins, and how wide it is."""

    piece: Piece
    start: float
    width: float


def cut(text: str, units: Sequence[Unit]) -> list[tuple[str, int | None]]:
    """The text cut where its units begin and end: each part with the index of its unit, or None between units.

    The parts join to the text. A unit without characters of its own has an empty part; that of an opened sentence
    stands behind its last word.

    Example:
        >>> cut("It rains.", (Unit("[CLS]", 0, 0, "special"), Unit("It", 0, 2), Unit("rains", 3, 8)))
        [('', 0), ('It', 1), (' ', None), ('rains', 2), ('.', None)]
    """
    cuts: list[tuple[str, int | None]] = []
    here = 0
    for index in _in_order(units):
        unit = units[index]
        # Several tokens may share a character: it goes to the first of them.
        start, end = max(unit.start, here), max(unit.end, here)
        if unit.kind in ("rest", "compound", "sentence") or start >= end:
            cuts.append(("", index))
            continue
        if start > here:
            cuts.append((text[here:start], None))
        cuts.append((text[start:end], index))
        here = end
    return [*cuts, (text[here:], None)] if here < len(text) else cuts


def _in_order(units: Sequence[Unit]) -> list[int]:
    """The indices of units, those of opened sentences behind their last words."""
    order = [index for index, unit in enumerate(units) if unit.kind != "sentence"]
    for index, unit in enumerate(units):
        if unit.kind == "sentence":
            order.insert(order.index(max(parts(units, index), default=order[-1])) + 1, index)
    return order


def to_pieces(text: str, units: Sequence[Unit], axis: Axis, keep: Collection[int | None]) -> list[Piece]:
    """The pieces of a text in order.

    Args:
        text: the caller's text.
        units: its units.
        axis: the lines that the units belong to.
        keep: lines that get a piece even if the text has no characters for them.

    Example:
        >>> import numpy as np
        >>> from pairlens.render.axis import axis
        >>> units = [Unit("It", 0, 2), Unit("rains", 3, 8), Unit(".", 8, 9)]
        >>> [(piece.text, piece.space) for piece in to_pieces("It rains.", units, axis(units, np.ones(3)), [])]
        [('It', False), ('rains', True), ('.', False)]
    """
    pieces: list[Piece] = []
    lines = axis.lines()
    space = False
    seen: set[int | None] = set()
    for characters, unit in cut(text, units):
        line = None if unit is None else lines[unit]
        words = re.findall(r"\s+|\S+", characters)
        if line is not None and line in keep and not characters.strip() and line not in seen:
            # Special tokens, a prompt, the rest, or a token whose character went to an earlier token.
            label = axis.labels[line].strip() or "␣"
            words = [" ", f"({label})" if unit is not None and units[unit].kind in _NAMED else label, " "]
        for word in words:
            if word.isspace():
                space = True
                continue
            pieces.append(Piece(clean(word), line, space and bool(pieces), line not in seen))
            seen.add(line)
            space = False
    return pieces


def lay_out(
    pieces: Sequence[Piece], keep: Collection[int | None], measure: Measure, width: float, limit: int, *, gap: str = "…"
) -> list[list[Placed]]:
    """The pieces on at most `limit` lines of text. If they do not fit, `gap` replaces those far from `keep`."""
    lines = wrap(pieces, measure, width)
    for context in _CONTEXTS if len(lines) > limit else ():
        lines = wrap(_excerpt(pieces, keep, context, gap), measure, width)
        if len(lines) <= limit:
            break
    return lines[:limit]


def wrap(pieces: Sequence[Piece], measure: Measure, width: float) -> list[list[Placed]]:
    """The pieces on lines of at most the given width, broken at spaces and around wide characters, else anywhere.

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
    """Groups of pieces that stay on one line if they fit; a piece that is wider than a line is split."""
    cluster: list[Piece] = []
    for piece in pieces:
        if cluster and (piece.space or is_wide(cluster[-1].text[-1]) or is_wide(piece.text[0])):
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


def _excerpt(pieces: Sequence[Piece], keep: Collection[int | None], context: int, gap: str) -> list[Piece]:
    """The pieces to keep with `context` pieces on either side, and a gap wherever others are left out."""
    # Of a unit of many words, such as a sentence, the first is enough.
    kept = [i for i, piece in enumerate(pieces) if piece.line in keep and piece.first] or [0]
    near = sorted({i for j in kept for i in range(max(0, j - context), min(len(pieces), j + context + 1))})
    excerpt: list[Piece] = []
    for before, here in pairwise([-1, *near]):
        if here > before + 1:
            excerpt += [Piece(gap, None, bool(excerpt)), replace(pieces[here], space=True)]
        else:
            excerpt.append(pieces[here])
    return [*excerpt, Piece(gap, None, True)] if near[-1] + 1 < len(pieces) else excerpt
