"""Labels along the sides of a matrix: level or turned, and only the strongest where there is no room for all."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairlens.render.plot.figure import LABEL, LINE, NUMBER

if TYPE_CHECKING:
    from pairlens.render.plot.figure import Pen

GAP = 0.25
"""Of a cell: the space between the cells and their sums."""
_WIDEST = 64.0  # label of a column
_TIGHT = 1.1  # of the letters' size, between neighbouring labels


@dataclass(frozen=True)
class Labels:
    """What stands along one side of the cells.

    Attributes:
        places: where, in cells.
        texts: what.
        size: of the letters.
        angle: how they are turned.
        depth: how much room they need. `overhang`: and beyond the last cell.
    """

    places: tuple[float, ...] = ()
    texts: tuple[str, ...] = ()
    size: float = LABEL
    angle: int = 0
    depth: float = 0.0
    overhang: float = 0.0


def _places(count: int, strength: np.ndarray) -> np.ndarray:
    """The middles of so many cells, of which those beyond `strength` are totals."""
    middles = np.arange(count) + 0.5
    middles[len(strength) :] += GAP
    return middles


def beside(labels: Sequence[str], strength: np.ndarray, pitch: float, room: float, pen: Pen) -> Labels:
    """The labels of rows.

    Args:
        labels: of the lines, then of the totals.
        strength: of the lines.
        pitch: the height of a cell.
        room: how wide they may be.
        pen: measures them.
    """
    places = _places(len(labels), strength)
    size, kept = _sparse(places, strength, pitch)
    texts = tuple(pen.shorten(labels[i], room - 4, size) for i in kept)
    return Labels(tuple(places[kept]), texts, size, depth=max(pen.width(text, size) for text in texts) + 4)


def above(labels: Sequence[str], strength: np.ndarray, pitch: float, pen: Pen) -> Labels:
    """The labels of columns, level where they fit, else at 45 degrees, else upright."""
    places = _places(len(labels), strength)
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
    """The size of letters, and the labels that have room then: the totals' and the strongest units' first."""
    size = LABEL if pitch >= LABEL * _TIGHT else NUMBER
    kept: list[int] = []
    for i in [*range(len(strength), len(places)), *np.argsort(-strength, kind="stable")]:
        if all(abs(places[i] - places[j]) * pitch >= size * _TIGHT for j in kept):
            kept.append(int(i))
    return size, sorted(kept)
