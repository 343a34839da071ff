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


def explained(row: PairRow, e: Explanation, top: int, special: bool) -> Record:
    """The record of an explained row: its texts, its numbers and its strongest pairs of units."""
    strongest = [{"a": pair.a.text, "b": pair.b.text, "value": pair.value} for pair in e.top(top, special=special)]
    return {"row": row.number, "a": row.a, "b": row.b, **totals(e), "truncated": e.truncated, "top": strongest}


def rejected(row: PairRow, reason: str) -> Record:
    """The record of a row that cannot be used."""
    return {"line": row.line, "reason": reason, "a": row.a, "b": row.b}


def check_output(path: Path, overwrite: bool) -> None:
    """Raise unless the output can be written."""
    if choose("suffix of the output", path.suffix.lower(), _WRITERS) == ".parquet":
        require_pyarrow()
    check_folder(path)
    if path.exists() and not overwrite:
        raise InputError(f"{path} exists. Give --overwrite to replace it, or another --output.")


def write(path: Path, records: Iterable[Record], settings: Mapping[str, Any]) -> None:
    """Write the records of explained rows; the suffix names the format."""
    with whole_file(path) as file:
        _WRITERS[path.suffix.lower()](records, file, settings)


def write_rejected(path: Path, records: Iterable[Record]) -> None:
    """Write the records of rejected rows as CSV."""
    with whole_file(path) as file:
        _csv(records, file, REJECTED)


def _write_csv(records: Iterable[Record], file: BinaryIO, _: Mapping[str, Any]) -> None:
    plain = ({**record, "top": json.dumps(record["top"], ensure_ascii=False)} for record in records)
    _csv(plain, file, COLUMNS)


def _csv(records: Iterable[Record], file: BinaryIO, columns: Sequence[str]) -> None:
    text = io.TextIOWrapper(file, encoding="utf-8", newline="")
    writer = csv.DictWriter(text, columns)
    writer.writeheader()
    writer.writerows(records)
    text.detach()  # flushes, and leaves the file open


def _write_jsonl(records: Iterable[Record], file: BinaryIO, _: Mapping[str, Any]) -> None:
    file.writelines(json.dumps(record, ensure_ascii=False).encode() + b"\n" for record in records)


def _write_parquet(records: Iterable[Record], file: BinaryIO, settings: Mapping[str, Any]) -> None:
    pa, parquet = require_pyarrow()
    pair = pa.struct([("a", pa.string()), ("b", pa.string()), ("value", pa.float64())])
    fields = [("row", pa.int64()), ("a", pa.string()), ("b", pa.string()), *((name, pa.float64()) for name in TOTALS)]
    schema = pa.schema([*fields, ("truncated", pa.bool_()), ("top", pa.list_(pair))])
    schema = schema.with_metadata({"pairlens": json.dumps(settings, ensure_ascii=False)})
    records = iter(records)
    with parquet.ParquetWriter(file, schema) as writer:
        while piece := list(islice(records, 10_000)):
            writer.write_table(pa.Table.from_pylist(piece, schema=schema))


_WRITERS: dict[str, Callable[[Iterable[Record], BinaryIO, Mapping[str, Any]], None]] = {
    ".parquet": _write_parquet,
    ".csv": _write_csv,
    ".jsonl": _write_jsonl,
}
