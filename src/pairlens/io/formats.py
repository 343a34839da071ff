"""Documents in four formats: JSON, NPZ, CSV and Parquet, all of them lossless."""

from __future__ import annotations

import csv
import io
import itertools
import json
from collections.abc import Callable
from pathlib import Path
from typing import BinaryIO

import numpy as np

from pairlens.errors import InputError
from pairlens.io.files import require_pyarrow
from pairlens.io.rows import from_columns, parse, to_columns
from pairlens.io.schema import AXES, Document

REST = "pairlens"
"""In tables, what is not in their rows: the column whose first row holds it as JSON, or an entry of the metadata."""


def dump(document: Document) -> str:
    """JSON with one line per field; floats as Python writes them, so that reading gives the same bits."""
    try:
        plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in document.items()}
        lines = [f'"{name}": {json.dumps(value, ensure_ascii=False, allow_nan=False)}' for name, value in plain.items()]
        "".join(lines).encode()
    except (TypeError, ValueError) as error:  # a setting that JSON has no type for, or a lone surrogate
        raise InputError(f"this cannot be written as JSON: {error}.") from error
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _write_json(document: Document, file: BinaryIO) -> None:
    file.write(dump(document).encode())


def _read_json(path: Path) -> Document:
    return parse(path.read_text(encoding="utf-8"))


def _write_npz(document: Document, file: BinaryIO) -> None:
    arrays = {name: value for name, value in document.items() if name in AXES}
    rest = {name: value for name, value in document.items() if name not in AXES}
    np.savez(file, allow_pickle=False, document=np.array(dump(rest)), **arrays)


def _read_npz(path: Path) -> Document:
    with np.load(path, allow_pickle=False) as parts:
        if "document" not in parts:
            raise InputError("this was not written by pairlens: it has no part `document`.")
        return {**parse(str(parts["document"])), **{name: parts[name] for name in parts.files if name != "document"}}


def _write_parquet(document: Document, file: BinaryIO) -> None:
    pa, parquet = require_pyarrow()
    columns, rest = to_columns(document)
    table = pa.table(columns).replace_schema_metadata({REST.encode(): dump(rest).encode()})
    parquet.write_table(table, file)


def _read_parquet(path: Path) -> Document:
    _, parquet = require_pyarrow()
    metadata = parquet.read_schema(path).metadata or {}
    if REST.encode() not in metadata:
        raise InputError("this was not written by pairlens' save: its metadata has no `pairlens`.")
    columns = parquet.read_table(path, columns=["value", "error"]).to_pydict()
    return from_columns(columns, parse(metadata[REST.encode()].decode()))


def _write_csv(document: Document, file: BinaryIO) -> None:
    columns, rest = to_columns(document)
    others = itertools.chain([dump(rest).replace("\n", "")], itertools.repeat(""))
    text = io.StringIO(newline="")
    # Lines end in CR LF: with LF alone, the csv module leaves a CR in a text unquoted.
    writer = csv.writer(text, lineterminator="\r\n")
    writer.writerow([*columns, REST])
    writer.writerows(zip(*columns.values(), others, strict=False))  # floats by repr: the same bits when read back
    file.write(text.getvalue().encode())


def _read_csv(path: Path) -> Document:
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    if not text.endswith("\n"):
        raise ValueError("its last line has no end")
    limit = csv.field_size_limit(max(len(text), 131072))  # a text may be longer than the module's default limit
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    finally:
        csv.field_size_limit(limit)
    if not rows or not rows[0].get(REST):
        raise InputError("this was not written by pairlens' save: its first row has no `pairlens`.")
    columns = {name: [row[name] for row in rows] for name in ("value", "error")}
    return from_columns(columns, parse(rows[0][REST]))


WRITERS: dict[str, Callable[[Document, BinaryIO], None]] = {
    ".json": _write_json,
    ".npz": _write_npz,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
READERS: dict[str, Callable[[Path], Document]] = {
    ".json": _read_json,
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}
