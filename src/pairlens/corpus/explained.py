"""Explained pairs as Parquet files with one row a pair; each file is whole or absent."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pairlens.attribution.explanation import Explanation
from pairlens.corpus.parts import part_file
from pairlens.corpus.records import Reject
from pairlens.io import require_pyarrow
from pairlens.io.rows import TOTALS, totals

PLACES = ("a_start", "a_end", "b_start", "b_end")
"""The columns that say where the characters of a pair of units begin and end in texts a and b."""


@dataclass(frozen=True)
class PairRequest:
    """A pair to explain: its row and line in the table, and the ids of both texts, or the query and an id."""

    row: int
    line: int
    a: str
    b: str


def to_record(request: PairRequest, e: Explanation, top: int, *, special: bool) -> dict[str, Any]:
    """The row of an explained pair, with the `top` strongest pairs of units by their characters."""
    strongest = [
        dict(zip(PLACES, (pair.a.start, pair.a.end, pair.b.start, pair.b.end), strict=True), value=pair.value)
        for pair in e.top(top, special=special)
    ]
    names = {"row": request.row, "a": request.a, "b": request.b}
    return {**names, **totals(e), "truncated": e.truncated, "top": strongest}


def part_path(folder: Path, number: int) -> Path:
    """The file of a block of pairs."""
    return folder / f"part-{number:08d}.parquet"


def write_part(path: Path, records: Sequence[dict[str, Any]], rejects: Sequence[Reject]) -> None:
    """Write a file of explained pairs in the order of their rows; its metadata lists the rejected rows."""
    pa, parquet = require_pyarrow()
    place = [(name, pa.int32()) for name in PLACES]
    schema = pa.schema(
        [
            ("row", pa.int64()),
            ("a", pa.string()),
            ("b", pa.string()),
            *((name, pa.float64()) for name in TOTALS),
            ("truncated", pa.bool_()),
            ("top", pa.list_(pa.struct([*place, ("value", pa.float32())]))),
        ]
    )
    listed = [asdict(reject) for reject in sorted(rejects, key=lambda reject: reject.row)]
    schema = schema.with_metadata({"pairlens": json.dumps({"rejects": listed})})
    table = pa.Table.from_pylist(sorted(records, key=lambda record: record["row"]), schema=schema)
    with part_file(path) as file:
        parquet.write_table(table, file)


def read_counts(path: Path) -> tuple[int, list[dict[str, Any]]]:
    """How many pairs a file explains, and the rejected rows that its metadata lists."""
    _, parquet = require_pyarrow()
    described = parquet.read_metadata(path)
    return described.num_rows, json.loads(described.metadata[b"pairlens"])["rejects"]
