"""Ingest a table into an index: every row exactly once, even if the process is killed at any moment.

The table is cut into blocks of rows. Each block is decomposed by itself, in this process or on another machine, and
becomes a part: a file that is whole or absent. Parts are committed to the index in the order of the table, several at a
time, and a journal records each commit. A run that starts again finds the finished parts, looks up which rows of the
last commit are in the index, and resumes:

    rejects are written → rows are committed → the journal says so → the parts are deleted
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Generator
from contextlib import closing
from dataclasses import asdict, dataclass, replace
from functools import cached_property, partial
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlens.corpus.index import CHUNK, Index
from pairlens.corpus.layout import Layout
from pairlens.corpus.parts import Done, IngestStage, Parts, map_blocks, read_blocks
from pairlens.corpus.workload import Pace
from pairlens.corpus.writer import COUNTS, Report, Writer
from pairlens.errors import StoreError, whole
from pairlens.io import InputTable, Journal, require_pyarrow

if TYPE_CHECKING:
    from pairlens.corpus.cluster import Cluster

COMMITTED = 4096
"""Rows that are committed together: enough for few, large files."""
RUNS = "runs"


@dataclass(frozen=True)
class IngestRun:
    """One run: a table that is ingested into an index.

    Attributes:
        index: the index.
        data: the input.
        layout: its columns.
        passages: split texts that are longer than the model takes, instead of keeping their beginning.
        update: replace texts that have the same name, instead of rejecting the row.
        chunk: rows that are decomposed together.
    """

    index: Index
    data: InputTable
    layout: Layout
    passages: bool = False
    update: bool = False
    chunk: int = CHUNK

    @cached_property
    def source(self) -> str:
        """The name of the run: the name of its table, and a hash of everything that the result depends on."""
        asked = {**asdict(self.layout), "input": self.data.fingerprint(), "chunk": whole("chunk", self.chunk, 1)}
        asked |= {"passages": self.passages, "update": self.update}
        digest = hashlib.sha256(json.dumps(asked, sort_keys=True).encode()).hexdigest()[:12]
        return f"{self.data.name.replace('/', '-')}-{digest}"

    @property
    def folder(self) -> Path:
        """The folder of the journal, the rejects and the parts."""
        return self.index.path / RUNS / self.source

    @property
    def rejects(self) -> Path:
        """The file of rejected rows."""
        return self.folder / "rejects.jsonl"

    def begun(self) -> bool:
        """Whether an earlier run has done a part of the work."""
        return any(self.folder.glob("journal.jsonl")) or any((self.folder / "parts").glob("*.arrow"))

    def __call__(
        self, *, cluster: Cluster | None = None, restart: bool = False, progress: Callable[[Pace], None] | None = None
    ) -> Report:
        """Index what is not yet indexed.

        Args:
            cluster: where to compute; by default in this process.
            restart: forget what an earlier run of the same input has done; texts that are in the index stay there.
            progress: called several times a block with how far the run is; not called if there is nothing to do.

        Returns:
            The counts for the whole table, earlier runs included.
        """
        parts = Parts(self.folder / "parts")
        parts.folder.mkdir(parents=True, exist_ok=True)
        with Journal(self.folder / "journal.jsonl", {"source": self.source}, restart=restart) as journal:
            journal.keep(1, 2**63)
            parts.sweep()
            if restart:
                parts.clear()
            commits = _Commits(self, journal, parts)
            if not commits.finished:
                advance = self._reporter(commits.rows, progress) if progress else None
                # Workers elsewhere report whole blocks.
                inside = None if advance is None or cluster else partial(advance, 0, spared=0.0)
                with closing(self._make_parts(commits.block, cluster, inside)) as parts_done:
                    for done in parts_done:
                        commits.take(done)
                        if advance is not None:
                            advance(done.rows, done.work, done.spared)
                commits.finish()
        return commits.report

    def _make_parts(
        self, start: int, cluster: Cluster | None, advance: Callable[[float], None] | None
    ) -> Generator[Done]:
        """Every block from a number on as a part, in any order."""
        folder = (self.folder / "parts").resolve()
        how: dict[str, Any] = {"passages": self.passages, "update": self.update, "advance": advance}
        make = partial(IngestStage, folder=folder, source=self.source, **how)
        return map_blocks(make, partial(read_blocks, self.data, self.layout, self.chunk, start), self.index, cluster)

    def _reporter(self, rows: int, progress: Callable[[Pace], None]) -> Callable[..., None]:
        """A function that takes rows, work done and work spared, and reports the pace; `rows` are finished already."""
        workload = self.index.workload(passages=self.passages)
        pace = Pace(self.data.count(), workload.mean(self.data, self.layout), rows)
        pace.spared = rows * workload.mean(self.data, self.layout, rows) if rows else 0.0

        def advance(rows: int, work: float, spared: float) -> None:
            pace.rows, pace.done, pace.spared = pace.rows + rows, pace.done + work, pace.spared + spared
            progress(pace)

        return advance


class _Commits:
    """Commits parts to the index, in the order of the table."""

    def __init__(self, run: IngestRun, journal: Journal, parts: Parts) -> None:
        self._run = run
        self._journal = journal
        self._parts = parts
        self._writer = Writer(run.index.store, run.source, update=run.update)
        last: dict[str, Any] = dict.fromkeys(("block", "rows", "written", *COUNTS), 0)
        for record in journal.records():
            last = record
        self.block: int = last["block"]
        self.rows: int = last["rows"]
        self.finished: bool = last.get("finished", False)
        self.report = Report(**{name: last[name] for name in COUNTS})
        self._written: int = last["written"]
        self._waiting: dict[int, int] = {}
        parts.clear(self.block)
        # Rows that were rejected after the last commit will be rejected again.
        with run.rejects.open("ab") as file:
            file.truncate(self._written)

    def take(self, done: Done) -> None:
        """Take a finished part, and commit as soon as enough consecutive parts are finished."""
        self._waiting[done.number] = done.rows
        ready, number = 0, self.block
        while number in self._waiting and ready < COMMITTED:
            ready, number = ready + self._waiting[number], number + 1
        if ready >= COMMITTED:
            self._commit(number)

    def finish(self) -> None:
        """Commit the remaining parts, and record that the run is complete."""
        while self._waiting:
            self._commit(min(max(self._waiting) + 1, self.block + COMMITTED // self._run.chunk + 1))
        self._run.index.optimize()
        self._note(finished=True)

    def _commit(self, until: int) -> None:
        """Commit the parts before a number."""
        pa, _ = require_pyarrow()
        parts = [self._parts.read(number) for number in range(self.block, until)]
        tables, known, rejects, _ = zip(*parts, strict=True)
        report = self._writer.write(pa.concat_tables(tables), [*chain(*known)], [*chain(*rejects)], before=self._reject)
        self.report += replace(report, rejects=())
        self.rows += sum(self._waiting.pop(number) for number in range(self.block, until))
        self.block = until
        self._note()
        self._parts.clear(until)

    def _reject(self, report: Report) -> None:
        """Write the rejected rows to their file, before the commit."""
        try:
            with self._run.rejects.open("r+b") as file:
                file.seek(self._written)
                for reject in report.rejects:
                    file.write(json.dumps(asdict(reject), ensure_ascii=False).encode() + b"\n")
                file.truncate()
                file.flush()
                os.fsync(file.fileno())
                self._written = file.tell()
        except OSError as error:
            raise StoreError(f"{self._run.rejects} cannot be written: {error.strerror}.") from error

    def _note(self, **more: Any) -> None:
        counts = {name: getattr(self.report, name) for name in COUNTS}
        self._journal.append([{"block": self.block, "rows": self.rows, "written": self._written, **counts, **more}])
