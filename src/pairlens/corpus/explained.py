"""Explained pairs as files: one row a pair, in Parquet, each file whole or not there."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np

from pairlens.corpus.records import Reject
from pairlens.corpus.sides import NUMBERS, Strongest
from pairlens.errors import InputError, StoreError
from pairlens.io.files import require_pyarrow, whole_file


@dataclass(frozen=True)
class Ask:
    """A pair to explain: the row it is from, and both sides' names, or the query and a name."""

    row: int
    line: int
    a: str
    b: str


def part_path(folder: Path, number: int) -> Path:
    """The file of a block of pairs."""
    return folder / f"part-{number:08d}.parquet"


def write_part(path: Path, tables: Sequence[Any], bad: Sequence[Reject]) -> None:
    """Write a file of explanations, in the order of the rows; those that were rejected stand in its metadata."""
    pa, parquet = require_pyarrow()
    found = pa.concat_tables([*tables, _schema().empty_table()]).sort_by("row")
    rejects = [asdict(reject) for reject in sorted(bad, key=lambda reject: reject.row)]
    described = found.replace_schema_metadata({"pairlens": json.dumps({"rejects": rejects})})
    try:
        with whole_file(path) as file:
            parquet.write_table(described, file)
    except InputError as error:
        raise StoreError(f"{error} Make room, and start again: nothing that was done is lost.") from error


def look_into(path: Path) -> tuple[int, list[dict[str, Any]]]:
    """How many pairs a file explains, and what was rejected."""
    _, parquet = require_pyarrow()
    known = parquet.read_metadata(path)
    return known.num_rows, json.loads(known.metadata[b"pairlens"])["rejects"]


def _schema() -> Any:
    pa, _ = require_pyarrow()
    place = [(f"{side}_{end}", pa.int32()) for side in "ab" for end in ("start", "end")]
    strongest = pa.list_(pa.struct([*place, ("value", pa.float32())]))
    texts = [("row", pa.int64()), ("a", pa.string()), ("b", pa.string())]
    return pa.schema(
        [*texts, *((name, pa.float64()) for name in NUMBERS), ("truncated", pa.bool_()), ("top", strongest)]
    )


def to_table(asks: Sequence[Ask], numbers: dict[str, Any], truncated: Any, strongest: Sequence[Strongest]) -> Any:
    """Explanations as rows of a file.

    Args:
        asks: the pairs.
        numbers: their sums, by name, (pairs,) each.
        truncated: whether either text is, (pairs,).
        strongest: the strongest entries of each.
    """
    pa, _ = require_pyarrow()
    schema = _schema()
    fields = schema.field("top").type.value_type
    places = np.concatenate([best.places for best in strongest]).astype(np.int32)
    values = np.concatenate([best.values for best in strongest]).astype(np.float32)
    offsets = np.concatenate([[0], np.cumsum([len(best.values) for best in strongest])]).astype(np.int32)
    flat = pa.StructArray.from_arrays([*map(pa.array, places.T.copy()), pa.array(values)], fields=list(fields))
    columns = {
        "row": [ask.row for ask in asks],
        "a": [ask.a for ask in asks],
        "b": [ask.b for ask in asks],
        **numbers,
        "truncated": truncated,
        "top": pa.ListArray.from_arrays(pa.array(offsets), flat),
    }
    return pa.table([columns[name] for name in schema.names], schema=schema)
