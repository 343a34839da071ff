"""Tables of documents: the pairs of an explanation, or the vectors of contributions, one number in a row."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.io.schema import Document

if TYPE_CHECKING:
    from pairlens.attribution.explanation import Explanation

Columns = dict[str, list[Any]]
TOTALS = ("score", "base", "effects_a", "effects_b", "pairs", "gap", "gap_a", "gap_b")
"""The numbers of an explanation: score = base + effects_a + effects_b + pairs + gap, then the texts' own gaps."""


def totals(e: Explanation) -> dict[str, float]:
    """The numbers of an explanation, for tables with one row a pair."""
    sums = {"effects_a": e.effects_a.sum(), "effects_b": e.effects_b.sum(), "pairs": e.matrix.sum()}
    return {name: float(sums[name] if name in sums else getattr(e, name)) for name in TOTALS}


def to_columns(document: Document) -> tuple[Columns, Document]:
    """The columns of a document's table, and the fields that are not in it.

    Of an explanation, every row is a pair of units, as `Explanation.to_pandas` has them; of contributions, a unit and
    a dimension of the embedding.
    """
    name, error, sides = _fields(document)
    values = document[name]
    rows = [index.ravel().tolist() for index in np.indices(values.shape)]
    units = {side: [document[_units(side)][row] for row in index] for side, index in zip(sides, rows, strict=False)}
    errors = np.broadcast_to(document[error].reshape(len(values), -1), values.shape)
    columns: Columns = {side: [text for text, *_ in listed] for side, listed in units.items()}
    columns |= {} if len(sides) == 2 else {"dim": rows[1]}
    columns |= {"value": values.ravel().tolist(), "error": errors.ravel().tolist()}
    for side, listed in units.items():
        columns |= {f"{side}_start": [unit[1] for unit in listed], f"{side}_end": [unit[2] for unit in listed]}
    columns |= {f"{side}_kind": [kind.partition(" ")[0] for *_, kind in listed] for side, listed in units.items()}
    return columns, {key: value for key, value in document.items() if key not in (name, error)}


def from_columns(columns: Columns, rest: Document) -> Document:
    """The document that `to_columns` took apart."""
    name, error, sides = _fields(rest)
    shape = [len(rest[_units(side)]) for side in sides]
    values, errors = (np.array(columns[column], dtype=np.float64) for column in ("value", "error"))
    if len(sides) == 2:
        return {**rest, name: values.reshape(shape), error: errors.reshape(shape)}
    return {**rest, name: values.reshape(*shape, -1), error: errors.reshape(*shape, -1)[:, 0]}


def _fields(document: Document) -> tuple[str, str, tuple[str, ...]]:
    """The names of the field of numbers and of that of their errors, and of the texts whose units the rows name."""
    return ("matrix", "entry_error", ("a", "b")) if "units_a" in document else ("values", "error", ("unit",))


def _units(side: str) -> str:
    return "units" if side == "unit" else f"units_{side}"


def parse(text: str) -> Document:
    """The document of a JSON text; raises ValueError on NaN and infinities."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a number")

    return json.loads(text, parse_constant=refuse)
