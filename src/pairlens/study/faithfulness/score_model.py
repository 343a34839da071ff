"""An explanation read as a small model of the score: what it says about the score after deletions.

Keep the units S of text a and T of text b, and an explanation says

    g(S, T) = base + gap + Σ_{s in S} effects_a + Σ_{t in T} effects_b + Σ_{s in S, t in T} matrix[s, t]

Special tokens and prompts always stay; a compound stays while all its units do. With the gap in the constant, g of the
whole texts is the model's score. For rivals, which have nothing but a matrix, the constant is the score less the sum of
the matrix: the fairest reading of their entries as amounts.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from pairlens.attribution import Explanation
from pairlens.shapes import Array, Matrix, PerUnitA, PerUnitB
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.text import Unit, rows_without


class ScoreModel:
    """What an explanation says about the score after deletions.

    Args:
        explanation: the explanation, at the level of the texts.
        a: the first text.
        b: the second.

    Attributes:
        explanation: as given.
    """

    def __init__(self, explanation: Explanation, a: DeletableText, b: DeletableText) -> None:
        self.explanation = explanation
        self._lost_a, self._lost_b = _lost_rows(explanation.units_a, a), _lost_rows(explanation.units_b, b)

    def predict(self, left_a: Array, left_b: Array) -> Array:
        """The predicted scores of shortened texts, (draws,).

        Args:
            left_a: which of the deletable units of text a are left, (draws, count of a), booleans.
            left_b: likewise for text b.
        """
        e = self.explanation
        rows, columns = _left_rows(left_a, self._lost_a), _left_rows(left_b, self._lost_b)
        pairs = ((rows @ e.matrix) * columns).sum(1)
        return e.base + e.gap + rows @ e.effects_a + columns @ e.effects_b + pairs

    @property
    def losses(self) -> tuple[PerUnitA, PerUnitB]:
        """What the score loses with each deletable unit alone, of a and of b, as the explanation says."""
        e = self.explanation
        return self._lost_a @ (e.row + e.effects_a), self._lost_b @ (e.column + e.effects_b)

    @property
    def joint_losses(self) -> Matrix:
        """What the score loses with both units of a pair: their own losses, less the entries that are in both."""
        return np.add.outer(*self.losses) - self._lost_a @ self.explanation.matrix @ self._lost_b.T

    @property
    def matrix(self) -> Matrix:
        """The entries of pairs of deletable units; a compound's entries are divided evenly among its units."""
        shares = [lost / np.maximum(lost.sum(0), 1) for lost in (self._lost_a, self._lost_b)]
        return shares[0] @ self.explanation.matrix @ shares[1].T


def _left_rows(left: Array, lost: Array) -> Array:
    """Which rows of an explanation are left with some of the deletable units, (draws, rows), as 0 and 1."""
    return ((~left).astype(float) @ lost == 0).astype(float)


def _lost_rows(units: Sequence[Unit], text: DeletableText) -> Array:
    """Which rows of an explanation go with each deletable unit: its own, and those of compounds, (count, units)."""
    lost = np.zeros((text.count, len(units)))
    for row, player in zip(lost, text.players, strict=True):
        row[rows_without(units, [int(player)])] = 1.0
    return lost
