"""The pairs of a table: CSV, TSV, JSON Lines, Parquet or a hub dataset, row by row, with what is wrong with a row."""

from __future__ import annotations

import csv
import hashlib
import json
import math
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairlens.errors import InputError, MissingExtra, choose
from pairlens.io.documents import require_pyarrow

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
SCORES = ("score", "similarity_score", "similarity", "label", "relatedness_score", "judgment", "gold")
"""Names of the column of scores, likewise."""
_DATASET = re.compile(r"[\w.-]+/[\w.-]+(/[\w.-]+)?")


@dataclass(frozen=True)
class Row:
    """One row of the table: its number, its line in the file, its texts, and why it cannot be used, if it cannot.

    `score` is what people said of the pair; None where the table has no such column, or no number in it.
    """

    number: int
    line: int
    a: str
    b: str
    reason: str = ""
    score: float | None = None


@dataclass(frozen=True)
class Source:
    """A table of pairs; `rows` reads it anew each time.

    Args:
        path: a file, whose suffix says what it is, or a hub dataset: `owner/name` or `owner/name/configuration`.
        columns: the names of the two columns, or None to find them.
        score: the name of the column of scores; a row without a number there cannot be used. None to take one that
            is known by its name or, in a file without a header, the third column.
        split: of a hub dataset.
    """

    path: Path
    columns: tuple[str, str] | None = None
    score: str | None = None
    split: str = "test"

    def __post_init__(self) -> None:
        if self.dataset:
            return
        choose("suffix of a table of pairs", self.path.suffix.lower(), SUFFIXES)
        if not self.path.is_file():
            raise InputError(f"there is no file {self.path}.")

    @property
    def dataset(self) -> bool:
        """Whether this is a hub dataset, and not a file."""
        suffixed = self.path.suffix.lower() in SUFFIXES
        return not suffixed and not self.path.exists() and bool(_DATASET.fullmatch(self.path.as_posix()))

    def rows(self) -> Iterator[Row]:
        """The rows, from 1; empty lines do not count."""
        suffix = self.path.suffix.lower()
        read = self._parquet if suffix == ".parquet" else self._delimited if suffix in (".csv", ".tsv") else self._lines
        with self._readable():
            for number, (line, cells) in enumerate((self._hub if self.dataset else read)(), 1):
                yield _row(number, line, cells, strict=self.score is not None)

    def header(self) -> bool:
        """Whether the columns are known by name: false for a CSV or TSV whose first line is taken for a pair."""
        if self.columns or self.path.suffix.lower() not in (".csv", ".tsv"):
            return True
        with self._readable(), self.path.open(encoding="utf-8-sig", newline="") as file:
            first = next(self._records(file), [])
        return _find(first, None) is not None

    def fingerprint(self) -> str:
        """A hash of the file's content; of a hub dataset, of its pairs."""
        digest = hashlib.sha256()
        if self.dataset:
            for row in self.rows():
                digest.update(json.dumps([row.a, row.b, row.score]).encode())
            return digest.hexdigest()
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

    # Each of these yields a line's number and its cells: the two texts and, where there is one, the score.

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
                    if len(record) < 2:
                        what = "tab" if self.path.suffix.lower() == ".tsv" else "comma"
                        raise InputError(
                            f"{self.path}: line {begin} has one column, and a pair has two. Is the {what} "
                            "what separates them?"
                        )
                    if named is not None:
                        places = [record.index(name) for name in (*named, *_find_score(record, self.score))]
                        continue
                    if self.score is not None:
                        raise InputError(f"{self.path} has no header, so it has no column {self.score!r} to be found.")
                    places = [0, 1, 2] if len(record) > 2 else [0, 1]
                yield begin, [record[place] if place < len(record) else None for place in places]

    def _lines(self) -> Iterator[tuple[int, Sequence[Any]]]:
        names: tuple[str, ...] | None = None
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
                    # Fields that are named in so many words may be missing in a line; those that are found may not.
                    texts = self.columns or (names and names[:2]) or _find(list(record), None)
                    if texts is None:
                        raise InputError(
                            f"{self.path}: which of the fields {', '.join(record)} are the two texts? "
                            "Name them with --column-a and --column-b."
                        )
                    if names is None:
                        names = (*texts, *((self.score,) if self.score else _find_score(list(record), None)))
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
                names = (*names, *_find_score(schema.names, self.score))
                line = 0
                for piece in file.iter_batches(columns=list(names)):
                    for cells in zip(*(piece.column(name).to_pylist() for name in names), strict=True):
                        line += 1
                        yield line, cells
        except pa.ArrowInvalid as error:
            raise InputError(f"{self.path} cannot be read as Parquet: {error}.") from error

    def _hub(self) -> Iterator[tuple[int, Sequence[Any]]]:
        try:
            from datasets import load_dataset
            from datasets.exceptions import DatasetsError
        except ImportError as error:
            raise MissingExtra("datasets", "train") from error
        parts = self.path.parts
        try:
            found: Any = load_dataset("/".join(parts[:2]), *parts[2:], split=self.split)
        except (ValueError, OSError, DatasetsError) as error:
            reason = str(error).splitlines()[0].rstrip(".")
            raise InputError(
                f"{self.path} is no file, and as a hub dataset it cannot be loaded: {reason}. Its split is "
                f"{self.split!r}; a configuration goes behind a slash."
            ) from error
        names = _find(found.column_names, self.columns)
        if names is None:
            raise InputError(
                f"{self.path}: which of the columns {', '.join(found.column_names)} are the two texts? "
                "Name them with --column-a and --column-b."
            )
        names = (*names, *_find_score(found.column_names, self.score))
        for line, record in enumerate(found, 1):
            yield line, [record[name] for name in names]


def _find(names: Sequence[str], columns: tuple[str, str] | None) -> tuple[str, str] | None:
    """The two columns that hold the texts, by the names given or else by names that are known."""
    if columns:
        one, other = (choose("column", name, names) for name in columns)
        return one, other
    spelled = {name.strip().lower(): name for name in reversed(names)}
    return next(((spelled[a], spelled[b]) for a, b in KNOWN if a in spelled and b in spelled), None)


def _find_score(names: Sequence[str], score: str | None) -> tuple[str, ...]:
    """The column of scores, or none."""
    if score is not None:
        return (choose("column", score, names),)
    spelled = {name.strip().lower(): name for name in reversed(names)}
    return next(((spelled[name],) for name in SCORES if name in spelled), ())


def _row(number: int, line: int, cells: Sequence[Any], *, strict: bool) -> Row:
    if len(cells) < 2:
        wrong = cells[0] if cells else None
        reason = f"not JSON: {wrong}" if isinstance(wrong, ValueError) else "not a pair of texts"
        return Row(number, line, "", "", reason)
    reasons = []
    for side, text in zip("ab", cells, strict=False):
        if text is None:
            reasons.append(f"text {side} is missing")
        elif not isinstance(text, str):
            reasons.append(f"{side} is not a text but {type(text).__name__} {text!r:.40}")
        elif not text.strip():
            reasons.append(f"text {side} is empty")
        elif any("\ud800" <= char <= "\udfff" for char in text):
            reasons.append(f"text {side} holds half of a character")
    score = _number(cells[2]) if len(cells) > 2 else None
    if strict and score is None:
        reasons.append(f"the score is {cells[2]!r:.40}, and not a number" if len(cells) > 2 else "the score is missing")
    a, b = (text if isinstance(text, str) else "" for text in cells[:2])
    return Row(number, line, a, b, "; ".join(reasons), score)


def _number(cell: Any) -> float | None:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
