"""Explanations of millions of pairs from an index: strongest pairs of units, sums and gaps, as partitioned Parquet."""

from __future__ import annotations

import json
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlens.attribution.contributions import Contributions
from pairlens.corpus.explained import PairRequest, part_path, read_counts, to_record, write_part
from pairlens.corpus.index import Index
from pairlens.corpus.parts import Done, map_blocks
from pairlens.corpus.records import Reject
from pairlens.corpus.search import explain
from pairlens.errors import InputError, NotConverged, NumericalError, ReferenceWarning, choose
from pairlens.io import InputRow, InputTable, Journal, find_columns, in_blocks, make_folder, whole_file

if TYPE_CHECKING:
    from pairlens.corpus.cluster import Cluster

PART, QUERIES = 16_384, 128
"""Pairs of one file, without and with queries to decompose: an interruption loses seconds."""
TOGETHER = 2048
"""Pairs whose texts are in memory together."""
KNOWN = (("id_a", "id_b"), ("query", "id"))
"""Known names of the two columns."""


@dataclass(frozen=True)
class PairRequests:
    """A table of pairs to explain.

    Attributes:
        data: the table.
        columns: of the two sides.
        queries: whether the first side is a text to decompose, and not the id of a text of the index.
    """

    data: InputTable
    columns: tuple[str, str]
    queries: bool

    @classmethod
    def of(
        cls, data: InputTable, columns: tuple[str, str] | None = None, *, queries: bool | None = None
    ) -> PairRequests:
        """The requests of a table; columns called query and id, or id_a and id_b, are found by name."""
        names = data.columns
        found = find_columns(names, KNOWN) if columns is None else [choose("column", name, names) for name in columns]
        if not found:
            raise InputError(
                f"{data.name} has the columns {', '.join(names)}, and neither id_a and id_b nor query and id. Name "
                "them with --column-a and --column-b."
            )
        a, b = found
        return cls(data, (a, b), a.strip().lower() == "query" if queries is None else queries)

    def read(self, row: InputRow) -> PairRequest | Reject:
        """The request of a row, or why the row cannot be used."""
        reasons, cells = [row.reason] if row.reason else [], []
        for column in self.columns:
            value = row.values.get(column)
            cell = str(value) if isinstance(value, int) and not isinstance(value, bool) else value
            if not row.reason and not (isinstance(cell, str) and cell.strip()):
                fault = "missing" if value is None else "empty" if isinstance(value, str) else f"{value!r:.40}"
                reasons.append(f"{column} is {fault}")
            cells.append(cell if isinstance(cell, str) else "")
        if reasons:
            return Reject(row.row, row.line, cells[-1], "; ".join(reasons), cells[0])
        return PairRequest(row.row, row.line, *cells)

    def blocks(self) -> Iterator[tuple[int, list[PairRequest | Reject]]]:
        """The rows in the blocks that become files, each block with its number."""
        return enumerate(in_blocks(map(self.read, self.data.rows()), QUERIES if self.queries else PART))


