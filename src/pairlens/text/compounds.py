"""Compounds and sentences, units that stand for several others, and the rows of a result that go with deleted units."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from pairlens.text.units import Unit, parts


def rows_without(units: Sequence[Unit], deleted: Iterable[int]) -> list[int]:
    """The rows that go when units are deleted: theirs, and those of units that stand for several.

    A compound goes with any of its units, and a sentence with the last of its words. Deleting either deletes all it
    consists of.

    Example:
        >>> words = [Unit("not", 0, 3), Unit("so", 4, 6), Unit("good", 7, 11)]
        >>> units = [*words, Unit.compound("not so good", [words[0], words[2]])]
        >>> rows_without(units, [0]), rows_without(units, [1]), rows_without(units, [3])
        ([0, 3], [1], [0, 2, 3])
        >>> units = [*words, Unit.sentence(1, Unit("not so good", 0, 11), words)]
        >>> rows_without(units, [0, 1]), rows_without(units, [0, 1, 2]), rows_without(units, [3])
        ([0, 1], [0, 1, 2, 3], [0, 1, 2, 3])
    """
    gone = {row for index in deleted for row in (index, *parts(units, index))}
    several = [row for row, unit in enumerate(units) if unit.parts]
    return sorted(gone | {row for row in several if _goes(units[row], gone, parts(units, row))})


def in_compounds(units: Sequence[Unit]) -> set[int]:
    """The units that belong to any compound."""
    return {part for index, unit in enumerate(units) if unit.kind == "compound" for part in parts(units, index)}


def _goes(unit: Unit, gone: set[int], members: Sequence[int]) -> bool:
    """Whether a unit that stands for several goes when others are gone."""
    if unit.kind == "sentence":
        return bool(members) and gone.issuperset(members)
    return not gone.isdisjoint(members)
