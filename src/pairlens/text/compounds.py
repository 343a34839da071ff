"""Compounds, units that stand for several others, and the rows of a result that go when units are deleted."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pairlens.text.units import Unit, parts


def rows_without(units: Sequence[Unit], deleted: Iterable[int]) -> list[int]:
    """The rows that go when units are deleted: theirs, those of a compound's units, and compounds with any of these.

    Example:
        >>> words = [Unit("not", 0, 3), Unit("so", 4, 6), Unit("good", 7, 11)]
        >>> units = [*words, Unit.compound("not so good", [words[0], words[2]])]
        >>> rows_without(units, [0]), rows_without(units, [1]), rows_without(units, [3])
        ([0, 3], [1], [0, 2, 3])
    """
    gone = {row for index in deleted for row in (index, *parts(units, index))}
    compounds = {row for row in range(len(units)) if not gone.isdisjoint(parts(units, row))}
    return sorted(gone | compounds)


def in_compounds(units: Sequence[Unit]) -> set[int]:
    """The units that belong to any compound."""
    return {part for index in range(len(units)) for part in parts(units, index)}
