"""Where texts come from: CSV, TSV, JSON Lines, Parquet or a hub dataset, row by row, in bounded memory.

A row that cannot be read is reported with its line and what is wrong with it, and reading goes on behind it.
"""

from __future__ import annotations

import csv
import hashlib
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import Any, BinaryIO

from pairlens.errors import InputError, MissingExtra, choose
from pairlens.io.documents import require_pyarrow

SUFFIXES = (".csv", ".tsv", ".jsonl", ".ndjson", ".parquet")
LONGEST = 2**24
"""Bytes of a line and characters of a field beyond which a row is not read."""
COUNTED = 2**31
"""Bytes of text files up to which rows are counted beforehand, for the progress bar."""
_SAMPLES, _SAMPLE = 64, 2**20
"""Where a file is looked at to see whether it is the same, and how many bytes there."""


@dataclass(frozen=True)
class Raw:
    """A row as it was read: its number, its line, its columns, or why there are none."""

    row: int
    line: int
    values: Mapping[str, Any]
    reason: str = ""


@dataclass(frozen=True)
class Input:
    """A table of texts; `rows` reads it anew each time.

    Args:
        path: a file, whose suffix says what it is; a folder of such files, which are read in the order of their names;
            or a hub dataset, `owner/name` or `owner/name/configuration`.
        split: of a hub dataset.
    """

    path: str
    split: str = "train"

    def __post_init__(self) -> None:
        here = Path(self.path)
        if here.is_dir():
            if not self.files:
                raise InputError(f"the folder {here} holds no table: none of its files is {', '.join(SUFFIXES)}.")
        elif here.suffix.lower() in SUFFIXES or self.path.count("/") not in (1, 2):
            choose("suffix of a table", here.suffix.lower(), SUFFIXES)
            if not here.is_file():
                raise InputError(f"there is no file {here}.")

    def __reduce__(self) -> tuple[type[Input], tuple[str, str]]:
        # On another machine only the name is of use, and a path only from the root.
        return Input, (str(Path(self.path).resolve()) if self.files else self.path, self.split)

    @cached_property
    def files(self) -> tuple[Path, ...]:
        """The files it is made of; none for a hub dataset."""
        here = Path(self.path)
        if here.is_dir():
            return tuple(sorted(f for f in here.iterdir() if f.suffix.lower() in SUFFIXES and f.is_file()))
        return (here,) if here.suffix.lower() in SUFFIXES else ()

    @property
    def name(self) -> str:
        """What to call it."""
        return Path(self.path).name if self.files else f"{self.path}:{self.split}"

    @cached_property
    def columns(self) -> dict[str, str | None]:
        """Its columns, each with the type of its values where the file says so: "text", "int", "float" or "bool".

        Of JSON Lines, the fields of the first thousand rows.
        """
        if not self.files:
            return _arrow_types(self._dataset.features.arrow_schema)
        first = self.files[0]
        if first.suffix.lower() == ".parquet":
            with _whole(first) as file:
                return _arrow_types(file.schema_arrow)
        sample = list(islice(self.rows(), 1000))
        if first.suffix.lower() in (".csv", ".tsv"):
            return {name: "text" for raw in sample[:1] for name in raw.values} or {"": None}
        names = dict.fromkeys(name for raw in sample for name in raw.values)
        return {name: _json_type([raw.values.get(name) for raw in sample]) for name in names}

    def rows(self, start: int = 0) -> Iterator[Raw]:
        """The rows behind the first `start` ones; empty lines do not count."""
        return (Raw(number, *parts) for number, parts in enumerate(islice(self._read(), start, None), start + 1))

    def count(self) -> int | None:
        """How many rows there are, where that is quickly known."""
        if not self.files:
            return len(self._dataset)
        if all(file.suffix.lower() == ".parquet" for file in self.files):
            return sum(_count(file) for file in self.files)
        if sum(file.stat().st_size for file in self.files) > COUNTED:
            return None
        return sum(1 for _ in self._read())

    def fingerprint(self) -> str:
        """A hash of its content: of large files, of samples, their size and when they were last changed."""
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
        try:
            from datasets import load_dataset
        except ImportError as error:
            raise MissingExtra("datasets", "corpus") from error
        parts = self.path.split("/")
        try:
            return load_dataset("/".join(parts[:2]), *parts[2:], split=self.split)
        except (ValueError, OSError) as error:  # all that its loader raises on names, splits and connections
            reason = str(error).splitlines()[0].rstrip(".")
            raise InputError(
                f"{self.path} is no file, and as a hub dataset it cannot be loaded: {reason}. Its split is "
                f"{self.split!r}; a configuration goes behind a slash."
            ) from error

    def _read(self) -> Iterator[tuple[int, Mapping[str, Any], str]]:
        """Every row's line, columns, and what is wrong with it."""
        if not self.files:
            for line, record in enumerate(self._dataset, 1):
                yield line, record, ""
        for path in self.files:
            suffix = path.suffix.lower()
            try:
                if suffix == ".parquet":
                    yield from _parquet(path)
                else:
                    with path.open("rb") as file:
                        yield from _json_lines(file) if suffix in (".jsonl", ".ndjson") else _delimited(file, suffix)
            except OSError as error:
                raise InputError(f"{path} cannot be read: {error}.") from error


