"""Blocks of a table and the parts that they become, in this process or in workers on other machines."""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import asdict, dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar

from pairlens.corpus.index import Index
from pairlens.corpus.layout import Layout
from pairlens.corpus.records import Reject, TextRecord
from pairlens.corpus.writer import Writer
from pairlens.errors import InputError, StoreError
from pairlens.io import InputTable, in_blocks, require_pyarrow, whole_file
from pairlens.lens import Lens
from pairlens.progress import watch

if TYPE_CHECKING:
    from pairlens.corpus.cluster import Cluster

Block = TypeVar("Block")
RowBlock = tuple[int, list[TextRecord | Reject]]
"""The number of a block, from 0, and its rows, which are decomposed together."""


@dataclass(frozen=True)
class Done:
    """A finished block: its number, and how many rows of the table it covers.

    Attributes:
        number: the number of the block.
        rows: its rows.
        work: the work that was done for them and is not reported yet, as a `Workload` weighs it.
        spared: the work that was not needed, because the texts are in the index or the part was there.
    """

    number: int
    rows: int
    work: float = 0.0
    spared: float = 0.0


@contextmanager
def part_file(path: Path) -> Iterator[BinaryIO]:
    """Open a part for writing, whole or not at all; raises StoreError where it cannot be written."""
    try:
        with whole_file(path) as file:
            yield file
    except InputError as error:
        raise StoreError(f"{error} Make room, and start again: nothing that was done is lost.") from error


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
        with part_file(self.path(number)) as file, pa.ipc.new_file(file, described.schema) as writer:
            writer.write_table(described)

    def read(self, number: int) -> tuple[Any, list[TextRecord], list[Reject], int]:
        """The arguments that `write` was called with."""
        pa, _ = require_pyarrow()
        with pa.ipc.open_file(self.path(number).read_bytes()) as file:
            rows = file.read_all()
        beside = json.loads(rows.schema.metadata[b"pairlens"])
        known, rejects = [TextRecord(**t) for t in beside["known"]], [Reject(**r) for r in beside["rejects"]]
        return rows.replace_schema_metadata(), known, rejects, beside["rows"]

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
        passages: split texts that are longer than the model takes.
        update: replace texts that have the same id.
        advance: called several times a block, with the work that was done since the last call.
    """

    def __init__(
        self,
        index: Index,
        folder: Path,
        source: str,
        *,
        passages: bool,
        update: bool,
        advance: Callable[[float], None] | None = None,
    ) -> None:
        self._parts = Parts(folder)
        self._writer = Writer(index.store, source, update=update)
        self._decompose = index.decomposer(passages=passages)
        self._workload = index.workload(passages=passages)
        # Where batches run beside each other, watching them would cost time.
        self._advance = advance if index.lens.encoder.concurrent_batches == 1 else None

    def __call__(self, block: RowBlock) -> Done:
        """Decompose a block, unless its part exists."""
        number, rows = block
        planned = self._workload.sum(rows)
        if self._parts.path(number).exists():
            return Done(number, len(rows), spared=planned)
        work = reported = 0.0

        def show(done: float) -> None:
            nonlocal reached, reported
            if self._advance is not None and done > reached:
                self._advance((done - reached) * work)
                reported, reached = reported + (done - reached) * work, done

        def decompose(texts: Sequence[TextRecord], source: str) -> tuple[Any, list[Reject]]:
            nonlocal work
            work = self._workload.sum(texts)
            with nullcontext() if self._advance is None else watch(show):
                return self._decompose(texts, source)

        reached = 0.0
        self._parts.write(number, *self._writer.prepare(self._decompose.records(rows), decompose), len(rows))
        return Done(number, len(rows), work - reported, max(0.0, planned - work))


def read_blocks(data: InputTable, layout: Layout, chunk: int, start: int) -> Iterator[RowBlock]:
    """The blocks of an input from a number on.

    Args:
        data: the input.
        layout: its columns.
        chunk: rows of a block.
        start: the first number.
    """
    return enumerate(in_blocks(map(layout.read, data.rows(start * chunk)), chunk), start)


def map_blocks(
    make: Callable[[Index], Callable[[Block], Done]],
    read: Callable[[], Iterator[Block]],
    index: Index,
    cluster: Cluster | None,
    *,
    loads_model: bool = True,
) -> Generator[Done]:
    """Apply a stage to every block; the results come in any order.

    Args:
        make: makes the stage that works with an index.
        read: reads the blocks.
        index: the index.
        cluster: where to compute, or None for this process.
        loads_model: whether workers load the model.
    """
    if cluster is None:
        yield from map(make(index), read())
    else:
        model = cluster.model if loads_model else None
        yield from cluster.map(read, partial(_open_and_make, make, index.path.resolve(), model))


def _open_and_make(make: Callable[[Index], Any], path: Path, model: Callable[[], Lens] | None) -> Any:
    """A worker's own stage, on an index and a model that the worker opens for itself."""
    return make(Index.open(path, None if model is None else model()))
