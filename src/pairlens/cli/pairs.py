"""The pairs of a table: CSV, TSV, JSON Lines or Parquet, row by row, with what is wrong with a row said beside it."""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairlens.errors import InputError, choose
from pairlens.storage import require_pyarrow

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
KNOWN = (
    ("a", "b"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence_a", "sentence_b"),
    ("sentence1", "sentence2"),
    ("query", "document"),
    ("query", "passage"),
    ("question", "answer"),
    ("question1", "question2"),
    ("anchor", "positive"),
    ("premise", "hypothesis"),
    ("source", "target"),
)
"""Names of the two columns, taken in this order where a table has several of them."""


@dataclass(frozen=True)
class Row:
    """One row of the table: its number, its line in the file, its texts, and why it cannot be used, if it cannot."""

    number: int
    line: int
    a: str
    b: str
    reason: str = ""


@dataclass(frozen=True)
class Source:
    """A table of pairs on disk; `rows` reads it anew each time.

    Args:
        path: the file; its suffix says what it is.
        columns: the names of the two columns, or None to find them.
    """

    path: Path
    columns: tuple[str, str] | None = None

    def __post_init__(self) -> None:
        choose("suffix of a table of pairs", self.path.suffix.lower(), SUFFIXES)
        if not self.path.is_file():
            raise InputError(f"there is no file {self.path}.")

    def rows(self) -> Iterator[Row]:
        """The rows, from 1; empty lines do not count."""
        suffix = self.path.suffix.lower()
        read = self._parquet if suffix == ".parquet" else self._delimited if suffix in (".csv", ".tsv") else self._lines
        with self._readable():
            for number, (line, texts) in enumerate(read(), 1):
                yield _row(number, line, texts)

    def header(self) -> bool:
        """Whether the columns are known by name: false for a CSV or TSV whose first line is taken for a pair."""
        if self.columns or self.path.suffix.lower() not in (".csv", ".tsv"):
            return True
        with self._readable(), self.path.open(encoding="utf-8-sig", newline="") as file:
            first = next(self._records(file), [])
        return _find(first, None) is not None

    def fingerprint(self) -> str:
        """A hash of the file's content."""
        digest = hashlib.sha256()
        with self.path.open("rb") as file:
            while piece := file.read(1 << 20):
                digest.update(piece)
        return digest.hexdigest()

    @contextmanager
    def _readable(self) -> Iterator[None]:
        try:
            yield
        except UnicodeDecodeError as error:
            raise InputError(f"{self.path} is not text in UTF-8: {error}.") from error
        except (csv.Error, OSError) as error:
            raise InputError(f"{self.path} cannot be read: {error}.") from error

    def _records(self, file: Any) -> Iterator[list[str]]:
        csv.field_size_limit(2**31 - 1)
        if self.path.suffix.lower() == ".tsv":  # in which a quotation mark is a character like any other
            return csv.reader(file, delimiter="\t", quoting=csv.QUOTE_NONE)
        return csv.reader(file)

    def _delimited(self) -> Iterator[tuple[int, Sequence[Any]]]:
        with self.path.open(encoding="utf-8-sig", newline="") as file:
            records: Any = self._records(file)
            line, places = 1, None
            for record in records:
                begin, line = line, records.line_num + 1
                if not record:
                    continue
                if places is None:
                    named = _find(record, self.columns)
                    places = (0, 1) if named is None else tuple(record.index(name) for name in named)
                    if len(record) < 2:
                        what = "tab" if self.path.suffix.lower() == ".tsv" else "comma"
                        raise InputError(
                            f"{self.path}: line {begin} has one column, and a pair has two. Is the {what} "
                            "what separates them?"
                        )
                    if named is not None:
                        continue
                yield begin, [record[place] if place < len(record) else None for place in places]

    def _lines(self) -> Iterator[tuple[int, Sequence[Any]]]:
        names = self.columns
        with self.path.open(encoding="utf-8-sig") as file:
            for line, text in enumerate(file, 1):
                if not text.strip():
                    continue
                try:
                    record = json.loads(text)
                except ValueError as error:
                    yield line, (error,)
                    continue
                if isinstance(record, dict):
                    names = names or _find(list(record), None)
                    if names is None:
                        raise InputError(
                            f"{self.path}: which of the fields {', '.join(record)} are the two texts? "
                            "Name them with --column-a and --column-b."
                        )
                    record = [record.get(name) for name in names]
                yield line, record if isinstance(record, list) else (record,)

    def _parquet(self) -> Iterator[tuple[int, Sequence[Any]]]:
        pa, parquet = require_pyarrow()
        try:
            with parquet.ParquetFile(self.path) as file:
                schema = file.schema_arrow
                names = _find(schema.names, self.columns)
                if names is None:
                    texts = [f.name for f in schema if pa.types.is_string(f.type) or pa.types.is_large_string(f.type)]
                    if len(texts) < 2:
                        raise InputError(f"{self.path} has not two columns of text; its columns are {schema.names}.")
                    names = texts[0], texts[1]
                line = 0
                for piece in file.iter_batches(columns=list(names)):
                    for texts in zip(*(piece.column(name).to_pylist() for name in names), strict=True):
                        line += 1
                        yield line, texts
        except pa.ArrowInvalid as error:
            raise InputError(f"{self.path} cannot be read as Parquet: {error}.") from error


def _find(names: Sequence[str], columns: tuple[str, str] | None) -> tuple[str, str] | None:
    """The two columns that hold the texts, by the names given or else by names that are known."""
    if columns:
        one, other = (choose("column", name, names) for name in columns)
        return one, other
    spelled = {name.strip().lower(): name for name in reversed(names)}
    return next(((spelled[a], spelled[b]) for a, b in KNOWN if a in spelled and b in spelled), None)


def _row(number: int, line: int, texts: Sequence[Any]) -> Row:
    if len(texts) < 2:
        wrong = texts[0] if texts else None
        reason = f"not JSON: {wrong}" if isinstance(wrong, ValueError) else "not a pair of texts"
        return Row(number, line, "", "", reason)
    reasons = []
    for side, text in zip("ab", texts, strict=False):
        if text is None:
            reasons.append(f"text {side} is missing")
        elif not isinstance(text, str):
            reasons.append(f"{side} is not a text but {type(text).__name__} {text!r:.40}")
        elif not text.strip():
            reasons.append(f"text {side} is empty")
        elif any("\ud800" <= char <= "\udfff" for char in text):
            reasons.append(f"text {side} holds half of a character")
    a, b = (text if isinstance(text, str) else "" for text in texts[:2])
    return Row(number, line, a, b, "; ".join(reasons))
