"""Tables as rows of named columns: files, folders of files and hub datasets, in bounded memory."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any

from pairlens.errors import InputError, choose
from pairlens.io.readers import DELIMITED, SUFFIXES, column_types, load_hub_dataset, open_parquet, read_records

COUNTED = 2**31
"""Bytes of text files up to which rows are counted beforehand, for the progress bar."""
_SAMPLES, _SAMPLE = 64, 2**20
"""How many samples of a large file its fingerprint hashes, and the bytes of each."""
_DATASET = re.compile(r"[\w.-]+/[\w.-]+(/[\w.-]+)?")


def find_columns(names: Iterable[str], known: Iterable[tuple[str, ...]]) -> tuple[str, ...]:
    """The first of these groups of columns that a table has, as the table spells them; () where it has none.

    Case, spaces and punctuation do not count: "Sentence 1" is sentence1.
    """
    spelled = {_plain(name): name for name in reversed(list(names))}
    groups = ([_plain(name) for name in group] for group in known)
    return next((tuple(spelled[name] for name in group) for group in groups if spelled.keys() >= set(group)), ())


def _plain(name: str) -> str:
    return re.sub(r"[\W_]+", "", name).lower()


def is_hub_dataset(path: str) -> bool:
    """Whether a path is that of a hub dataset, and not of a file or a folder."""
    here = Path(path)
    return here.suffix.lower() not in SUFFIXES and not here.exists() and bool(_DATASET.fullmatch(here.as_posix()))


@dataclass(frozen=True)
class InputRow:
    """One row of a table: its number from 1, its line, its cells by column, and why it cannot be used, if it cannot."""

    row: int
    line: int
    values: Mapping[str, Any]
    reason: str = ""


@dataclass(frozen=True)
class InputTable:
    """A table; `rows` reads it anew each time.

    Args:
        path: a file, whose suffix names its format; a folder of such files, read in the order of their names; or a hub
            dataset, `owner/name` or `owner/name/configuration`.
        split: of a hub dataset.
    """

    path: str
    split: str = "train"

    def __post_init__(self) -> None:
        here = Path(self.path)
        if here.is_dir():
            if not self.files:
                raise InputError(f"the folder {here} holds no table: none of its files is {', '.join(SUFFIXES)}.")
        elif not is_hub_dataset(self.path):
            choose("suffix of a table", here.suffix.lower(), SUFFIXES)
            if not here.is_file():
                raise InputError(f"there is no file {here}.")

    def __reduce__(self) -> tuple[type[InputTable], tuple[str, str]]:
        # Workers on other machines need an absolute path, and read the table for themselves.
        return InputTable, (str(Path(self.path).resolve()) if self.files else self.path, self.split)

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The table's files; none for a hub dataset."""
        here = Path(self.path)
        if here.is_dir():
            return tuple(sorted(f for f in here.iterdir() if f.suffix.lower() in SUFFIXES and f.is_file()))
        return (here,) if here.suffix.lower() in SUFFIXES else ()

    @property
    def name(self) -> str:
        """The table's name, for messages and for the names of runs."""
        return Path(self.path).name if self.files else f"{self.path}:{self.split}"

    @cached_property
    def columns(self) -> dict[str, str | None]:
        """The columns, each with the type of its values where the file says so: "text", "int", "float" or "bool".

        Of JSON Lines, the fields of the first thousand rows.
        """
        if not self.files:
            return column_types(self._dataset.features.arrow_schema)
        suffix = self.files[0].suffix.lower()
        if suffix == ".parquet":
            with open_parquet(self.files[0]) as file:
                return column_types(file.schema_arrow)
        sample = list(islice(self.rows(), 1000))
        if suffix in DELIMITED:
            return {name: "text" for row in sample[:1] for name in row.values} or {"": None}
        names = dict.fromkeys(name for row in sample for name in row.values)
        return {name: _json_type([row.values.get(name) for row in sample]) for name in names}

    def rows(self, start: int = 0) -> Iterator[InputRow]:
        """The rows after the first `start` ones; empty lines do not count."""
        return (InputRow(number, *parts) for number, parts in enumerate(islice(self._read(), start, None), start + 1))

    def count(self) -> int | None:
        """The number of rows, or None where counting them would take long."""
        if not self.files:
            return len(self._dataset)
        if all(file.suffix.lower() == ".parquet" for file in self.files):
            return sum(_count(file) for file in self.files)
        if sum(file.stat().st_size for file in self.files) > COUNTED:
            return None
        return sum(1 for _ in self._read())

    def fingerprint(self) -> str:
        """A hash of the content: of large files, of samples, their size and the time of their last change."""
        digest = hashlib.sha256(self.name.encode())
        if not self.files:
            digest.update(self._dataset._fingerprint.encode())
        for path in self.files:
            size = path.stat().st_size
            digest.update(f"{path.name} {size}".encode())
            if size > _SAMPLES * _SAMPLE:
                digest.update(f" {path.stat().st_mtime_ns}".encode())
            with path.open("rb") as file:
                for sample in range(_SAMPLES):
                    file.seek(max(0, size - _SAMPLE) * sample // (_SAMPLES - 1))
                    digest.update(file.read(_SAMPLE))
                    if size <= _SAMPLE:
                        break
        return digest.hexdigest()

    @cached_property
    def _dataset(self) -> Any:
        return load_hub_dataset(self.path, self.split, "corpus")

    def _read(self) -> Iterator[tuple[int, Mapping[str, Any], str]]:
        """The line, the cells and the fault of every row."""
        if not self.files:
            for line, record in enumerate(self._dataset, 1):
                yield line, record, ""
        for path in self.files:
            read = _delimited if path.suffix.lower() in DELIMITED else _records
            yield from read(path)


def _records(path: Path) -> Iterator[tuple[int, Mapping[str, Any], str]]:
    for line, record, reason in read_records(path):
        if reason or isinstance(record, dict):
            yield line, record or {}, reason
        else:
            yield line, {}, f"not a record but {type(record).__name__} {record!r:.40}"


def _delimited(path: Path) -> Iterator[tuple[int, Mapping[str, Any], str]]:
    header: list[str] | None = None
    for line, cells, reason in read_records(path):
        if reason:
            yield line, {}, reason
        elif header is None:
            header = cells
        else:
            extra = f"{len(cells)} fields, and the header has {len(header)}" if len(cells) > len(header) else ""
            yield line, dict(zip(header, cells, strict=False)), extra


def _count(path: Path) -> int:
    with open_parquet(path) as file:
        return file.metadata.num_rows


def _json_type(values: Sequence[Any]) -> str:
    """The type that holds all these values."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int"
    return "float" if kinds and kinds <= {int, float} else "text"


def in_blocks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """The rows in lists of `size`; the last list may be shorter."""
    rows = iter(rows)
    while block := list(islice(rows, size)):
        yield block