@dataclass(frozen=True)
class PairStage:
    """Turns a block of pairs into a file of explanations, in this process or in a worker.

    Attributes:
        index: the index that explains the pairs.
        folder: the folder of the files.
        queries: whether the first side is a text.
        top: how many of the strongest pairs of units to keep.
        special: whether special tokens may be among those.
    """

    index: Index
    folder: Path
    queries: bool
    top: int
    special: bool

    def __call__(self, block: tuple[int, Sequence[PairRequest | Reject]]) -> Done:
        """Explain a block of pairs, unless its file exists."""
        number, rows = block
        path = part_path(self.folder, number)
        if not path.exists():
            requests = [row for row in rows if isinstance(row, PairRequest)]
            rejects = [row for row in rows if isinstance(row, Reject)]
            # Neighbours that share a text fetch it once.
            requests.sort(key=lambda request: (request.a, request.b))
            # The file has every pair's base, so a warning of large bases would add nothing.
            with warnings.catch_warnings(action="ignore", category=ReferenceWarning):
                records = [record for some in in_blocks(requests, TOGETHER) for record in self._explain(some, rejects)]
            write_part(path, records, rejects)
        return Done(number, len(rows))

    def _explain(self, requests: list[PairRequest], rejects: list[Reject]) -> Iterator[dict[str, Any]]:
        """The records of pairs; those that cannot be explained go to `rejects`."""
        wanted = [name for request in requests for name in ((request.b,) if self.queries else (request.a, request.b))]
        # Queries first: they load the index's model, whose name the stored texts then carry too.
        queries, failed = self._decompose(requests) if self.queries else ({}, {})
        texts = self.index.fetch(wanted)
        queries = queries if self.queries else texts
        for request in requests:
            missing = [name for name, known in ((request.a, queries), (request.b, texts)) if name not in known]
            try:
                if missing:
                    raise InputError(failed.get(missing[0], f"the index has no text {missing[0]!r:.80}"))
                e = explain(queries[request.a], texts[request.b], self.index.settings, many=True)
                yield to_record(request, e, self.top, special=self.special)
            except InputError as error:
                rejects.append(Reject(request.row, request.line, request.b, str(error), request.a))

    def _decompose(self, requests: Sequence[PairRequest]) -> tuple[dict[str, Contributions], dict[str, str]]:
        """The contributions of the queries, and why the other queries cannot be decomposed."""
        texts = list(dict.fromkeys(request.a for request in requests))
        options = self.index.settings.query_options()
        queries: dict[str, Contributions] = {}
        failed: dict[str, str] = {}
        for batches in ([texts], [[text] for text in texts]):  # all together or, where that fails, one by one
            queries, failed = {}, {}
            for batch in batches:
                try:
                    queries |= {c.text: c for c in self.index.lens.decompose(batch, progress=False, **options)}
                except (InputError, NotConverged, NumericalError) as error:
                    failed |= dict.fromkeys(batch, str(error))
            if not failed:
                break
        return queries, failed


@dataclass(frozen=True)
class Outcome:
    """How many pairs were explained, how many rows were rejected, and the file that lists the rejected rows."""

    explained: int
    rejected: int
    rejects: Path


def explain_pairs(
    index: Index,
    pairs: PairRequests,
    out: Path,
    *,
    top: int = 8,
    special: bool = False,
    cluster: Cluster | None = None,
    restart: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Explain every pair of a table, as Parquet files in a folder. A run that was cut off resumes.

    A run does not resume where the index has changed in the meantime: the files would disagree about a text.

    Args:
        index: the index that explains the pairs.
        pairs: the pairs.
        out: the folder.
        top: how many of the strongest pairs of units to keep.
        special: whether special tokens may be among those.
        cluster: where to compute; by default in this process.
        restart: discard the files of an earlier run.
        progress: called after every block with the number of its rows.
    """
    asked = {
        "input": pairs.data.fingerprint(),
        "columns": list(pairs.columns),
        "queries": pairs.queries,
        "index": f"{index.path.name}, version {index.store.version}",
        "top": top,
        "special": special,
    }
    _open_folder(out, restart=restart)
    with Journal(out / "journal.jsonl", asked) as journal:
        journal.keep(1, 2**63)
        journal.append([{"started": True}])  # from now on the files of the folder belong to this run
        make = partial(PairStage, folder=out.resolve(), queries=pairs.queries, top=top, special=special)
        count = 0
        with closing(map_blocks(make, pairs.blocks, index, cluster, loads_model=pairs.queries)) as blocks:
            for block in blocks:
                count = max(count, block.number + 1)
                if progress:
                    progress(block.rows)
        return _finish(out, count)


def _open_folder(out: Path, *, restart: bool) -> None:
    """Make the folder of the results; raise if it holds files of something else."""
    files = list(make_folder(out, "--out").iterdir())
    if files and not (out / "journal.jsonl").exists():
        raise InputError(f"{out} holds files that are not of this command. Give another --out.")
    results = ("part-*.parquet", "journal.jsonl", "rejects.jsonl") if restart else ()
    for path in (path for pattern in (".*.tmp", *results) for path in out.glob(pattern)):
        path.unlink(missing_ok=True)


def _finish(out: Path, parts: int) -> Outcome:
    """Count the explained pairs of all files, and list their rejected rows in one file."""
    explained = rejected = 0
    path = out / "rejects.jsonl"
    with whole_file(path) as file:
        for number in range(parts):
            count, rejects = read_counts(part_path(out, number))
            explained, rejected = explained + count, rejected + len(rejects)
            file.writelines(json.dumps(reject, ensure_ascii=False).encode() + b"\n" for reject in rejects)
    return Outcome(explained, rejected, path)
