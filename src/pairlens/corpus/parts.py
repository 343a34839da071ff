"""Blocks of a table and the parts that they become, in this process or in workers on other machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pairlens.corpus.index import Index
from pairlens.corpus.layout import Layout
from pairlens.corpus.records import Reject, TextRecord
from pairlens.corpus.writer import Writer
from pairlens.errors import InputError, StoreError
from pairlens.io.files import require_pyarrow, whole_file
from pairlens.io.tables import InputTable, in_blocks
from pairlens.lens import Lens


@dataclass(frozen=True)
class RowBlock:
    """Rows that are decomposed together, and the number of the block, from 0."""

    number: int
    rows: list[TextRecord | Reject]


@dataclass(frozen=True)
class Done:
    """A finished block: its number, and how many rows of the table it covers."""

    number: int
    rows: int


class Parts:
    """The parts of a run that are not committed yet, one file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, number: int) -> Path:
        """The file of a part."""
        return self.folder / f"{number:010d}.arrow"

    def write(self, number: int, rows: Any, known: Sequence[TextRecord], rejects: Sequence[Reject], count: int) -> None:
        """Write a part, whole or not at all."""
        pa, _ = require_pyarrow()
        beside = {"known": [asdict(t) for t in known], "rejects": [asdict(r) for r in rejects], "rows": count}
        described = rows.replace_schema_metadata({"pairlens": json.dumps(beside)})
        try:
            with whole_file(self.path(number)) as file, pa.ipc.new_file(file, described.schema) as writer:
                writer.write_table(described)
        except InputError as error:
            raise StoreError(f"{error} Make room, and start again: nothing that was done is lost.") from error

    def read(self, number: int) -> tuple[Any, list[TextRecord], list[Reject], int]:
        """The arguments that `write` was called with."""
        pa, _ = require_pyarrow()
        with pa.ipc.open_file(self.path(number).read_bytes()) as file:
            rows = file.read_all()
        beside = json.loads(rows.schema.metadata[b"pairlens"])
        known, rejects = [TextRecord(**t) for t in beside["known"]], [Reject(**r) for r in beside["rejects"]]
        return rows.replace_schema_metadata(), known, rejects, beside["rows"]

    def count(self, number: int) -> int | None:
        """How many rows of the table a part covers; None where there is no such part."""
        return self.read(number)[3] if self.path(number).exists() else None

    def clear(self, until: int | None = None) -> None:
        """Delete the parts before a number, or all of them."""
        for path in self.folder.glob("*.arrow"):
            if until is None or int(path.stem) < until:
                path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Delete scratch files of a killed run; only before the work begins, because workers write such files."""
        for path in self.folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)


class IngestStage:
    """Turns blocks into parts, in this process or in a worker.

    Args:
        index: where the texts go.
        folder: the folder of the parts.
        source: the name of the run.
        truncate: index the beginning of texts that are longer than the model takes.
        update: replace texts that have the same id.
    """

    def __init__(self, index: Index, folder: Path, source: str, *, truncate: bool, update: bool) -> None:
        self._parts = Parts(folder)
        self._writer = Writer(index.store, source, update=update)
        self._decompose = index.decomposer(truncate=truncate)

    @classmethod
    def load(cls, model: Callable[[], Lens], path: Path, folder: Path, source: str, **options: Any) -> IngestStage:
        """A stage in a worker, which loads the model for itself."""
        return cls(Index.open(path, model()), folder, source, **options)

    def __call__(self, block: RowBlock) -> Done:
        """Decompose a block, unless its part exists."""
        if self._parts.count(block.number) is None:
            self._parts.write(block.number, *self._writer.prepare(block.rows, self._decompose), len(block.rows))
        return Done(block.number, len(block.rows))


def read_blocks(data: InputTable, layout: Layout, chunk: int, start: int) -> Iterator[RowBlock]:
    """The blocks of an input from a number on.

    Args:
        data: the input.
        layout: its columns.
        chunk: rows of a block.
        start: the first number.
    """
    rows = map(layout.read, data.rows(start * chunk))
    return (RowBlock(number, block) for number, block in enumerate(in_blocks(rows, chunk), start))
