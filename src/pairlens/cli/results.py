"""The results of a batch: one record per row, written as CSV, JSON Lines or Parquet."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO

from pairlens.errors import InputError, choose
from pairlens.io import check_folder, require_pyarrow, whole_file
from pairlens.io.rows import TOTALS, totals

if TYPE_CHECKING:
    from pairlens.attribution.explanation import Explanation
    from pairlens.io import PairRow

Record = dict[str, Any]
COLUMNS = ("row", "a", "b", *TOTALS, "truncated", "top")
REJECTED = ("line", "reason", "a", "b")
_PLAIN = {str, int, float, bool}


def explained(row: PairRow, e: Explanation, top: int, special: bool) -> Record:
    """The record of an explained row: its texts, its numbers, its strongest pairs of units and its other columns."""
    strongest = [{"a": pair.a.text, "b": pair.b.text, "value": pair.value} for pair in e.top(top, special=special)]
    return {
        "row": row.number,
        "a": row.a,
        "b": row.b,
        **totals(e),
        "truncated": e.truncated,
        "top": strongest,
        "others": _renamed(row),
    }


def rejected(row: PairRow, reason: str) -> Record:
    """The record of a row that cannot be used."""
    return {"line": row.line, "reason": reason, "a": row.a, "b": row.b}


def check_output(path: Path, overwrite: bool) -> None:
    """Raise unless the output can be written."""
    if choose("suffix of the output", path.suffix.lower(), _WRITERS) == ".parquet":
        require_pyarrow()
    check_folder(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists. Give --overwrite to replace it, or another --out.")


def write(path: Path, records: Iterable[Record], others: Mapping[str, type], settings: Mapping[str, Any]) -> None:
    """Write the records of explained rows; the suffix names the format.

    Args:
        path: the file.
        records: what `explained` returned.
        others: the table's other columns and the types of their values, as `other_columns` returns them.
        settings: all settings of the run.
    """
    flat = (_flat(record, others) for record in records)
    with whole_file(path) as file:
        _WRITERS[path.suffix.lower()](flat, file, others, settings)


def other_columns(records: Iterable[Record]) -> dict[str, type]:
    """The table's columns beside the texts, and the type that holds all their values: a text where they differ."""
    kinds: dict[str, set[type]] = {}
    for record in records:
        for name, value in record.get("others", {}).items():
            kinds.setdefault(name, set()).update([] if value is None else [type(value)])
    return {name: next(iter(kind)) if len(kind) == 1 and kind <= _PLAIN else str for name, kind in kinds.items()}


def write_rejected(path: Path, records: Iterable[Record]) -> None:
    """Write the records of rejected rows as CSV."""
    with whole_file(path) as file:
        _csv(records, file, REJECTED)


def _renamed(row: PairRow) -> dict[str, Any]:
    """A row's other columns; one that is called like a column of the result gets the prefix input_."""
    return {f"input_{name}" if name in COLUMNS else name: value for name, value in row.others.items()}


def _flat(record: Record, others: Mapping[str, type]) -> Record:
    """The record with its other columns beside the result's, as values of their types."""
    given = record.pop("others")
    texts = {
        name: value if value is None or isinstance(value, kind) else json.dumps(value, ensure_ascii=False)
        for name, kind in others.items()
        for value in [given.get(name)]
    }
    return {**record, **texts}


def _write_csv(records: Iterable[Record], file: BinaryIO, others: Mapping[str, type], _: Mapping[str, Any]) -> None:
    plain = ({**record, "top": json.dumps(record["top"], ensure_ascii=False)} for record in records)
    _csv(plain, file, [*COLUMNS, *others])


def _csv(records: Iterable[Record], file: BinaryIO, columns: Sequence[str]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(records)
    text.detach()  # flushes, and leaves the file open


def _write_jsonl(records: Iterable[Record], file: BinaryIO, *_: Mapping[str, Any]) -> None:
    file.writelines(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def _write_parquet(
    records: Iterable[Record], file: BinaryIO, others: Mapping[str, type], settings: Mapping[str, Any]
) -> None:
    pa, parquet = require_pyarrow()
    pair = pa.struct([("a", pa.string()), ("b", pa.string()), ("value", pa.float64())])
    fields = [("row", pa.int64()), ("a", pa.string()), ("b", pa.string()), *((name, pa.float64()) for name in TOTALS)]
    types = {str: pa.string(), int: pa.int64(), float: pa.float64(), bool: pa.bool_()}
    kept = [(name, types[kind]) for name, kind in others.items()]
    schema = pa.schema([*fields, ("truncated", pa.bool_()), ("top", pa.list_(pair)), *kept])
    schema = schema.with_metadata({"pairlens": json.dumps(settings, ensure_ascii=False)})
    records = iter(records)
    with parquet.ParquetWriter(file, schema) as writer:
        while piece := list(islice(records, 10_000)):
            writer.write_table(pa.Table.from_pylist(piece, schema=schema))


_WRITERS: dict[str, Callable[[Iterable[Record], BinaryIO, Mapping[str, type], Mapping[str, Any]], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
}
