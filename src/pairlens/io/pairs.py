"""Tables of pairs of texts, with scores where there are any: one row a pair, and what is wrong with a row."""

from __future__ import annotations

import hashlib
import json
import math
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

from pairlens.errors import InputError, choose
from pairlens.io.files import sha256
from pairlens.io.readers import DELIMITED, SUFFIXES, Record, column_types, load_hub_dataset, open_parquet, read_records
from pairlens.io.tables import find_columns, is_hub_dataset

TEXT_COLUMNS = (
    ("a", "b"),
    ("text_a", "text_b"),
    ("text1", "text2"),
    ("sentence_a", "sentence_b"),
    ("sentence1", "sentence2"),
    ("sent1", "sent2"),
    ("query", "document"),
    ("query", "passage"),
    ("question", "answer"),
    ("question1", "question2"),
    ("anchor", "positive"),
    ("premise", "hypothesis"),
    ("source", "target"),
)
"""Known names of the two columns; where a table has several of these pairs, the first one counts."""
SCORE_COLUMNS = ("score", "similarity_score", "similarity", "label", "relatedness_score", "judgment", "gold")
"""Known names of the column of scores, in the same way."""
_NAME = re.compile(r"\s*[A-Za-z_][\w.-]*\s*")


HEADLESS: tuple[str, ...] = ("a", "b", "score")
"""The columns of a table without a header."""
SAMPLE = 20
"""Lines that are looked at to tell a header from a pair."""


@dataclass(frozen=True)
class PairRow:
    """One row of the table: its number, its line in the file, its texts, and why it cannot be used, if it cannot.

    `score` is a human judgement of the pair; None where the table has no such column, or no number in it. `others` are
    the cells of all columns but the texts, by column.
    """

    number: int
    line: int
    a: str
    b: str
    reason: str = ""
    score: float | None = None
    others: Mapping[str, Any] = field(default_factory=dict, hash=False)


@dataclass(frozen=True)
class PairTable:
    """A table of pairs; `rows` reads it anew each time.

    Args:
        path: a file, whose suffix names its format, or a hub dataset: `owner/name` or `owner/name/configuration`.
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
        return is_hub_dataset(self.path.as_posix())

    def rows(self) -> Iterator[PairRow]:
        """The rows, numbered from 1; empty lines do not count."""
        names: tuple[str, ...] | None = None
        for number, record in enumerate(self._records(), 1):
            if names is None and isinstance(record.content, dict):
                names = self._names(list(record.content))
            yield _row(number, record, names or HEADLESS, scored=self.score is not None)

    def text_columns(self) -> tuple[str, ...]:
        """The names of the two columns of texts; () for a table whose first line is read as a pair."""
        first = next((record.content for record in self._records() if not record.reason), None)
        return self._names(list(first))[:2] if isinstance(first, dict) else ()

    def fingerprint(self) -> str:
        """A hash of the file's content; of a hub dataset, of its pairs."""
        if not self.dataset:
            return sha256(self.path)
        digest = hashlib.sha256()
        for row in self.rows():
            digest.update(json.dumps([row.a, row.b, row.score]).encode())
        return digest.hexdigest()

    def _names(self, columns: Sequence[str]) -> tuple[str, ...]:
        """The columns of the two texts and, where there is one, of the score."""
        lines = self.path.suffix.lower() in (".jsonl", ".ndjson")
        # In JSON Lines a field that the user named may be missing in the first line.
        texts = self.columns if lines and self.columns else _find_texts(columns, self.columns)
        score = (self.score,) if lines and self.score else _find_score(columns, self.score)
        return (*(texts or self._ask(columns)), *score)

    # Each of the following yields records whose content is a dict by column, or a list where there is no header.

    def _records(self) -> Iterator[Record]:
        if self.dataset:
            dataset = load_hub_dataset(self.path.as_posix(), self.split, "train")
            return (Record(line, record) for line, record in enumerate(dataset, 1))
        suffix = self.path.suffix.lower()
        return self._parquet() if suffix == ".parquet" else self._delimited() if suffix in DELIMITED else self._json()

    def _delimited(self) -> Iterator[Record]:
        header = self._header()
        for record in read_records(self.path, utf8=True):
            if record.reason or header is None:
                yield record
            elif record.line != header.line:
                yield Record(record.line, dict(zip(header.content, record.content, strict=False)))

    def _header(self) -> Record | None:
        """The header of a CSV or TSV; None where its first line is a pair."""
        sample = [r for r in islice(read_records(self.path, utf8=True), SAMPLE) if not r.reason]
        if not sample:
            return None
        first = sample[0]
        if self.columns or _find_texts(first.content, None):
            return first
        if self.score is not None:
            raise InputError(f"{self.path} has no header, so it has no column {self.score!r} to be found.")
        if len(first.content) < 2:
            separator = "a tab" if self.path.suffix.lower() == ".tsv" else "a comma, a semicolon or a tab"
            raise InputError(
                f"{self.path}: line {first.line} has one column, and a pair of texts needs two, with {separator} "
                "between them."
            )
        if not _is_pair(first, sample):
            self._ask(first.content)
        return None

    def _json(self) -> Iterator[Record]:
        for line, record, reason in read_records(self.path, utf8=True):
            yield Record(line, record if isinstance(record, dict | list) else None, reason)

    def _parquet(self) -> Iterator[Record]:
        with open_parquet(self.path) as file:
            names = [name for name, kind in column_types(file.schema_arrow).items() if kind]
        return read_records(self.path, names)

    def _ask(self, names: Sequence[str]) -> NoReturn:
        headless = self.path.suffix.lower() in DELIMITED
        raise InputError(
            f"{self.path}: which of the columns {', '.join(names)} are the two texts? Name them with --column-a and "
            "--column-b." + " If the first line is a pair already, put a header before it, such as a,b." * headless
        )


