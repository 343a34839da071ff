"""Write rows to an index, each id once: a row is new, replaces another, is there already, or is rejected."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from pairlens.corpus.layout import SHOWN
from pairlens.corpus.records import Reject, TextRecord
from pairlens.corpus.store import Store

_LOOKED_UP = ("id", "text", "parent", "metadata", "source", "row", "truncated")
_FAULTS = {
    "double": "the id {id!r} was in row {row} already",
    "other": "the id {id!r} is in the index with another text or metadata; --update replaces it",
}


COUNTS = ("added", "updated", "there", "truncated", "rejected")


@dataclass(frozen=True)
class Report:
    """The counts of an addition of texts.

    Attributes:
        added: texts that are new in the index.
        updated: texts that replaced another one.
        there: texts that were in the index already, with the same metadata.
        truncated: of those added or updated, how many are longer than the model takes, and were cut.
        rejected: rows that could not be used.
        rejects: the rejected rows with their reasons; empty for a table, whose rejects are in a file.
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
    """Writes rows to a store, each id once.

    Args:
        store: the table.
        source: the name of the run that the rows are from; "" for records from Python.
        update: replace texts that have the same id.
    """

    def __init__(self, store: Store, source: str, *, update: bool) -> None:
        self.store = store
        self._source = source
        self._update = update
        names = store.schema.names
        self._columns = [name for name in _LOOKED_UP if name in names]

    def prepare(
        self,
        given: Sequence[TextRecord | Reject],
        decompose: Callable[[Sequence[TextRecord], str], tuple[Any, list[Reject]]],
    ) -> tuple[Any, list[TextRecord], list[Reject]]:
        """The rows for the table, the texts that are not decomposed, and the rejects: the arguments of `write`.

        Texts that are in the index already are not decomposed, because nothing will be written of them. Ids that occur
        twice in the table are decomposed: whether the first row is committed yet depends on timing, and the report
        must not.

        Args:
            given: rows of a table, in order.
            decompose: decomposes texts.
        """
        texts = [text for text in given if isinstance(text, TextRecord)]
        stored_rows = self._look_up([text.id for text in texts])
        spared = ("added", "there", "other")
        known = [t for t in texts if t.id in stored_rows and self._verdict(asdict(t), stored_rows[t.id]) in spared]
        places_of_known = {(text.row, text.id) for text in known}
        rows, bad = decompose([text for text in texts if (text.row, text.id) not in places_of_known], self._source)
        return rows, known, [*bad, *(reject for reject in given if isinstance(reject, Reject))]

    def write(
        self,
        rows: Any,
        known: Sequence[TextRecord],
        rejects: Sequence[Reject],
        before: Callable[[Report], None] | None = None,
    ) -> Report:
        """Write rows in one commit.

        Args:
            rows: rows of the index, in the order of the table.
            known: texts that were not decomposed.
            rejects: rows that were rejected before.
            before: called with the report, before the commit.
        """
        with self.store.writing():
            columns = rows.select([*self._columns, "line"]).to_pylist()
            entries: list[dict[str, Any]] = [{**entry, "place": i} for i, entry in enumerate(columns)]
            entries = sorted([*entries, *map(asdict, known)], key=lambda entry: entry["row"])
            stored_rows = self._look_up([entry["id"] for entry in entries])
            bad = self._faults(entries, stored_rows)
            refused = {reject.row for reject in bad}
            entries = [entry for entry in entries if entry["row"] not in refused]
            report, fresh = self._settle(entries, stored_rows, [*rejects, *bad])
            if before is not None:
                before(report)
            added = rows.drop_columns(["line"]).take(np.array(fresh, dtype=np.int64))
            self.store.write(added, replace=report.updated > 0)
            if self._update and entries:
                # A text that was replaced may have had other passages than it has now.
                texts = [entry["parent"] or entry["id"] for entry in entries]
                self.store.delete(texts, keep=[entry["id"] for entry in entries])
        return report

    def _faults(
        self, entries: Sequence[Mapping[str, Any]], stored_rows: Mapping[str, Mapping[str, Any]]
    ) -> list[Reject]:
        """The rows whose ids are taken; of a text in passages, one that is taken rejects all of them."""
        first: dict[str, int] = {}
        bad: dict[int, Reject] = {}
        for entry in entries:
            name, row, stored = entry["id"], entry["row"], stored_rows.get(entry["id"])
            verdict = "double" if name in first else self._verdict(entry, stored)
            if verdict in ("double", "other"):
                before = first[name] if name in first else stored and stored["row"]
                bad.setdefault(row, _rejected(entry, _FAULTS[verdict].format(id=name, row=before)))
            elif verdict != "there":
                first[name] = row
        return list(bad.values())

    def _settle(
        self,
        entries: Sequence[Mapping[str, Any]],
        stored_rows: Mapping[str, Mapping[str, Any]],
        rejects: Sequence[Reject],
    ) -> tuple[Report, list[int]]:
        """The report, and the places of the rows to write."""
        counts: dict[str, int] = dict.fromkeys(COUNTS, 0)
        fresh: list[int] = []
        for entry in entries:
            stored = stored_rows.get(entry["id"])
            verdict = self._verdict(entry, stored)
            counts[verdict] += 1
            if verdict in ("added", "updated"):
                # A row that an earlier attempt has committed counts, but is not written again.
                done = stored is not None and self._is_same_row(entry, stored)
                counts["truncated"] += bool((stored if done and stored else entry)["truncated"])
                fresh += [] if done else [entry["place"]]
        counts["rejected"] = len(rejects)
        return Report(**counts, rejects=tuple(sorted(rejects, key=lambda reject: reject.row))), fresh

    def _look_up(self, ids: Sequence[str]) -> dict[str, Mapping[str, Any]]:
        return {row["id"]: row for row in self.store.fetch(ids, self._columns).to_pylist()}

    def _verdict(self, entry: Mapping[str, Any], stored: Mapping[str, Any] | None) -> str:
        """One of "added", "updated", "there", "double" and "other"."""
        if stored is None:
            return "added" if entry.get("place") is not None else "there"  # in the second case deleted meanwhile
        if self._is_same_row(entry, stored):
            return "added"
        if self._source and stored["source"] == self._source and stored["row"] < entry["row"]:
            return "double"
        if stored["text"] == entry["text"] and _plain(stored.get("metadata")) == _plain(entry.get("metadata")):
            return "there"
        return "updated" if self._update else "other"

    def _is_same_row(self, entry: Mapping[str, Any], stored: Mapping[str, Any]) -> bool:
        """Whether a row is in the index already, from an earlier attempt of the same run."""
        return bool(self._source) and (stored["source"], stored["row"]) == (self._source, entry["row"])


def _rejected(entry: Mapping[str, Any], reason: str) -> Reject:
    return Reject(entry["row"], entry["line"], entry["id"], reason, entry["text"][:SHOWN])


def _plain(metadata: Mapping[str, Any] | None) -> dict[str, Any]:
    return {name: value for name, value in (metadata or {}).items() if value is not None}
