"""Layouts: which columns of a table hold texts, ids and metadata, and why a row is rejected."""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from pairlens.corpus.records import TYPES, Reject, TextRecord
from pairlens.errors import InputError, choose
from pairlens.io import InputRow, InputTable, find_columns

KNOWN = ("text", "abstract", "passage", "document", "content", "contents", "body", "sentence", "review", "description")
"""Known names of the column of texts; the first one that a table has counts."""
KNOWN_IDS = ("id", "_id", "doc_id", "document_id", "passage_id", "text_id", "docno", "pid", "uid", "uuid")
"""Known names of the column of ids, in the same way."""
LONGEST = 1_000_000
"""Characters of a text beyond which it is rejected before it is tokenized."""
SHOWN = 200
"""Characters of a rejected text that its reject keeps."""


@dataclass(frozen=True)
class Layout:
    """The columns of a table.

    Attributes:
        text: the column of texts.
        id: the column of ids; None to use the rows' numbers.
        metadata: the other columns that are kept, each with one of `TYPES`.
    """

    text: str
    id: str | None = None
    metadata: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of(
        cls, table: InputTable, text: str | None, id_column: str | None, metadata: Mapping[str, str | None] | None
    ) -> Layout:
        """The layout of a table with the columns that a user named; by default all other columns are metadata.

        Args:
            table: the table.
            text: the column of texts, or None to find it.
            id_column: the column of ids, "" for the rows' numbers, or None to find it.
            metadata: the columns to keep, each with a type, or None for the type in the file; None for all columns.
        """
        names = table.columns
        if text is None:
            candidates = find_columns(names, [(name,) for name in KNOWN]) or tuple(names)
            if len(candidates) != 1:
                raise InputError(
                    f"which of the columns {', '.join(names)} of {table.name} holds the texts? "
                    "Name it with --text-column."
                )
            text = candidates[0]
        choose("column", text, names)
        if id_column is None:
            named = [name for name, kind in names.items() if kind in ("text", "int") and name != text]
            id_column = next(iter(find_columns(named, [(name,) for name in KNOWN_IDS])), None)
        elif id_column:
            choose("column", id_column, names)
        if metadata is None:
            kept = {name: kind or "text" for name, kind in names.items() if name not in (text, id_column)}
        else:
            kept = {name: kind or names[choose("column", name, names)] or "text" for name, kind in metadata.items()}
        for kind in kept.values():
            choose("type of metadata", kind, TYPES)
        return cls(text, id_column or None, kept)

    def fit(self, table: InputTable, kept: Mapping[str, str], named: Iterable[str]) -> Layout:
        """The layout with the metadata that an index keeps and the table has; raises where a user named other."""
        unknown = [name for name in named if name not in kept]
        if unknown:
            raise InputError(
                f"the index keeps no metadata {unknown[0]!r}; it was made with {', '.join(kept) or 'none'}."
            )
        return replace(self, metadata={name: kind for name, kind in kept.items() if name in table.columns})

    def read(self, row: InputRow) -> TextRecord | Reject:
        """The text of a row, or why the row cannot be indexed."""
        given = row.values.get(self.text)
        name = str(row.row) if self.id is None else row.values.get(self.id)
        reasons = [row.reason] if row.reason else [*_faults_of_text(given), *_faults_of_id(name)]
        metadata: dict[str, Any] = {}
        for column, kind in self.metadata.items() if not reasons else ():
            value = row.values.get(column)
            try:
                metadata[column] = _convert(value, kind)
            except ValueError:
                reasons.append(f"metadata {column} is {value!r:.40}, which is no {kind}")
        shown = _printable(given) if isinstance(given, str) else ""
        if reasons:
            return Reject(row.row, row.line, _printable(str(name or "")), "; ".join(reasons), shown[:SHOWN])
        return TextRecord(str(name), str(given), metadata, row.row, row.line)

    def read_record(self, number: int, record: Any) -> TextRecord | Reject:
        """The text of a record from Python, where the id may be left out, or why it cannot be indexed."""
        if not isinstance(record, Mapping):
            return Reject(number, 0, "", f"not a record but {type(record).__name__} {record!r:.40}")
        layout = replace(self, id=None) if self.id is None or record.get(self.id) is None else self
        unknown = [name for name in record if name not in (self.text, self.id, *self.metadata)]
        reason = f"the index has no metadata {', '.join(map(repr, unknown))}" if unknown else ""
        return layout.read(InputRow(number, 0, record, reason))


def _faults_of_text(text: Any) -> list[str]:
    if text is None:
        return ["the text is missing"]
    if not isinstance(text, str):
        return [f"not a text but {type(text).__name__} {text!r:.40}"]
    if not text.strip():
        return ["the text is empty"]
    if not _encodable(text):
        return ["the text is not UTF-8"]
    if len(text) > LONGEST:
        return [f"the text has {len(text)} characters, and {LONGEST} is the most"]
    return []


def _faults_of_id(name: Any) -> list[str]:
    if isinstance(name, int) and not isinstance(name, bool):
        return []
    if name is None or name == "":
        return ["the id is missing"]
    if not isinstance(name, str):
        return [f"the id is {type(name).__name__} {name!r:.40}, and not a text or a whole number"]
    return [] if _encodable(name) else ["the id is not UTF-8"]


def _convert(value: Any, kind: str) -> Any:
    """A value of metadata converted to its type; raises ValueError where it cannot be. Missing values are None."""
    if value is None or (value == "" and kind != "text"):
        return None
    if isinstance(value, float) and math.isnan(value):
        return None
    if kind == "text":
        nested = isinstance(value, dict | list)
        text = json.dumps(value, ensure_ascii=False, default=str) if nested else str(value)
        if not _encodable(text):
            raise ValueError
        return text
    if kind == "bool":
        known = {"true": True, "1": True, "false": False, "0": False}
        if str(value).lower() not in known:
            raise ValueError
        return known[str(value).lower()]
    number = float(value) if isinstance(value, str | int | float) else math.nan
    if kind == "float":
        if math.isnan(number):
            raise ValueError
        return number
    whole = int(value) if isinstance(value, str | int) or (isinstance(value, float) and value.is_integer()) else None
    if whole is None or not -(2**63) <= whole < 2**63:
        raise ValueError
    return whole


def _encodable(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _printable(text: str) -> str:
    return text.encode("utf-8", "backslashreplace").decode()