def _is_pair(first: Record, sample: Sequence[Record]) -> bool:
    """Whether the first line of a CSV is a pair, perhaps with a score, and not a header or a pair with other cells."""
    cells = [record.content for record in sample]
    named = all(_NAME.fullmatch(cell) for cell in first.content)
    if named and any(" " in cell.strip() for row in cells[1:] for cell in row[:2]):
        return False
    if any(all(_number(row[column]) is not None for row in cells if len(row) > column) for column in (0, 1)):
        return False  # a column of numbers
    scored = any(_number(row[2]) is not None for row in cells if len(row) == 3)
    return len(first.content) == 2 or (len(first.content) == 3 and scored)


def _find_texts(names: Sequence[str], columns: tuple[str, str] | None) -> tuple[str, ...]:
    """The two columns that hold the texts: those that the user named, or else known names; () where none is known."""
    if columns:
        return tuple(choose("column", name, names) for name in columns)
    return find_columns(names, TEXT_COLUMNS)


def _find_score(names: Sequence[str], score: str | None) -> tuple[str, ...]:
    """The column of scores, or an empty tuple."""
    if score is not None:
        return (choose("column", score, names),)
    return find_columns(names, [(name,) for name in SCORE_COLUMNS])


def _row(number: int, record: Record, names: Sequence[str], *, scored: bool) -> PairRow:
    """The row of a record; `scored` rows cannot be used without a score.

    Args:
        number: the row's number.
        record: its cells by column.
        names: the columns of the texts and perhaps of the score.
        scored: whether it must have a score.
    """
    if record.reason or record.content is None:
        return PairRow(number, record.line, "", "", record.reason or "not a pair of texts")
    cells = record.content
    if isinstance(cells, list):
        names, cells = HEADLESS, dict(zip(HEADLESS, cells, strict=False))
    texts = [cells.get(name) for name in names[:2]]
    reasons = [fault for side, text in zip("ab", texts, strict=True) if (fault := _fault(side, text))]
    given = cells.get(names[2]) if len(names) > 2 else None
    score = _number(given)
    if scored and score is None:
        reasons.append("the score is missing" if given is None else f"the score is {given!r:.40}, and not a number")
    a, b = (text if isinstance(text, str) else "" for text in texts)
    others = {name: value for name, value in cells.items() if name not in names[:2]}
    return PairRow(number, record.line, a, b, "; ".join(reasons), score, others)


def _fault(side: str, text: Any) -> str:
    """What is wrong with the text of a side, or ""."""
    if text is None:
        return f"text {side} is missing"
    if not isinstance(text, str):
        return f"{side} is not a text but {type(text).__name__} {text!r:.40}"
    if not text.strip():
        return f"text {side} is empty"
    if any("\ud800" <= char <= "\udfff" for char in text):
        return f"text {side} holds half of a character"
    return ""


def _number(cell: Any) -> float | None:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return None
    return number if math.isfinite(number) else None
