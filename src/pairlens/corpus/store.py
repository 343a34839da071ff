"""The LanceDB table `texts` of an index. Every write is whole or did not happen."""

from __future__ import annotations

import json
import re
import threading
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any, Literal

import numpy as np

from pairlens.errors import InputError, StoreError
from pairlens.io import in_blocks, require, require_pyarrow
from pairlens.shapes import Array

try:
    import fcntl
except ImportError:  # Windows has no file locks here: the user must not write to one index from two processes
    fcntl = None

TABLE = "texts"
ASKED = 1000
"""Ids that one query may hold."""
OLD = timedelta(minutes=10)
"""How long replaced versions are kept for readers that have them open."""
UNSORTED = 2**20
"""Rows that may be missing from the index on `id` before it is updated."""


class Store:
    """One folder with one table. Threads may share a store; only one process writes at a time.

    Args:
        path: the folder.
        table: LanceDB's table.
    """

    def __init__(self, path: Path, table: Any) -> None:
        self.path = path
        self._table = table
        self._lock = threading.RLock()
        self._writing = False
        self._unsorted = 0

    @classmethod
    def create(cls, path: Path, schema: Any, document: dict[str, Any]) -> Store:
        """A new table with these columns; `document` says what it holds."""
        described = schema.with_metadata({"pairlens": json.dumps(document)})
        try:
            path.mkdir(parents=True, exist_ok=True)
            return cls(path, _connect(path).create_table(TABLE, schema=described))
        except (OSError, ValueError, RuntimeError) as error:
            raise StoreError(f"no index can be made in {path}: {_first_line(error)}") from error

    @classmethod
    def open(cls, path: Path) -> Store:
        """The table in a folder."""
        if not cls.exists(path):
            raise InputError(f"there is no index in {path}. Make one with: pairlens index DATA --out {path}")
        return cls(path, _connect(path).open_table(TABLE))

    @staticmethod
    def exists(path: Path) -> bool:
        """Whether there is a table in a folder."""
        if not (path / f"{TABLE}.lance").is_dir():
            return False
        try:
            _connect(path).open_table(TABLE)
        except ValueError:  # its creation was cut off
            return False
        return True

    @property
    def document(self) -> dict[str, Any]:
        """The document that `create` stored with the table."""
        described = (self._table.schema.metadata or {}).get(b"pairlens")
        if described is None:
            raise InputError(f"{self.path} was not made by pairlens: its table says nothing about contributions.")
        return json.loads(described)

    @property
    def schema(self) -> Any:
        """The table's columns."""
        return self._table.schema.remove_metadata()

    def count(self) -> int:
        """How many rows there are."""
        with self._asking():
            return self._table.count_rows()

    def has(self, name: str, where: str) -> bool:
        """Whether the row with this id fits a filter."""
        with self._asking(where):
            return self._table.count_rows(f"id = {_quoted(name)} AND ({where})") > 0

    def fetch(self, ids: Iterable[str], columns: Sequence[str] | None = None) -> Any:
        """The rows with these ids, in any order; ids that the table does not have are left out."""
        pa, _ = require_pyarrow()
        names = list(columns or self.schema.names)
        tables = []
        with self._asking():
            for asked in in_blocks(dict.fromkeys(ids), ASKED):
                query = self._table.search().where(_is_one_of(asked)).limit(len(asked)).select(names)
                tables.append(query.to_arrow().replace_schema_metadata())
        return pa.concat_tables(tables or [pa.schema([self.schema.field(name) for name in names]).empty_table()])

    def nearest(self, vector: Array, k: int, measure: str, where: str | None, *, approximate: bool) -> Any:
        """The k rows nearest to a vector, all their columns as they were at one moment."""
        with self._asking(where):
            search = self._table.search(vector.astype(np.float32), vector_column_name="embedding")
            search = search.distance_type(measure).limit(k)
            search = search.refine_factor(4) if approximate else search.bypass_vector_index()
            return (search if where is None else search.where(where, prefilter=True)).to_arrow()

    def sample(self, count: int, seed: int) -> Any:
        """Some rows, drawn at random."""
        rows = self.count()
        if not rows:
            return self.schema.empty_table()
        places = np.random.default_rng(seed).choice(rows, min(count, rows), replace=False)
        with self._asking():
            return self._table.take_offsets(sorted(int(place) for place in places)).to_arrow()

    def column(self, name: str) -> Iterator[Any]:
        """One column in batches."""
        with self._asking():
            for batch in self._table.search().select([name]).to_batches():
                yield batch.column(0)

    @contextmanager
    def writing(self) -> Iterator[None]:
        """A lock for looking something up and then writing: one thread of one process holds it at a time."""
        with self._lock:
            if self._writing:  # this thread holds it already
                yield
                return
            with (self.path / ".lock").open("a") as file:
                if fcntl is not None:
                    fcntl.flock(file, fcntl.LOCK_EX)
                self._writing = True
                try:
                    yield
                finally:
                    self._writing = False

    def write(self, rows: Any, *, replace: bool) -> None:
        """Add rows in one commit; `replace` also removes the rows with the same ids in that commit."""
        if not len(rows):
            return
        with self._changing():
            if replace:
                merge = self._table.merge_insert("id").when_matched_update_all().when_not_matched_insert_all()
                merge.execute(rows)
            else:
                self._table.add(rows)
        self._unsorted += len(rows)
        if self._unsorted > UNSORTED:
            self.optimize()

    def delete(self, ids: Iterable[str], *, keep: Iterable[str] = ()) -> int:
        """Delete the rows with these ids and the passages of these texts; returns how many rows were deleted.

        Args:
            ids: ids of texts.
            keep: ids of rows that stay.
        """
        kept, deleted = list(keep), 0
        with self.writing(), self._changing():
            for some in in_blocks(dict.fromkeys(ids), ASKED):
                condition = f"({_is_one_of(some)} OR {_is_one_of(some, 'parent')})"
                condition += f" AND NOT {_is_one_of(kept)}" if kept else ""
                if self._table.count_rows(condition):
                    deleted += self._table.delete(condition).num_deleted_rows
        return deleted

    def optimize(self) -> None:
        """Merge small files, update the index on `id`, and delete old versions."""
        from lancedb.index import BTree

        with self.writing(), self._changing():
            if not any(index.columns == ["id"] for index in self._table.list_indices()):
                self._table.create_index("id", config=BTree())
            self._table.optimize(cleanup_older_than=OLD)
            self._unsorted = 0

    def index_vectors(self, measure: Literal["cosine", "dot"]) -> None:
        """Build the index that approximate search needs."""
        from lancedb.index import HnswSq

        with self.writing(), self._changing():
            self._table.create_index("embedding", config=HnswSq(distance_type=measure))

    @property
    def indexed(self) -> bool:
        """Whether there is an index for approximate search."""
        return any(index.columns == ["embedding"] for index in self._table.list_indices())

    @property
    def version(self) -> int:
        """A number that grows with every change."""
        return self._table.version

    @property
    def bytes(self) -> int:
        """The size of the rows on disk, in bytes."""
        return int(self._table.stats()["total_bytes"])

    @contextmanager
    def _asking(self, where: str | None = None) -> Iterator[None]:
        try:
            yield
        except (ValueError, RuntimeError, OSError) as error:
            if where is not None:
                kept = self.document["metadata"]
                known = ", ".join(f"metadata.{name} ({kind})" for name, kind in kept.items()) or "none"
                raise InputError(
                    f"the filter {where!r} cannot be used: {_first_line(error)} It is an SQL condition such as: "
                    f"metadata.year > 2000. The metadata of this index: {known}."
                ) from error
            raise StoreError(f"{self.path} cannot be read: {_first_line(error)}") from error

    @contextmanager
    def _changing(self) -> Iterator[None]:
        try:
            yield
        except (ValueError, RuntimeError, OSError) as error:
            raise StoreError(
                f"{self.path} cannot be written to: {_first_line(error)} What was there before is still there; "
                "when the cause is gone, start again."
            ) from error


def _connect(path: Path) -> Any:
    # Every query reads the newest version.
    return require("lancedb", "corpus").connect(str(path), read_consistency_interval=timedelta(0))


def _is_one_of(ids: Sequence[str], column: str = "id") -> str:
    """The SQL condition for rows with these ids, or with these texts as parents."""
    return f"{column} IN ({', '.join(map(_quoted, ids))})"


def _quoted(name: str) -> str:
    return "'" + name.replace("'", "''") + "'"


def _first_line(error: BaseException) -> str:
    """The message of a Rust error, without the place and the layers it was raised in."""
    line = str(error).split(", /")[0].splitlines()[0] if str(error) else type(error).__name__
    layers = r"lance error: |LanceError\(\w+\): |Invalid input, |Schema error: |Generic LocalFileSystem error: "
    return re.sub(rf"^({layers})*", "", line).split(" Valid fields are ")[0].rstrip(".") + "."
