"""The score without a unit: measured where that deletion was tried, else as the explanation predicts it."""

from __future__ import annotations

from typing import NamedTuple

from pairlens.attribution.contributions import predicts
from pairlens.attribution.explanation import Explanation
from pairlens.shapes import PerUnit
from pairlens.text import rows_without

_DELETABLE = ("text", "rest", "compound", "sentence")  # special tokens and prompts always stay


class Without(NamedTuple):
    """The score without a unit; for a compound or a sentence, without its words.

    Attributes:
        score: the similarity of what is left.
        measured: whether the model was asked; otherwise it is the explanation's forecast.
    """

    score: float
    measured: bool


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


def _without(e: Explanation, side: str, index: int, measured: PerUnit | None) -> Without | None:
    units = e.units_a if side == "a" else e.units_b
    if units[index].kind not in _DELETABLE:
        return None
    gone = rows_without(units, [index])
    if measured is not None and units[index].kind in ("text", "rest"):
        return Without(float(measured[index]), True)
    rest = [i for i, unit in enumerate(units) if unit.kind in ("text", "rest") and i not in gone]
    # An explanation says nothing about a text of which nothing is left.
    return Without(e.without(**{side: [index]}), False) if predicts(e.settings) and rest else None
