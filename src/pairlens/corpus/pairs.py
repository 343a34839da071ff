"""Explanations of millions of pairs from an index: strongest pairs of units, sums and gaps, as partitioned Parquet."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.attribution.contributions import Contributions
from pairlens.corpus import explained
from pairlens.corpus.explained import Ask, look_into, part_path, write_part
from pairlens.corpus.index import Index
from pairlens.corpus.parts import Done
from pairlens.corpus.records import Reject, Text, make_schema, to_table
from pairlens.corpus.sides import Sides, compare
from pairlens.errors import InputError, NotConverged, NumericalError, choose
from pairlens.io.files import whole_file
from pairlens.io.journal import Journal
from pairlens.io.tables import InputRow, InputTable, in_blocks
from pairlens.lens import Lens

if TYPE_CHECKING:
    from collections.abc import Generator

    from pairlens.corpus.cluster import Cluster

PART = 16_384
"""Pairs of one file."""
TOGETHER = 2048
"""Pairs whose texts are in memory together."""
KNOWN = (("id_a", "id_b"), ("query", "id"))
QUERIES = "query"


@dataclass(frozen=True)
class Pairs:
    """A table of pairs.

    Attributes:
        data: the input.
        columns: of the two sides.
        queries: whether the first side is a text to be taken apart, and not a name in the index.
    """

    data: InputTable
    columns: tuple[str, str]
    queries: bool

    @classmethod
    def of(cls, data: InputTable, columns: tuple[str, str] | None = None, *, queries: bool | None = None) -> Pairs:
        """Pairs from what a user named; columns called query and id, or id_a and id_b, are found."""
        names = data.columns
        if columns is None:
            columns = next((pair for pair in KNOWN if set(pair) <= set(names)), None)
        if columns is None:
            raise InputError(
                f"{data.name} has the columns {', '.join(names)}, and neither id_a and id_b nor query and id. Name "
                "them with --column-a and --column-b."
            )
        one, other = (choose("column", name, names) for name in columns)
        return cls(data, (one, other), one == QUERIES if queries is None else queries)

    def read(self, raw: InputRow) -> Ask | Reject:
        """A pair, or why it is none."""
        reasons, cells = [raw.reason] if raw.reason else [], []
        for column in self.columns:
            cell = raw.values.get(column)
            plain = str(cell) if isinstance(cell, int) and not isinstance(cell, bool) else cell
            if not raw.reason and not (isinstance(plain, str) and plain.strip()):
                what = "missing" if cell is None else "empty" if isinstance(cell, str) else f"{cell!r:.40}"
                reasons.append(f"{column} is {what}")
            cells.append(plain if isinstance(plain, str) else "")
        if reasons:
            return Reject(raw.row, raw.line, cells[-1], "; ".join(reasons), cells[0])
        return Ask(raw.row, raw.line, *cells)

    def blocks(self, start: int) -> Iterator[tuple[int, list[Ask | Reject]]]:
        """Rows in the blocks that become files, each with its number."""
        return enumerate(in_blocks(map(self.read, self.data.rows(start * PART)), PART), start)


class PairStage:
    """Turns a block of pairs into a file of explanations: what every worker does.

    Args:
        index: what explains them.
        folder: where the files go.
        queries: whether the first side is a text.
        top: how many of the strongest pairs of units to keep.
        special: whether special tokens may be among those.
    """

    def __init__(self, index: Index, folder: Path, *, queries: bool, top: int, special: bool) -> None:
        self._index = index
        self._folder = folder
        self._queries = queries
        self._top = top
        self._special = special
        self._store = index._store

    @classmethod
    def load(cls, model: Callable[[], Lens], path: Path, folder: Path, *, queries: bool, **options: Any) -> PairStage:
        """A stage on another machine, which loads the model for itself, if it needs one."""
        return cls(Index.open(path, model() if queries else None), folder, queries=queries, **options)

    def __call__(self, block: tuple[int, Sequence[Ask | Reject]]) -> Done:
        """Explain a block of pairs, unless that has been done before."""
        number, rows = block
        path = part_path(self._folder, number)
        if not path.exists():
            asks = [row for row in rows if isinstance(row, Ask)]
            bad = [row for row in rows if isinstance(row, Reject)]
            # Neighbours that share a text share its reading.
            asks.sort(key=lambda ask: (ask.a, ask.b))
            tables = [self._explain(piece, bad) for piece in in_blocks(asks, TOGETHER)]
            write_part(path, [table for table in tables if table is not None], bad)
        return Done(number, len(rows))

    def _explain(self, asks: list[Ask], bad: list[Reject]) -> Any:
        """A table of explanations; what cannot be explained goes to `bad`."""
        names = [ask.b for ask in asks] if self._queries else [name for ask in asks for name in (ask.a, ask.b)]
        found = self._store.fetch(names)
        place_b = {name: i for i, name in enumerate(found.column("id").to_pylist())}
        queries, place_a, failed = self._take_apart(asks) if self._queries else (found, place_b, {})
        usable = []
        for ask in asks:
            missing = [name for name, place in ((ask.a, place_a), (ask.b, place_b)) if name not in place]
            if missing:
                reason = failed.get(missing[0], f"the index has no text {missing[0]!r:.80}")
                bad.append(Reject(ask.row, ask.line, ask.b, reason, ask.a))
            else:
                usable.append(ask)
        if not usable:
            return None
        settings = self._index.settings
        b = Sides.of(found, settings)
        a = Sides.of(queries, settings) if self._queries else b
        left, right = (
            np.array([place[getattr(ask, side)] for ask in usable]) for side, place in (("a", place_a), ("b", place_b))
        )
        numbers, strongest = compare(a, b, left, right, settings.reference_terms, self._top, special=self._special)
        cut = a.truncated[left] | b.truncated[right]
        return explained.to_table(usable, numbers, cut, strongest)

    def _take_apart(self, asks: Sequence[Ask]) -> tuple[Any, dict[str, int], dict[str, str]]:
        """The queries as rows of a table, where each of them is, and what is wrong with the others."""
        queries: list[Contributions] = []
        failed: dict[str, str] = {}
        asked = list(dict.fromkeys(ask.a for ask in asks))
        options = self._index.settings.query_options()
        for part in ([asked], [[query] for query in asked]):  # all together or, where that fails, one by one
            queries, failed = [], {}
            for texts in part:
                try:
                    queries += self._index.lens.decompose(texts, progress=False, **options)
                except (InputError, NotConverged, NumericalError) as error:
                    failed |= dict.fromkeys(texts, str(error))
            if not failed:
                break
        schema = make_schema(self._store.schema.field("embedding").type.list_size, {}, "float32")
        rows = to_table([Text(c.text, c.text) for c in queries], queries, schema, "")
        return rows, {c.text: i for i, c in enumerate(queries)}, failed


@dataclass(frozen=True)
class Outcome:
    """What came of explaining pairs: how many were explained, how many could not be, and where those are listed."""

    explained: int
    rejected: int
    rejects: Path


def explain_pairs(
    index: Index,
    pairs: Pairs,
    out: Path,
    *,
    top: int = 8,
    special: bool = False,
    cluster: Cluster | None = None,
    restart: bool = False,
    progress: Callable[[int], None] | None = None,
) -> Outcome:
    """Explain every pair of a table, as Parquet files in a folder. A run that was cut off goes on where it stopped.

    It does not where the index has changed meanwhile: some pairs would be explained by other texts than the rest.

    Args:
        index: what explains them.
        pairs: the pairs.
        out: the folder.
        top: how many of the strongest pairs of units to keep.
        special: whether special tokens may be among those.
        cluster: where to compute; by default in this process.
        restart: forget what an earlier run has done.
        progress: called with a number of rows when so many more are done.
    """
    asked = {
        "input": pairs.data.fingerprint(),
        "columns": list(pairs.columns),
        "queries": pairs.queries,
        "index": f"{index.path.name}, version {index._store.version}",
        "top": top,
        "special": special,
    }
    _open_folder(out, restart=restart)
    with Journal(out / "journal.jsonl", asked) as journal:
        journal.keep(1, 2**63)
        journal.append([{"started": True}])  # files in the folder belong to it from now on
        options: dict[str, Any] = {"queries": pairs.queries, "top": top, "special": special}
        done = 0
        with closing(_map(index, pairs, out, cluster, options)) as found:
            for part in found:
                done = max(done, part.number + 1)
                if progress:
                    progress(part.rows)
        return _finish(out, done)


def _map(index: Index, pairs: Pairs, out: Path, cluster: Cluster | None, options: dict[str, Any]) -> Generator[Done]:
    if cluster is None:
        yield from map(PairStage(index, out, **options), pairs.blocks(0))
    else:
        yield from cluster.map(
            partial(pairs.blocks, 0),
            partial(PairStage.load, cluster.model, index.path.resolve(), out.resolve(), **options),
        )


def _open_folder(out: Path, *, restart: bool) -> None:
    """Make the folder of the results, or see that it is one."""
    try:
        out.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {out} cannot be made: {error.strerror}. Give another --output.") from error
    files = list(out.iterdir())
    if files and not (out / "journal.jsonl").exists():
        raise InputError(f"{out} holds files that are not of this command. Give another --output.")
    own = ("part-*.parquet", "journal.jsonl", "rejects.jsonl") if restart else ()
    for path in (path for pattern in (".*.tmp", *own) for path in out.glob(pattern)):
        path.unlink(missing_ok=True)


def _finish(out: Path, parts: int) -> Outcome:
    """List the rejected rows of all files, and count."""
    counts, rejects = [0, 0], out / "rejects.jsonl"
    with whole_file(rejects) as file:
        for number in range(parts):
            count, bad = look_into(part_path(out, number))
            counts = [counts[0] + count, counts[1] + len(bad)]
            file.writelines(json.dumps(reject, ensure_ascii=False).encode() + b"\n" for reject in bad)
    return Outcome(counts[0], counts[1], rejects)
