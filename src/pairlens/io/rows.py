"""Documents as long tables, for CSV and Parquet, and explanations as one row each.

A long table has one row for every pair of units (of contributions: for every unit and dimension), after the rows of all
other fields. Texts stand in text columns, so that `value` is a column of numbers. The column `part` names a row's
field, or is "pair" or "value"; the rows of `effects_a`, `effects_b` and `units` also name the units.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.io.files import require
from pairlens.io.schema import AXES, OPTIONAL, UNIT, WORDS, Document

if TYPE_CHECKING:
    from pairlens.attribution.explanation import Explanation

Row = dict[str, Any]
ONE_SIDED = ("effects_a", "effects_b", "measured_a", "measured_b")
"""The fields with a number for every unit of one text."""
TOTALS = ("score", "base", "effects_a", "effects_b", "pairs", "gap", "gap_a", "gap_b")
"""The numbers of an explanation: score = base + effects_a + effects_b + pairs + gap, then the texts' own gaps."""


def totals(e: Explanation) -> dict[str, float]:
    """The numbers of an explanation, for tables with one row a pair."""
    sums = {"effects_a": e.effects_a.sum(), "effects_b": e.effects_b.sum(), "pairs": e.matrix.sum()}
    return {name: float(sums[name] if name in sums else getattr(e, name)) for name in TOTALS}


def pair_table(e: Explanation) -> Any:
    """The pairs of an explanation as a pandas DataFrame, one row each."""
    pandas = require("pandas", "study")
    count_a, count_b = e.matrix.shape
    first, second = np.repeat(np.arange(count_a), count_b), np.tile(np.arange(count_b), count_a)
    sides = {"a": [e.units_a[i] for i in first], "b": [e.units_b[j] for j in second]}
    columns = {side: [unit.text for unit in units] for side, units in sides.items()}
    columns |= {"value": e.matrix.ravel(), "error": e.entry_error.ravel()}
    columns |= {f"{side}_{end}": [getattr(u, end) for u in sides[side]] for side in "ab" for end in ("start", "end")}
    columns |= {f"{side}_kind": [unit.kind for unit in units] for side, units in sides.items()}
    return pandas.DataFrame(columns)


def to_rows(document: Document) -> Iterator[Row]:
    """The rows of a document; the last row has all columns."""
    sides = _sides(document)
    for name, value in document.items():
        yield from _field_rows(document, name, value, _side(name, sides))
    if sides == ("",):
        for unit, vector, error in zip(document["units"], document["values"], document["error"], strict=True):
            for i, value in enumerate(vector):
                yield {"part": "value", **_cells(unit, ""), "dim": i, "value": float(value), "error": float(error)}
        return
    for unit_a, values, errors in zip(document["units_a"], document["matrix"], document["entry_error"], strict=True):
        for unit_b, value, error in zip(document["units_b"], values, errors, strict=True):
            cells = {**_cells(unit_a, "_a"), **_cells(unit_b, "_b")}
            yield {"part": "pair", **cells, "value": float(value), "error": float(error)}


def from_rows(rows: list[Row]) -> Document:
    """The document of the rows that `to_rows` made."""
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(row["part"], []).append(row)
    sides = _sides(parts)
    entries = parts.pop("value" if sides == ("",) else "pair")
    document: Document = {f"{name}{side}": [] for name in WORDS for side in sides}
    for name, field_rows in parts.items():
        document |= _field(name, field_rows, _side(name, sides))
    shape = [len(document[f"units{side}"]) for side in sides]
    if sides == ("",):
        values = _numbers(entries, "value").reshape(*shape, -1)
        lengths = dict(zip(AXES["values"], values.shape, strict=True))
        for name in OPTIONAL:
            if name in document:
                document[name] = document[name].reshape(-1, lengths[AXES[name][-1]])
        return {**document, "values": values}
    if "measured_pairs" in document:
        document["measured_pairs"] = document["measured_pairs"].reshape(shape)
    matrix, error = (_numbers(entries, column).reshape(shape) for column in ("value", "error"))
    return {**document, "matrix": matrix, "entry_error": error}


def _field_rows(document: Document, name: str, value: Any, side: str) -> Iterator[Row]:
    """The rows of one field; none for the fields that the rows of entries hold."""
    if name.startswith(WORDS):
        yield from ({"part": name, f"text{side}": token} for token in value)
    elif name in ONE_SIDED:
        for unit, effect in zip(document[f"units{side}"], value, strict=True):
            yield {"part": name, **_cells(unit, side), "value": float(effect)}
    elif name == "measured_pairs":
        for unit_a, values in zip(document["units_a"], value, strict=True):
            for unit_b, number in zip(document["units_b"], values, strict=True):
                yield {"part": name, **_cells(unit_a, "_a"), **_cells(unit_b, "_b"), "value": float(number)}
    elif name == "units":
        for unit, error in zip(value, document["error"], strict=True):
            yield {"part": name, **_cells(unit, ""), "error": float(error)}
    elif _is_flat(name):
        yield from ({"part": name, "dim": i, "value": float(number)} for i, number in enumerate(np.ravel(value)))
    elif isinstance(value, str):
        yield {"part": name, f"text{side}": value}
    elif isinstance(value, dict):
        yield {"part": name, f"text{side}": json.dumps(value, ensure_ascii=False, allow_nan=False)}
    elif isinstance(value, int | float):
        yield {"part": name, "value": float(value)}


def _field(name: str, rows: list[Row], side: str) -> Document:
    """The fields of a document that the rows of one part hold."""
    if name.startswith(WORDS):
        return {name: [row[f"text{side}"] for row in rows]}
    if _is_flat(name):
        return {name: _numbers(rows, "value")}
    if name in AXES or name == "units":
        units = {f"units{side}": [[row[f"{key}{side}"] for key in UNIT] for row in rows]}
        return units | ({"error": _numbers(rows, "error")} if name == "units" else {name: _numbers(rows, "value")})
    if name in ("settings", "forecast"):
        return {name: parse(rows[0][f"text{side}"])}
    if rows[0]["value"]:
        kind = int if name == "version" else bool if name.startswith("truncated") else float
        return {name: kind(float(rows[0]["value"]))}
    return {name: rows[0][f"text{side}"]}


def _is_flat(name: str) -> bool:
    """Whether the rows of a field hold the numbers of an array alone."""
    return name == "measured_pairs" or (name in AXES and AXES[name][0] in ("dim", "draws", "tried"))


def parse(text: str) -> Document:
    """The document of a JSON text; raises ValueError on NaN and infinities."""

    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a number")

    return json.loads(text, parse_constant=refuse)


def _sides(parts: Mapping[str, Any]) -> tuple[str, ...]:
    """The suffixes of the fields of each text: two for an explanation, one for contributions."""
    return ("_a", "_b") if "effects_a" in parts else ("",)


def _side(name: str, sides: tuple[str, ...]) -> str:
    return name[-2:] if name[-2:] in sides else sides[0]


def _cells(unit: list[Any], side: str) -> Row:
    return {f"{name}{side}": value for name, value in zip(UNIT, unit, strict=True)}


def _numbers(rows: list[Row], column: str) -> np.ndarray:
    return np.array([float(row[column]) for row in rows])
