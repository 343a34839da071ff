"""The score without a unit: measured where that deletion was tried, else as the explanation predicts it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from pairlens.attribution.contributions import deletes
from pairlens.attribution.explanation import Explanation
from pairlens.shapes import PerUnit
from pairlens.text import Unit

_DELETABLE = ("text", "rest", "compound")  # special tokens and prompts always stay


class Without(NamedTuple):
    """The score without a unit, or without the words of a compound.

    Attributes:
        score: the similarity of what is left.
        measured: whether the model was asked; otherwise it is the explanation's forecast.
    """

    score: float
    measured: bool


def predicts(e: Explanation) -> bool:
    """Whether an explanation is a model of deletions: its method deletes units, and it keeps the reference's terms."""
    return deletes(e.settings) and e.settings.get("reference_terms") == "keep"


def without_each(e: Explanation) -> tuple[list[Without | None], list[Without | None]]:
    """The score without each unit of a and of b; None where nothing is known about that deletion.

    Example:
        >>> from pairlens import Lens
        >>> e = Lens().explain("A cat.", "A dog.", level="word")
        >>> [None if word is None else word.measured for word in without_each(e)[0]]
        [None, True, True, True, None]
    """
    return (
        [_without(e, "a", index, e.measured_a) for index in range(len(e.units_a))],
        [_without(e, "b", index, e.measured_b) for index in range(len(e.units_b))],
    )


def removed(units: Sequence[Unit], index: int) -> list[int]:
    """The rows that go when a unit is deleted: its own, and those of compounds with it; for a compound, all its words'.

    Example:
        >>> words = [Unit("not", 0, 3), Unit("so", 4, 6), Unit("good", 7, 11)]
        >>> units = [*words, Unit.compound("not so good", [words[0], words[2]])]
        >>> removed(units, 0), removed(units, 1), removed(units, 3)
        ([0, 3], [1], [0, 2, 3])
    """
    unit = units[index]
    if unit.kind not in _DELETABLE:
        return []
    gone = set(unit.parts) or {(unit.start, unit.end)}
    compounds = [i for i, other in enumerate(units) if not gone.isdisjoint(other.parts)]
    return sorted({index, *parts(units, index), *compounds})


def parts(units: Sequence[Unit], index: int) -> list[int]:
    """The units that a compound consists of; none for other units."""
    spans = set(units[index].parts)
    return [i for i, unit in enumerate(units) if unit.kind == "text" and (unit.start, unit.end) in spans]


def in_compounds(units: Sequence[Unit]) -> set[int]:
    """The units that belong to any compound."""
    return {part for index in range(len(units)) for part in parts(units, index)}


def _without(e: Explanation, side: str, index: int, measured: PerUnit | None) -> Without | None:
    units = e.units_a if side == "a" else e.units_b
    gone = removed(units, index)
    if not gone:
        return None
    if measured is not None and units[index].kind != "compound":
        return Without(float(measured[index]), True)
    rest = [i for i, unit in enumerate(units) if unit.kind in ("text", "rest") and i not in gone]
    # An explanation says nothing about a text of which nothing is left.
    return Without(e.without(**{side: gone}), False) if predicts(e) and rest else None
