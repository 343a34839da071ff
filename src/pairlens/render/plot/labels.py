"""The labels of a matrix: horizontal or turned, and only those of the strongest units if not all fit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from pairlens.render.plot.canvas import LABEL, LINE, NUMBER, Pen

GAP = 0.25
"""The space between the cells, their effects and their sums, relative to a cell."""
_WIDEST = 64.0  # points of a turned column label
_TIGHT = 1.1  # the distance of neighbouring labels, relative to the font size


@dataclass(frozen=True)
class Labels:
    """The labels of all rows or of all columns.

    Attributes:
        places: their positions, in cells.
        texts: their texts.
        size: the font size in points.
        angle: the rotation in degrees.
        depth: the width of row labels, or the height of column labels. `overhang`: the width beyond the last column.
    """

    places: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    size: float = LABEL
    angle: int = 0
    depth: float = 0.0
    overhang: float = 0.0


EMPTY = Labels()


def beside(
    labels: Sequence[str], strength: np.ndarray, places: np.ndarray, pitch: float, room: float, pen: Pen
) -> Labels:
    """The labels of rows.

    Args:
        labels: of the rows of cells, then of those after them.
        strength: of the rows of cells.
        places: the middles of all rows, in cells.
        pitch: the height of a cell.
        room: the largest width of a label.
        pen: measures labels.
    """
    size, kept = _sparse(places, strength, pitch)
    texts = tuple(pen.shorten(labels[i], room - 4, size) for i in kept)
    return Labels(tuple(places[kept]), texts, size, depth=max(pen.width(text, size) for text in texts) + 4)


def above(labels: Sequence[str], strength: np.ndarray, places: np.ndarray, pitch: float, pen: Pen) -> Labels:
    """The labels of columns: horizontal if they fit, else at 45 degrees, else vertical."""
    for size in (LABEL, NUMBER):
        if max(pen.width(label, size) for label in labels) <= pitch - 1.5:
            return Labels(tuple(places), tuple(labels), size, depth=LABEL * LINE + 1)
    turn = math.sqrt(0.5)
    if pitch * turn >= LABEL * _TIGHT:
        texts = tuple(pen.shorten(label, _WIDEST) for label in labels)
        widths = [pen.width(text) for text in texts]
        ends = [place * pitch + width * turn + 1 for place, width in zip(places, widths, strict=True)]
        over = max(0.0, max(ends) - (places[-1] + 0.5) * pitch)
        return Labels(tuple(places), texts, LABEL, 45, (max(widths) + LABEL) * turn + 2, over)
    size, kept = _sparse(places, strength, pitch)
    texts = tuple(pen.shorten(labels[i], _WIDEST, size) for i in kept)
    return Labels(tuple(places[kept]), texts, size, 90, max(pen.width(text, size) for text in texts) + 4)


def _sparse(places: np.ndarray, strength: np.ndarray, pitch: float) -> tuple[float, list[int]]:
    """The font size, and the labels that fit: those of the totals and of the strongest units first."""
    size = LABEL if pitch >= LABEL * _TIGHT else NUMBER
    kept: list[int] = []
    for i in [*range(len(strength), len(places)), *np.argsort(-strength, kind="stable")]:
        if all(abs(places[i] - places[j]) * pitch >= size * _TIGHT for j in kept):
            kept.append(int(i))
    return size, sorted(kept)
