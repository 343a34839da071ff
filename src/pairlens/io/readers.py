"""Records of one table, in bounded memory: a CSV, TSV, JSON Lines or Parquet file, or a hub dataset.

A record that cannot be parsed comes with its line and the reason, and reading goes on at the next line.
"""

from __future__ import annotations

import csv
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, BinaryIO, NamedTuple

from pairlens.errors import InputError
from pairlens.io.files import require, require_pyarrow

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
LONGEST = 2**24
"""Bytes of a line and characters of a field beyond which a record is rejected."""
DELIMITED = (".csv", ".tsv")
DELIMITERS = (",", ";", "\t")
SAMPLE = 20
"""Lines that are looked at to find what separates the cells of a CSV."""


class Record(NamedTuple):
    """One record: its line in the file, its content, and why it cannot be used, if it cannot.

    `content` is a list of cells (CSV and TSV, the header included), a JSON value (JSON Lines), or a dict by column.
    """

    line: int
    content: Any
    reason: str = ""


def read_records(path: Path, columns: Sequence[str] | None = None, *, utf8: bool = False) -> Iterator[Record]:
    """The records of a file; empty lines are skipped.

    Args:
        path: the file; its suffix names the format.
        columns: of a Parquet file, the columns to read; all by default.
        utf8: raise InputError on bytes that are not UTF-8, instead of turning them into lone surrogates.
    """
    suffix = path.suffix.lower()
    try:
        if suffix == ".parquet":
            yield from _parquet(path, columns)
            return
        with path.open("rb") as file:
            lines = _Lines(file, "strict" if utf8 else "surrogateescape")
            yield from _delimited(lines, suffix) if suffix in DELIMITED else _json_lines(lines)
    except UnicodeDecodeError as error:
        raise InputError(f"{path} is not text in UTF-8: {error}. Save it as UTF-8.") from error
    except OSError as error:
        raise InputError(f"{path} cannot be read: {error}.") from error


@contextmanager
def open_parquet(path: Path) -> Iterator[Any]:
    """A Parquet file, opened."""
    pa, parquet = require_pyarrow()
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}.") from error


def load_hub_dataset(path: str, split: str, extra: str) -> Any:
    """A hub dataset, `owner/name` or `owner/name/configuration`; `extra` is the extra that installs datasets."""
    datasets = require("datasets", extra)
    parts = path.split("/")
    try:
        return datasets.load_dataset("/".join(parts[:2]), *parts[2:], split=split)
    except (ValueError, OSError, datasets.exceptions.DatasetsError) as error:
        reason = str(error).splitlines()[0].rstrip(".")
        raise InputError(
            f"{path} is no file, and as a hub dataset it cannot be loaded: {reason}. Its split is "
            f"{split!r}; a configuration goes behind a slash."
        ) from error


def column_types(schema: Any) -> dict[str, str | None]:
    """The columns of an Arrow schema, each "text", "int", "float" or "bool", or None for any other type."""
    types = require_pyarrow()[0].types
    tests = {"int": types.is_integer, "float": types.is_floating, "bool": types.is_boolean}
    tests["text"] = lambda kind: types.is_string(kind) or types.is_large_string(kind)
    return {f.name: next((name for name, test in tests.items() if test(f.type)), None) for f in schema}


class _Lines:
    """The lines of a file as text, with their numbers; a line that is too long raises csv.Error."""

    def __init__(self, file: BinaryIO, errors: str) -> None:
        self._file = file
        self._errors = errors
        self.number = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._file.readline(LONGEST)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) == LONGEST and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = self._file.readline(LONGEST)
            raise csv.Error(f"a line of more than {LONGEST} bytes")
        if self.number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        return line.decode("utf-8", self._errors)

    def tell(self) -> tuple[int, int]:
        """Where the next line begins, and how many lines are before it."""
        return self._file.tell(), self.number

    def seek(self, place: tuple[int, int]) -> None:
        """Go back to a place that `tell` gave."""
        self._file.seek(place[0])
        self.number = place[1]

    def single(self) -> str | None:
        """The next line, or None where it is too long."""
        try:
            return next(self, None)
        except csv.Error:
            return None


def _json_lines(lines: _Lines) -> Iterator[Record]:
    while True:
        try:
            line = next(lines)
        except StopIteration:
            return
        except csv.Error as error:
            yield Record(lines.number, None, f"not JSON: {error}")
            continue
        if not line.strip():
            continue
        try:
            yield Record(lines.number, json.loads(line.strip()))
        except (ValueError, RecursionError) as error:
            yield Record(lines.number, None, f"not JSON: {error}")


def _delimited(lines: _Lines, suffix: str) -> Iterator[Record]:
    # In a TSV a quotation mark is a character like any other.
    tabs: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE}
    dialect: dict[str, Any] = tabs if suffix == ".tsv" else {"delimiter": _delimiter(lines)}
    while True:
        place = lines.tell()
        limit = csv.field_size_limit(LONGEST)
        try:
            cells = next(csv.reader(lines, strict=True, **dialect))
        except StopIteration:
            return
        except csv.Error as error:
            one_line = lines.number == place[1] + 1
            lines.seek(place)
            line = lines.single()
            if not one_line or line is None:
                # An unclosed quotation mark would swallow the rows behind it: go on at the next line.
                yield Record(lines.number, None, f"not {suffix[1:].upper()}: {error}")
                continue
            cells = next(csv.reader([line], **dialect))  # within one line, text after a closing mark does no harm
        finally:
            csv.field_size_limit(limit)
        if cells:
            yield Record(place[1] + 1, cells)


def _delimiter(lines: _Lines) -> str:
    """What separates the cells of a CSV: what divides the first line, and most lines into as many cells as the first.

    A comma, semicolon or tab; the others may stand in texts, so that they divide lines into different numbers of cells.
    """
    place = lines.tell()
    sample = [line for line in (lines.single() for _ in range(SAMPLE)) if line]
    lines.seek(place)

    def alike(delimiter: str) -> int:
        counts = [len(row) for row in csv.reader(sample, delimiter=delimiter) if row]
        return counts.count(counts[0]) if counts and counts[0] > 1 else 0

    return max(DELIMITERS, key=alike)


def _parquet(path: Path, columns: Sequence[str] | None) -> Iterator[Record]:
    line = 0
    with open_parquet(path) as file:
        for batch in file.iter_batches(batch_size=256, columns=None if columns is None else list(columns)):
            for record in batch.to_pylist():
                line += 1
                yield Record(line, record)
