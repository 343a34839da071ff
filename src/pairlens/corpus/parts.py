"""Blocks of an input and the parts that they become: what workers do, on this machine or another."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pairlens.corpus.index import Index
from pairlens.corpus.layout import Layout
from pairlens.corpus.records import Reject, Text
from pairlens.corpus.writer import Writer
from pairlens.errors import InputError, StoreError
from pairlens.io.files import require_pyarrow, whole_file
from pairlens.io.tables import InputTable, in_blocks
from pairlens.lens import Lens


@dataclass(frozen=True)
class Block:
    """Rows of an input that are taken apart together, and the number of the block, from 0."""

    number: int
    rows: list[Text | Reject]


@dataclass(frozen=True)
class Done:
    """A block that has become a part: its number, and how many rows of the input it stands for."""

    number: int
    rows: int


class Parts:
    """The parts of a run that are not committed yet, one file each."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    def path(self, number: int) -> Path:
        """The file of a part."""
        return self.folder / f"{number:010d}.arrow"

    def write(self, number: int, rows: Any, known: Sequence[Text], rejects: Sequence[Reject], count: int) -> None:
        """Write a part, whole or not at all."""
        pa, _ = require_pyarrow()
        beside = {"known": [asdict(t) for t in known], "rejects": [asdict(r) for r in rejects], "rows": count}
        described = rows.replace_schema_metadata({"pairlens": json.dumps(beside)})
        try:
            with whole_file(self.path(number)) as file, pa.ipc.new_file(file, described.schema) as writer:
                writer.write_table(described)
        except InputError as error:
            raise StoreError(f"{error} Make room, and start again: nothing that was done is lost.") from error

    def read(self, number: int) -> tuple[Any, list[Text], list[Reject], int]:
        """What `write` wrote."""
        pa, _ = require_pyarrow()
        with pa.ipc.open_file(self.path(number).read_bytes()) as file:
            rows = file.read_all()
        beside = json.loads(rows.schema.metadata[b"pairlens"])
        known, rejects = [Text(**t) for t in beside["known"]], [Reject(**r) for r in beside["rejects"]]
        return rows.replace_schema_metadata(), known, rejects, beside["rows"]

    def count(self, number: int) -> int | None:
        """How many rows of the input a part stands for; None where there is no such part."""
        return self.read(number)[3] if self.path(number).exists() else None

    def clear(self, until: int | None = None) -> None:
        """Delete the parts before a number, or all of them."""
        for path in self.folder.glob("*.arrow"):
            if until is None or int(path.stem) < until:
                path.unlink(missing_ok=True)

    def sweep(self) -> None:
        """Delete what was cut off while it was written; only before the work begins, or somebody writes it just now."""
        for path in self.folder.glob(".*.tmp"):
            path.unlink(missing_ok=True)


class Stage:
    """Turns blocks into parts: what every worker does, on this machine or another.

    Args:
        index: where the texts go.
        folder: that of the parts.
        source: the name of the input.
        truncate: index the beginning of texts that are longer than the model takes.
        update: texts may take the place of others.
    """

    def __init__(self, index: Index, folder: Path, source: str, *, truncate: bool, update: bool) -> None:
        self._parts = Parts(folder)
        self._writer = Writer(index._store, source, update=update)
        self._decompose = index._decomposer(truncate=truncate)

    @classmethod
    def load(cls, model: Callable[[], Lens], path: Path, folder: Path, source: str, **options: Any) -> Stage:
        """A stage on another machine, which loads the model for itself."""
        return cls(Index.open(path, model()), folder, source, **options)

    def __call__(self, block: Block) -> Done:
        """Take a block apart, unless that has been done before."""
        if self._parts.count(block.number) is None:
            self._parts.write(block.number, *self._writer.prepare(block.rows, self._decompose), len(block.rows))
        return Done(block.number, len(block.rows))


def read_blocks(data: InputTable, layout: Layout, chunk: int, start: int) -> Iterator[Block]:
    """The blocks of an input from a number on.

    Args:
        data: the input.
        layout: its columns.
        chunk: rows of a block.
        start: the first number.
    """
    rows = map(layout.read, data.rows(start * chunk))
    return (Block(number, block) for number, block in enumerate(in_blocks(rows, chunk), start))
