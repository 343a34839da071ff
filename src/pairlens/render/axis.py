"""The rows, columns and numbers of a matrix as shown: special tokens and weak units are summed up in one line each."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.render.deletion import Without, without_each
from pairlens.render.headline import colour_floor
from pairlens.render.names import label
from pairlens.render.text import clean
from pairlens.shapes import Bool, Float, PerUnit, PerUnitA, PerUnitB
from pairlens.text import Unit

Grid = Float[np.ndarray, "rows columns"]
"""One number for every cell that is shown."""


@dataclass(frozen=True)
class Axis:
    """The lines along one side of a matrix.

    Attributes:
        labels: the label of every line.
        sums: (lines, units), 1 where a unit belongs to a line.
        single: how many lines hold exactly one unit; they come first.
        hidden: how many units the line "rest" sums up.
        folded: how many special tokens the line "special" sums up. It is left out if they all contribute zero.
    """

    labels: tuple[str, ...]
    sums: Float[np.ndarray, "lines units"]
    single: int
    hidden: int
    folded: int

    @property
    def silent(self) -> bool:
        """Whether there are folded special tokens and no line for them."""
        return bool(self.folded) and "special" not in self.labels[self.single :]

    def lines(self) -> list[int | None]:
        """The line of every unit; None for a unit that no line holds."""
        return [int(column.argmax()) if column.any() else None for column in self.sums.T]


@dataclass(frozen=True)
class Cells:
    """The cells of an explanation's matrix that are shown, with a in the rows (`down`) and b in the columns."""

    e: Explanation
    down: Axis
    across: Axis

    @cached_property
    def values(self) -> Grid:
        """The value of every cell, (rows, columns)."""
        return self.down.sums @ self.e.matrix @ self.across.sums.T

    @property
    def units(self) -> Grid:
        """The values of the cells that are one pair of units each."""
        return self.values[: self.down.single, : self.across.single]

    @cached_property
    def noise(self) -> Bool[np.ndarray, "rows columns"]:
        """Which cells are a pair of units that may be noise."""
        noise = np.zeros(self.values.shape, dtype=bool)
        down, across = self.down.single, self.across.single
        noise[:down, :across] = self.down.sums[:down] @ self.e.noise @ self.across.sums[:across].T > 0
        return noise

    @property
    def settled(self) -> Grid:
        """The values, with zeros for pairs that may be noise: what has a colour or a curve."""
        return np.where(self.noise, 0.0, self.values)

    @property
    def peak(self) -> float:
        """The value with the strongest colour: the strongest pair or effect of single units; more if all are weak."""
        effects_a, effects_b = self.effects
        single = self.units, effects_a[: self.down.single], effects_b[: self.across.single]
        return max(colour_floor(self.e), *(float(np.abs(values).max(initial=0.0)) for values in single))

    @property
    def labels(self) -> tuple[str, ...]:
        """The labels of all rows and columns."""
        return *self.down.labels, *self.across.labels

    @property
    def has_effects(self) -> bool:
        """Whether the units contribute anything with the other text's reference."""
        return bool(self.e.effects_a.any() or self.e.effects_b.any())

    @cached_property
    def effects(self) -> tuple[Float[np.ndarray, " rows"], Float[np.ndarray, " columns"]]:
        """The effects of the rows and of the columns."""
        return self.down.sums @ self.e.effects_a, self.across.sums @ self.e.effects_b

    @cached_property
    def table(self) -> Grid:
        """The values with a row and a column of effects, if there are any, and one each of their sums.

        All that is shown adds up to the last entry.
        """
        grid = self.values
        if self.has_effects:
            grid = np.pad(grid, (0, 1))
            grid[:-1, -1], grid[-1, :-1] = self.effects
        grid = np.block([[grid, grid.sum(1)[:, None]], [grid.sum(0), grid.sum()]])
        if self.has_effects:
            grid[-2, -2] = math.nan
        return grid

    @property
    def totals(self) -> tuple[str, ...]:
        """The labels of the rows and columns that `table` has after those of the values."""
        return ("effects", "sum") if self.has_effects else ("sum",)

    @cached_property
    def without(self) -> tuple[list[Without | None], list[Without | None]]:
        """The score without each row and without each column; None for lines of several units."""
        known_a, known_b = without_each(self.e)
        return _of_lines(self.down, known_a), _of_lines(self.across, known_b)


def fold(e: Explanation, *, special: bool = False, rows: int | None = None, columns: int | None = None) -> Cells:
    """The cells of an explanation, with its weakest units summed up where only so many rows or columns may be shown.

    Args:
        e: the explanation.
        special: show every special token; otherwise those of a text are summed up in one line.
        rows, columns: how many units of a and of b may have their own line; all of them by default.
    """
    strength_a, strength_b = strengths(e)
    down = axis(e.units_a, strength_a, limit=rows, special=special)
    return Cells(e, down, axis(e.units_b, strength_b, limit=columns, special=special))


def axis(units: Sequence[Unit], strength: PerUnit, *, limit: int | None = None, special: bool = False) -> Axis:
    """The strongest units in the order of the text, then one line for the special tokens, then one for the rest.

    Special tokens that all contribute zero, as at layer 0, have a line only if there is no other line.

    Args:
        units: the units of one text.
        strength: the strength of each unit, (units,).
        limit: how many units may have their own line; all of them by default.
        special: treat special tokens like other units.

    Example:
        >>> units = [Unit(word, 0, 1) for word in ("not", "so", "good")]
        >>> axis(units, np.array([2.0, 1.0, 3.0]), limit=2).labels
        ('not', 'good', 'rest')
    """
    folded = [i for i, unit in enumerate(units) if unit.kind == "special" and not special]
    listed = [i for i in range(len(units)) if i not in folded]
    order = sorted(listed, key=lambda i: -strength[i])
    shown, hidden = sorted(order[:limit]), sorted(order[len(order[:limit]) :])
    groups = [(clean(label(units[i])), [i]) for i in shown]
    groups += [("special", folded)] if strength[folded].any() or (folded and not groups) else []
    groups += [("rest", hidden)] if hidden else []
    sums = np.zeros((len(groups), len(units)))
    for line, (_, members) in enumerate(groups):
        sums[line, members] = 1.0
    return Axis(tuple(label for label, _ in groups), sums, len(shown), len(hidden), len(folded))


def _of_lines(axis: Axis, known: Sequence[Without | None]) -> list[Without | None]:
    """What is known of the units of the lines that hold one unit each, and None for the others."""
    return [known[int(line.argmax())] if n < axis.single else None for n, line in enumerate(axis.sums)]


def strengths(e: Explanation) -> tuple[PerUnitA, PerUnitB]:
    """The strength of each unit of a and of b: the sum of the absolute values of its entries and of its effect."""
    size = np.abs(e.matrix)
    return size.sum(1) + np.abs(e.effects_a), size.sum(0) + np.abs(e.effects_b)


def decimals(peak: float, digits: int = 3) -> int:
    """How many decimals to write so that the largest number has the given number of digits.

    Example:
        >>> decimals(0.598), decimals(0.598, 2), decimals(41.2, 2)
        (3, 2, 0)
    """
    return min(max(digits - 1 - math.floor(math.log10(peak)), 0), 6) if peak > 0 else digits
