"""What goes along the sides of a matrix that is shown: the units, and in one line each what is folded or left over."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from pairlens.render.text import clean

if TYPE_CHECKING:
    from pairlens.attribution.explanation import Explanation
    from pairlens.text import Unit


@dataclass(frozen=True)
class Axis:
    """The lines along one side of a matrix.

    Attributes:
        labels: one for every line.
        sums: (lines, units), 1 where a unit belongs to a line.
        single: how many lines are units of their own; they come first.
        hidden: how many units are added up in the line "rest".
        folded: how many special tokens are added up, in a line "special" unless they contribute nothing at all.
    """

    labels: tuple[str, ...]
    sums: np.ndarray
    single: int
    hidden: int
    folded: int

    @property
    def silent(self) -> bool:
        """Whether there are folded special tokens and no line for them."""
        return bool(self.folded) and "special" not in self.labels[self.single :]

    def lines(self) -> list[int | None]:
        """The line of every unit, None for a unit that no line holds."""
        return [int(column.argmax()) if column.any() else None for column in self.sums.T]


def axis(units: Sequence[Unit], strength: np.ndarray, *, limit: int | None = None, special: bool = False) -> Axis:
    """The strongest units in the text's order, then the special tokens as one, then what is left as one.

    Special tokens that contribute nothing at all, as at layer 0, are shown only where there is nothing else.

    Args:
        units: of one text.
        strength: how strong each unit is, (units,).
        limit: how many units there may be, all of them by default.
        special: every special token is a unit like the others.

    Example:
        >>> from pairlens.tokens import Unit
        >>> units = [Unit(word, 0, 1) for word in ("not", "so", "good")]
        >>> axis(units, np.array([2.0, 1.0, 3.0]), limit=2).labels
        ('not', 'good', 'rest')
    """
    folded = [i for i, unit in enumerate(units) if unit.kind == "special" and not special]
    listed = [i for i in range(len(units)) if i not in folded]
    order = sorted(listed, key=lambda i: -strength[i])
    shown, hidden = sorted(order[:limit]), sorted(order[len(order[:limit]) :])
    groups = [(clean(units[i].text), [i]) for i in shown]
    groups += [("special", folded)] if strength[folded].any() or (folded and not groups) else []
    groups += [("rest", hidden)] if hidden else []
    sums = np.zeros((len(groups), len(units)))
    for line, (_, members) in enumerate(groups):
        sums[line, members] = 1.0
    return Axis(tuple(label for label, _ in groups), sums, len(shown), len(hidden), len(folded))


def strengths(e: Explanation) -> tuple[np.ndarray, np.ndarray]:
    """How much each unit of a and each unit of b takes part, whatever the sign: (units_a,) and (units_b,)."""
    size = np.abs(e.matrix)
    return size.sum(1) + np.abs(e.effects_a), size.sum(0) + np.abs(e.effects_b)


def table(e: Explanation, down: Axis, across: Axis) -> np.ndarray:
    """The numbers to show: the matrix, a row and a column of its sums, and one each of effects if there are any."""
    values = down.sums @ e.matrix @ across.sums.T
    grid = np.block([[values, values.sum(1)[:, None]], [values.sum(0), values.sum()]])
    if e.effects_a.any() or e.effects_b.any():
        grid = np.pad(grid, (0, 1), constant_values=math.nan)
        grid[:-1, -1] = *(down.sums @ e.effects_a), e.effects_a.sum()
        grid[-1, :-1] = *(across.sums @ e.effects_b), e.effects_b.sum()
    return grid


def decimals(peak: float, digits: int = 3) -> int:
    """How many decimals give the largest number so many digits.

    Example:
        >>> decimals(0.598), decimals(0.598, 2), decimals(41.2, 2)
        (3, 2, 0)
    """
    return min(max(digits - 1 - math.floor(math.log10(peak)), 0), 6) if peak > 0 else digits
