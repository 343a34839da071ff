"""What becomes of rows that are to be written: new, replaced, there already, or in the way of another one."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from pairlens.corpus.layout import SHOWN
from pairlens.corpus.records import Reject, Text
from pairlens.corpus.store import Store

_LOOKED_UP = ("id", "text", "metadata", "source", "row", "truncated")
_FAULTS = {
    "double": "the id {id!r} was in row {row} already",
    "other": "the id {id!r} is in the index with another text or metadata; --update replaces it",
}


COUNTS = ("added", "updated", "there", "truncated", "rejected")


@dataclass(frozen=True)
class Report:
    """What came of adding texts.

    Attributes:
        added: texts that are new in the index.
        updated: texts that took the place of another one.
        there: texts that were in the index already, as they are.
        truncated: of those added or updated, how many are longer than the model takes.
        rejected: rows that could not be used.
        rejects: those rows, and why; empty for an input, whose rejected rows are in a file.
    """

    added: int = 0
    updated: int = 0
    there: int = 0
    truncated: int = 0
    rejected: int = 0
    rejects: tuple[Reject, ...] = field(default=(), repr=False)

    def __add__(self, other: Report) -> Report:
        counts = {name: getattr(self, name) + getattr(other, name) for name in COUNTS}
        return replace(self, **counts, rejects=self.rejects + other.rejects)


class Writer:
    """Writes rows to a store, each name once.

    Args:
        store: the table.
        source: the name of the input that the rows are from; "" for texts that were handed over in Python.
        update: replace what has the same name.
    """

    def __init__(self, store: Store, source: str, *, update: bool) -> None:
        self._store = store
        self._source = source
        self._update = update
        names = store.schema.names
        self._columns = [name for name in _LOOKED_UP if name in names]

    def prepare(
        self, given: Sequence[Text | Reject], decompose: Callable[[Sequence[Text], str], tuple[Any, list[Reject]]]
    ) -> tuple[Any, list[Text], list[Reject]]:
        """Rows for the table, texts that need not be taken apart, and what is rejected: the arguments of `write`.

        Nothing will be written of texts that are there, so they are spared. Names that the input has twice are not:
        whether the first of them is in the table by now depends on the moment, and what is said of a row must not.

        Args:
            given: rows of an input, in order.
            decompose: takes texts apart.
        """
        texts = [text for text in given if isinstance(text, Text)]
        there = self._look_up([text.id for text in texts])
        spared = ("added", "there", "other")
        known = [t for t in texts if t.id in there and self._verdict(_entry(t), there[t.id]) in spared]
        rows_of_known = {text.row for text in known}
        rows, bad = decompose([text for text in texts if text.row not in rows_of_known], self._source)
        return rows, known, [*bad, *(reject for reject in given if isinstance(reject, Reject))]

    def write(
        self,
        rows: Any,
        known: Sequence[Text],
        rejects: Sequence[Reject],
        before: Callable[[Report], None] | None = None,
    ) -> Report:
        """Write rows in one commit.

        Args:
            rows: rows of the table, in the order of the input.
            known: texts that were not taken apart.
            rejects: rows of the input that were rejected before.
            before: called with what will come of it, before it is committed.
        """
        with self._store.writing():
            report, fresh, replaces = self._settle(rows, known, rejects)
            if before is not None:
                before(report)
            self._store.write(rows.drop_columns(["line"]).take(np.array(fresh, dtype=np.int64)), replace=replaces)
        return report

    def _settle(self, rows: Any, known: Sequence[Text], rejects: Sequence[Reject]) -> tuple[Report, list[int], bool]:
        """What becomes of every row, which of them are to be written, and whether they replace others."""
        looked_at = rows.select([*self._columns, "line"]).to_pylist()
        entries: list[dict[str, Any]] = [{**entry, "place": i} for i, entry in enumerate(looked_at)]
        entries = sorted([*entries, *map(_entry, known)], key=lambda entry: entry["row"])
        there = self._look_up([entry["id"] for entry in entries])
        first: dict[str, int] = {}
        bad, fresh = list(rejects), []
        counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
        for entry in entries:
            name, row, found = entry["id"], entry["row"], there.get(entry["id"])
            verdict = "double" if name in first else self._verdict(entry, found)
            if verdict in ("double", "other"):
                before = first[name] if name in first else found and found["row"]
                bad.append(_rejected(entry, _FAULTS[verdict].format(id=name, row=before)))
            else:
                counts[verdict] += 1
            if verdict in ("added", "updated"):
                first[name] = row
                # What an earlier attempt has committed counts, but is not written again.
                done = found is not None and self._is_same_row(entry, found)
                counts["truncated"] += bool((found if done and found else entry)["truncated"])
                fresh += [] if done else [entry["place"]]
        counts["rejected"] = len(bad)
        report = Report(**counts, rejects=tuple(sorted(bad, key=lambda reject: reject.row)))
        return report, fresh, counts["updated"] > 0

    def _look_up(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        return {row["id"]: row for row in self._store.fetch(ids, self._columns).to_pylist()}

    def _verdict(self, entry: Mapping[str, Any], found: Mapping[str, Any] | None) -> str:
        """One of "added", "updated", "there", "double" and "other"."""
        if found is None:
            return "added" if entry.get("place") is not None else "there"  # in the second case deleted meanwhile
        if self._is_same_row(entry, found):
            return "added"
        if self._source and found["source"] == self._source and found["row"] < entry["row"]:
            return "double"
        if found["text"] == entry["text"] and _plain(found.get("metadata")) == _plain(entry.get("metadata")):
            return "there"
        return "updated" if self._update else "other"

    def _is_same_row(self, entry: Mapping[str, Any], found: Mapping[str, Any]) -> bool:
        """Whether a row of the input is in the table already, from an attempt that was cut off."""
        return bool(self._source) and (found["source"], found["row"]) == (self._source, entry["row"])


def _entry(text: Text) -> dict[str, Any]:
    return {"id": text.id, "text": text.text, "metadata": text.metadata, "row": text.row, "line": text.line}


def _rejected(entry: Mapping[str, Any], reason: str) -> Reject:
    return Reject(entry["row"], entry["line"], entry["id"], reason, entry["text"][:SHOWN])


def _plain(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (metadata or {}).items() if value is not None}
