"""Contributions as rows of the index and back. A row holds all that explaining its text needs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from pairlens.attribution.contributions import Contributions
from pairlens.errors import InputError
from pairlens.io import require_pyarrow
from pairlens.shapes import Array
from pairlens.text import Unit

TYPES = ("text", "int", "float", "bool")
"""The types of a column of metadata."""


@dataclass(frozen=True)
class TextRecord:
    """A text to be indexed, from one row of an input.

    Attributes:
        id: its id in the index.
        text: the text.
        metadata: its other columns.
        row: its number in the table, from 1.
        line: its line in the file.
        parent: of a passage, the id of the text that it is a part of; else "".
    """

    id: str
    text: str
    metadata: Mapping[str, Any] = field(default_factory=dict)
    row: int = 0
    line: int = 0
    parent: str = ""


@dataclass(frozen=True)
class Reject:
    """A row of a table that cannot be used, and why."""

    row: int
    line: int
    id: str
    reason: str
    text: str = ""


def make_schema(dim: int, metadata: Mapping[str, str], precision: str) -> Any:
    """The columns of the table `texts`.

    Args:
        dim: of the embeddings.
        metadata: the names of the columns of metadata, each with one of `TYPES`.
        precision: of the contributions.
    """
    pa, _ = require_pyarrow()
    types = {"text": pa.string(), "int": pa.int64(), "float": pa.float64(), "bool": pa.bool_()}
    number = {"float16": pa.float16(), "float32": pa.float32()}[precision]
    unit = pa.struct([("text", pa.string()), ("start", pa.int32()), ("end", pa.int32()), ("kind", pa.string())])
    named = [(name, types[kind]) for name, kind in metadata.items()]
    return pa.schema(
        [
            pa.field("id", pa.string(), nullable=False),
            pa.field("text", pa.string(), nullable=False),
            ("parent", pa.string()),
            ("embedding", pa.list_(pa.float32(), dim)),
            *([("metadata", pa.struct(named))] if named else []),
            ("contributions", pa.list_(pa.list_(number, dim))),
            ("error", pa.list_(pa.float32())),
            ("units", pa.list_(unit)),
            ("tokens", pa.list_(pa.string())),
            ("reference", pa.list_(pa.float32(), dim)),
            ("size", pa.float64()),
            ("gap", pa.float64()),
            ("nodes", pa.int64()),
            ("truncated", pa.bool_()),
            ("unknown", pa.list_(pa.string())),
            ("source", pa.string()),
            ("row", pa.int64()),
        ]
    )


def to_table(texts: Sequence[TextRecord], decomposed: Sequence[Contributions], schema: Any, source: str) -> Any:
    """Texts and their contributions as an Arrow table, with one more column, `line`, which the index does not keep.

    Args:
        texts: the texts.
        decomposed: the contributions of each text.
        schema: as `make_schema` gave it.
        source: the name of the input they are from.
    """
    pa, _ = require_pyarrow()
    number = schema.field("contributions").type.value_type.value_type.to_pandas_dtype()
    counts = [len(c.units) for c in decomposed]
    offsets = pa.array(np.concatenate([[0], np.cumsum(counts)]).astype(np.int32))
    values = np.concatenate([c.values for c in decomposed]) if decomposed else np.zeros((0, 1))
    units = [_stored_unit(unit, c.text) for c in decomposed for unit in c.units]
    errors = np.concatenate([c.error for c in decomposed]) if decomposed else np.zeros(0)
    columns: dict[str, Any] = {
        "id": [text.id for text in texts],
        "text": [text.text for text in texts],
        "parent": [text.parent for text in texts],
        "embedding": _vectors([c.output for c in decomposed], schema.field("embedding").type),
        "metadata": [dict(text.metadata) for text in texts],
        "contributions": pa.ListArray.from_arrays(
            offsets, _vectors(values, schema.field("contributions").type.value_type, number)
        ),
        "error": pa.ListArray.from_arrays(offsets, pa.array(errors.astype(np.float32))),
        "units": pa.ListArray.from_arrays(offsets, pa.array(units, schema.field("units").type.value_type)),
        "tokens": [list(c.tokens) for c in decomposed],
        "reference": _vectors([c.reference for c in decomposed], schema.field("reference").type),
        "size": [float(np.linalg.norm(c.embedding)) for c in decomposed],
        "gap": [c.gap for c in decomposed],
        "nodes": [int(c.settings.get("nodes") or 0) for c in decomposed],
        "truncated": [c.truncated for c in decomposed],
        "unknown": [list(c.unknown) for c in decomposed],
        "source": [source] * len(texts),
        "row": [text.row for text in texts],
        "line": [text.line for text in texts],
    }
    wider = schema.append(pa.field("line", pa.int64()))
    return pa.Table.from_pydict(columns, schema=wider)


def check_finite(c: Contributions, precision: str) -> None:
    """Raise if contributions are too large for the precision of the index."""
    largest = float(np.abs(c.values).max(initial=0.0))
    if largest > float(np.finfo(precision).max):
        raise InputError(
            f"its contributions go up to {largest:.0e}, which {precision} cannot hold. Make the index with "
            "precision='float32'."
        )


def from_table(table: Any, settings: Mapping[str, Any]) -> list[Contributions]:
    """The contributions of every row of an Arrow table.

    Args:
        table: rows of the index.
        settings: the settings that all rows share.
    """
    table = table.combine_chunks()
    plain = table.select(["text", "units", "tokens", "size", "gap", "nodes", "truncated", "unknown"]).to_pylist()
    outputs, references = (vectors_of(table.column(name)) for name in ("embedding", "reference"))
    rows = []
    for i, row in enumerate(plain):
        output = outputs[i].astype(np.float64)
        length = float(np.linalg.norm(output))
        rows.append(
            Contributions(
                text=row["text"],
                units=tuple(_unit(unit, row["text"]) for unit in row["units"]),
                tokens=tuple(row["tokens"]),
                values=vectors_of(table.column("contributions")[i].values).astype(np.float64),
                error=np.asarray(table.column("error")[i].values).astype(np.float64),
                reference=references[i].astype(np.float64),
                # The model's output is the embedding that was decomposed, or a multiple of it.
                embedding=output * (row["size"] / length if length else 1.0),
                output=output,
                gap=row["gap"],
                truncated=row["truncated"],
                unknown=tuple(row["unknown"]),
                settings={**settings, "nodes": row["nodes"]},
            )
        )
    return rows


def _stored_unit(unit: Unit, text: str) -> dict[str, Any]:
    """A unit as a row stores it; its text is left out where it is a slice of the row's text."""
    words, start, end, kind = unit.stored()
    shown = None if text[start:end] == words else words
    return {"text": shown, "start": start, "end": end, "kind": kind}


def _unit(stored: Mapping[str, Any], text: str) -> Unit:
    start, end, shown = stored["start"], stored["end"], stored["text"]
    return Unit.from_stored(text[start:end] if shown is None else shown, start, end, stored["kind"])


def _vectors(rows: Any, kind: Any, dtype: Any = np.float32) -> Any:
    pa, _ = require_pyarrow()
    flat = np.asarray(rows, dtype=dtype).reshape(-1)
    return pa.FixedSizeListArray.from_arrays(pa.array(flat), type=kind)


def vectors_of(column: Any) -> Array:
    """Vectors of one length as an array, (rows, dim)."""
    pa, _ = require_pyarrow()
    whole = column.combine_chunks() if isinstance(column, pa.ChunkedArray) else column
    return whole.flatten().to_numpy(zero_copy_only=False).reshape(len(whole), whole.type.list_size)