class _Lines:
    """The lines of a file as text, and where each begins. Bytes that are not UTF-8 become lone surrogates."""

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.number = 0

    def __iter__(self) -> _Lines:
        return self

    def __next__(self) -> str:
        line = self._file.readline(LONGEST)
        if not line:
            raise StopIteration
        self.number += 1
        if len(line) == LONGEST and not line.endswith(b"\n"):
            while line and not line.endswith(b"\n"):
                line = self._file.readline(LONGEST)
            raise csv.Error(f"a line of more than {LONGEST} bytes")
        if self.number == 1:
            line = line.removeprefix(b"\xef\xbb\xbf")
        return line.decode("utf-8", "surrogateescape")

    def tell(self) -> tuple[int, int]:
        """Where the next line begins, and how many there are before it."""
        return self._file.tell(), self.number

    def seek(self, place: tuple[int, int]) -> None:
        """Go back to a place that `tell` gave."""
        self._file.seek(place[0])
        self.number = place[1]


def _json_lines(file: BinaryIO) -> Iterator[tuple[int, Mapping[str, Any], str]]:
    lines = _Lines(file)
    while True:
        try:
            line = next(lines)
            record = json.loads(line.strip()) if line.strip() else None
        except StopIteration:
            return
        except (ValueError, RecursionError, csv.Error) as error:
            yield lines.number, {}, f"not JSON: {error}"
            continue
        if isinstance(record, dict):
            yield lines.number, record, ""
        elif line.strip():
            yield lines.number, {}, f"not a record but {type(record).__name__} {record!r:.40}"


def _delimited(file: BinaryIO, suffix: str) -> Iterator[tuple[int, Mapping[str, Any], str]]:
    lines = _Lines(file)
    # In a TSV a quotation mark is a character like any other.
    form: dict[str, Any] = {"delimiter": "\t", "quoting": csv.QUOTE_NONE} if suffix == ".tsv" else {}
    header: list[str] | None = None
    while True:
        place = lines.tell()
        limit = csv.field_size_limit(LONGEST)
        try:
            record = next(csv.reader(lines, strict=True, **form))
        except StopIteration:
            return
        except csv.Error as error:
            single = lines.number == place[1] + 1
            lines.seek(place)
            line = _line(lines)
            if not single or line is None:
                # A quotation mark that nothing closes would swallow the rows behind it: go on at the next line.
                yield lines.number, {}, f"not {suffix[1:].upper()}: {error}"
                continue
            record = next(csv.reader([line], **form))  # characters behind a closing mark do no harm in one line
        finally:
            csv.field_size_limit(limit)
        if header is None and record:
            header = record
        elif header is not None and record:
            extra = f"{len(record)} fields, and the header has {len(header)}" if len(record) > len(header) else ""
            yield place[1] + 1, dict(zip(header, record, strict=False)), extra


def _line(lines: _Lines) -> str | None:
    """The next line, or None where it is too long."""
    try:
        return next(lines, None)
    except csv.Error:
        return None


def _parquet(path: Path) -> Iterator[tuple[int, Mapping[str, Any], str]]:
    line = 0
    with _whole(path) as file:
        for piece in file.iter_batches(batch_size=256):
            for record in piece.to_pylist():
                line += 1
                yield line, record, ""


@contextmanager
def _whole(path: Path) -> Iterator[Any]:
    """A Parquet file, opened."""
    pa, parquet = require_pyarrow()
    try:
        with parquet.ParquetFile(path) as file:
            yield file
    except pa.ArrowInvalid as error:
        raise InputError(f"{path} cannot be read as Parquet: {error}.") from error


def _count(path: Path) -> int:
    with _whole(path) as file:
        return file.metadata.num_rows


def _arrow_types(schema: Any) -> dict[str, str | None]:
    pa, _ = require_pyarrow()
    tests = {"int": pa.types.is_integer, "float": pa.types.is_floating, "bool": pa.types.is_boolean}
    return {f.name: next((name for name, test in tests.items() if test(f.type)), "text") for f in schema}


def _json_type(values: Sequence[Any]) -> str:
    """The type that holds all these values."""
    kinds = {type(value) for value in values if value is not None}
    if kinds == {bool}:
        return "bool"
    if kinds == {int}:
        return "int"
    return "float" if kinds and kinds <= {int, float} else "text"


def blocks(rows: Iterable[Any], size: int) -> Iterator[list[Any]]:
    """Rows in lists of `size`, the last one shorter."""
    rows = iter(rows)
    while block := list(islice(rows, size)):
        yield block
