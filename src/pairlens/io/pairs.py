"""Tables of pairs of texts, with scores where there are any: one row a pair, and what is wrong with a row."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


@dataclass(frozen=True)
class PairRow:
    """One row of the table: its number, its line in the file, its texts, and why it cannot be used, if it cannot.

    `score` is a human judgement of the pair; None where the table has no such column, or no number in it.
    """

    number: int
    line: int
    a: str
    b: str
    reason: str = ""
    score: float | None = None


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
        for number, record in enumerate(self._cells(), 1):
            yield _row(number, record, scored=self.score is not None)

    def header(self) -> bool:
        """Whether the columns are known by name: false for a CSV or TSV whose first line is read as a pair."""
        if self.columns or self.path.suffix.lower() not in DELIMITED:
            return True
        first = next(read_records(self.path, utf8=True), Record(1, []))
        return bool(_find_texts(first.content or [], None))

    def fingerprint(self) -> str:
        """A hash of the file's content; of a hub dataset, of its pairs."""
        if not self.dataset:
            return sha256(self.path)
        digest = hashlib.sha256()
        for row in self.rows():
            digest.update(json.dumps([row.a, row.b, row.score]).encode())
        return digest.hexdigest()

    # Each of the following yields records whose content is the two texts and, where there is one, the score.

    def _cells(self) -> Iterator[Record]:
        if self.dataset:
            return self._hub()
        suffix = self.path.suffix.lower()
        return self._parquet() if suffix == ".parquet" else self._delimited() if suffix in DELIMITED else self._json()

    def _delimited(self) -> Iterator[Record]:
        places: list[int] | None = None
        for line, cells, reason in read_records(self.path, utf8=True):
            if reason:
                yield Record(line, None, reason)
                continue
            if places is None:
                names = _find_texts(cells, self.columns)
                if len(cells) < 2:
                    separator = "tab" if self.path.suffix.lower() == ".tsv" else "comma"
                    raise InputError(
                        f"{self.path}: line {line} has one column, and a pair has two. Is the {separator} "
                        "what separates them?"
                    )
                if names:
                    places = [cells.index(name) for name in (*names, *_find_score(cells, self.score))]
                    continue
                if self.score is not None:
                    raise InputError(f"{self.path} has no header, so it has no column {self.score!r} to be found.")
                places = [0, 1, 2] if len(cells) > 2 else [0, 1]
            yield Record(line, [cells[place] if place < len(cells) else None for place in places])

    def _json(self) -> Iterator[Record]:
        names: tuple[str, ...] | None = None
        for line, record, reason in read_records(self.path, utf8=True):
            if isinstance(record, dict):
                if names is None:
                    # A field that the user named may be missing in a line; a field that is found by its name may not.
                    texts = self.columns or _find_texts(list(record), None) or self._ask("fields", list(record))
                    names = (*texts, *((self.score,) if self.score else _find_score(list(record), None)))
                record = [record.get(name) for name in names]
            yield Record(line, record if isinstance(record, list) else None, reason)

    def _parquet(self) -> Iterator[Record]:
        with open_parquet(self.path) as file:
            types = column_types(file.schema_arrow)
        names = _find_texts(list(types), self.columns)
        if not names:
            names = tuple(name for name, kind in types.items() if kind == "text")[:2]
            if len(names) < 2:
                raise InputError(f"{self.path} has not two columns of text; its columns are {list(types)}.")
        columns = (*names, *_find_score(list(types), self.score))
        for line, record, _ in read_records(self.path, columns):
            yield Record(line, [record[name] for name in columns])

    def _hub(self) -> Iterator[Record]:
        dataset = load_hub_dataset(self.path.as_posix(), self.split, "train")
        texts = _find_texts(dataset.column_names, self.columns) or self._ask("columns", dataset.column_names)
        columns = (*texts, *_find_score(dataset.column_names, self.score))
        for line, record in enumerate(dataset, 1):
            yield Record(line, [record[name] for name in columns])

    def _ask(self, what: str, names: Sequence[str]) -> NoReturn:
        raise InputError(
            f"{self.path}: which of the {what} {', '.join(names)} are the two texts? "
            "Name them with --column-a and --column-b."
        )


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


def _row(number: int, record: Record, *, scored: bool) -> PairRow:
    """The row of a record; `scored` rows cannot be used without a score."""
    cells = record.content or ()
    if record.reason or len(cells) < 2:
        return PairRow(number, record.line, "", "", record.reason or "not a pair of texts")
    reasons = [fault for side, text in zip("ab", cells, strict=False) if (fault := _fault(side, text))]
    score = _number(cells[2]) if len(cells) > 2 else None
    if scored and score is None:
        reasons.append(f"the score is {cells[2]!r:.40}, and not a number" if len(cells) > 2 else "the score is missing")
    a, b = (text if isinstance(text, str) else "" for text in cells[:2])
    return PairRow(number, record.line, a, b, "; ".join(reasons), score)


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
