"""Explanations and contributions as files: JSON, NPZ, CSV and Parquet, all of them lossless.

An object becomes one neutral document, a dict of its fields beside `format` and `version`; four pairs of functions
write and read documents. A file is written beside its place and then moved there, so it is whole or it is not there.
"""

from __future__ import annotations

import csv
import io
import json
import math
import os
import zipfile
import zlib
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, BinaryIO, TypeVar
from uuid import uuid4

import numpy as np

from pairlens.errors import InputError, MissingExtra, choose
from pairlens.text.units import Unit

if TYPE_CHECKING:
    from pairlens.attribution.contributions import Contributions
    from pairlens.attribution.explanation import Explanation

    Stored = Explanation | Contributions

VERSION = 1
PICTURE = ".html"
PLOTS = (".png", ".svg", ".pdf")
T = TypeVar("T", bound="Stored")
Document = dict[str, Any]
Row = dict[str, Any]

# The fields that are arrays, and what their axes count.
_AXES = {
    "matrix": ("units_a", "units_b"),
    "entry_error": ("units_a", "units_b"),
    "effects_a": ("units_a",),
    "effects_b": ("units_b",),
    "values": ("units", "dim"),
    "error": ("units",),
    "reference": ("dim",),
    "embedding": ("dim",),
    "output": ("dim",),
    "noise_weights": ("draws", "units"),
    "noise_residuals": ("draws", "dim"),
}
_OPTIONAL = ("noise_weights", "noise_residuals")
_SCALARS = {"str": str, "float": float, "bool": bool}
_BROKEN = (ValueError, KeyError, TypeError, IndexError, OSError, EOFError, csv.Error, zipfile.BadZipFile, zlib.error)


def save(obj: Stored, path: str | Path) -> Path:
    """Write an explanation or contributions; the suffix names the format: .json, .npz, .csv or .parquet."""
    path = check(path)
    document = to_document(obj)
    with whole_file(path) as file:
        _WRITERS[path.suffix.lower()](document, file)
    return path


def load(cls: type[T], path: str | Path) -> T:
    """Read an object of the given class from a file that `save` wrote."""
    path = Path(path)
    suffix = choose("file suffix", path.suffix.lower(), _READERS)
    if not path.is_file():
        raise InputError(f"there is no file {path}." if not path.exists() else f"{path} is not a file.")
    try:
        return from_document(cls, _READERS[suffix](path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except _BROKEN as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise InputError(
            f"{path} is not a whole file of pairlens ({reason}). It was cut off or changed: save it again."
        ) from error


def check(path: str | Path, *, picture: bool = False) -> Path:
    """The path, if `save` can write there: a known suffix, its package installed, and a folder that exists.

    `picture`: the suffix may be that of the interactive picture, which `pairlens.render.html` writes, or of a plot.
    """
    path = Path(path)
    suffix = choose("file suffix", path.suffix.lower(), (*_WRITERS, *(PICTURE, *PLOTS) * picture))
    if suffix == ".parquet":
        require_pyarrow()
    if suffix in PLOTS:
        import_module("pairlens.render.plot")  # raises if matplotlib is missing
    check_folder(path)
    return path


def check_folder(path: Path) -> None:
    """Raise unless the path's folder exists and the path itself is not one."""
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: the folder {path.parent} does not exist. Make it first.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")


def to_json(obj: Stored) -> str:
    """The JSON document of an explanation or of contributions, as `save` writes it."""
    return _dump(to_document(obj))


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """A file to write that takes its place at the end, and only if nothing was raised."""
    path = Path(os.path.realpath(path))  # a link stays a link
    scratch = path.with_name(f".{uuid4().hex[:12]}.tmp")
    try:
        with scratch.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        scratch.replace(path)
    except OSError as error:
        raise InputError(f"{path} cannot be written: {error.strerror or error}.") from error
    finally:
        scratch.unlink(missing_ok=True)


def require_pyarrow() -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet."""
    try:
        import pyarrow as pa
        from pyarrow import parquet
    except ImportError as error:
        raise MissingExtra("pyarrow", "study") from error
    return pa, parquet


# Objects and documents.


def to_document(obj: Stored) -> Document:
    """The fields of an object, arrays as arrays and the rest as JSON has it."""
    document: Document = {"format": _format(type(obj)), "version": VERSION}
    finite = True
    for field in fields(obj):
        value = getattr(obj, field.name)
        if field.name in _OPTIONAL and value is None:
            continue
        if field.name in _AXES:
            value = np.asarray(value, dtype=np.float64)
            finite = np.isfinite(value).all()
        elif field.name.startswith("units"):
            value = [[unit.text, unit.start, unit.end, unit.kind] for unit in value]
        elif isinstance(value, tuple):
            value = list(value)
        elif isinstance(value, Mapping):
            value = dict(value)
            _dump(value)  # raises if it cannot be written
        elif field.type == "float":
            value = float(value)
            finite = math.isfinite(value)
        if not finite:
            raise InputError(f"`{field.name}` holds a NaN or an infinity and cannot be saved.")
        document[field.name] = value
    return document


def from_document(cls: type[T], document: Document) -> T:
    """The object of a document, checked: its kind, its version, and the shapes of its arrays."""
    if not isinstance(document, dict) or "format" not in document:
        raise InputError("this was not written by pairlens: it does not name its format.")
    if document["format"] != _format(cls):
        raise InputError(f"this holds {document['format']!r} and not {_format(cls)!r}.")
    version = document["version"]
    if not isinstance(version, int) or version > VERSION:
        raise InputError(f"this is of version {version}, and this pairlens reads up to {VERSION}. Update pairlens.")
    sizes: dict[str, int] = {}
    for name, value in document.items():
        if name.startswith("units"):
            sizes[name] = len(value)
    values: dict[str, Any] = {}
    for field in fields(cls):
        if field.name in _OPTIONAL and field.name not in document:
            continue
        value = document[field.name]
        if field.name in _AXES:
            value = np.asarray(value, dtype=np.float64)
            expected = tuple(
                sizes.setdefault(axis, length) for axis, length in zip(_AXES[field.name], value.shape, strict=True)
            )
            if value.shape != expected or not np.isfinite(value).all():
                raise ValueError(f"`{field.name}` should be finite numbers of shape {expected}")
        elif field.name.startswith("units"):
            value = tuple(_unit(*parts) for parts in value)
        elif field.name.startswith("tokens"):
            value = tuple(value)
        elif field.type == "float" and type(value) is int and abs(value) < 2**53:
            value = float(value)  # as a browser writes 0.0
        elif field.type in _SCALARS and not isinstance(value, _SCALARS[field.type]):
            raise TypeError(f"`{field.name}` is {value!r:.40} and not a {field.type}")
        values[field.name] = value
    return cls(**values)


def _format(cls: type) -> str:
    return f"pairlens.{cls.__name__.lower()}"


def _unit(text: Any, start: Any, end: Any, kind: Any) -> Unit:
    if not isinstance(text, str) or kind not in ("text", "special", "prompt", "rest"):
        raise ValueError(f"{text!r:.40}, {kind!r:.40} is not a unit")
    return Unit(text, int(start), int(end), kind)


def _dump(document: Document) -> str:
    """JSON with a line for every field; floats as Python writes them, which reads back to the same bits."""
    try:
        plain = {name: value.tolist() if isinstance(value, np.ndarray) else value for name, value in document.items()}
        lines = [f'"{name}": {json.dumps(value, ensure_ascii=False, allow_nan=False)}' for name, value in plain.items()]
        "".join(lines).encode()
    except (TypeError, ValueError) as error:  # a setting that is no JSON, or half of a character
        raise InputError(f"this cannot be written as JSON: {error}.") from error
    return "{\n" + ",\n".join(lines) + "\n}\n"


def _parse(text: str) -> Document:
    def refuse(constant: str) -> None:
        raise ValueError(f"{constant} is not a number")

    return json.loads(text, parse_constant=refuse)


# Documents and files.


def _write_json(document: Document, file: BinaryIO) -> None:
    file.write(_dump(document).encode())


def _read_json(path: Path) -> Document:
    return _parse(path.read_text(encoding="utf-8"))


def _write_npz(document: Document, file: BinaryIO) -> None:
    arrays = {name: value for name, value in document.items() if name in _AXES}
    rest = {name: value for name, value in document.items() if name not in _AXES}
    np.savez(file, allow_pickle=False, document=np.array(_dump(rest)), **arrays)


def _read_npz(path: Path) -> Document:
    with np.load(path, allow_pickle=False) as parts:
        if "document" not in parts:
            raise InputError("this was not written by pairlens: it has no part `document`.")
        return {**_parse(str(parts["document"])), **{name: parts[name] for name in parts.files if name != "document"}}


def _write_parquet(document: Document, file: BinaryIO) -> None:
    pa, parquet = require_pyarrow()
    rows = [row for row in _rows(document) if row["part"] in ("pair", "value")]
    table = pa.Table.from_pylist(rows).replace_schema_metadata({b"pairlens": _dump(document).encode()})
    parquet.write_table(table, file)


def _read_parquet(path: Path) -> Document:
    _, parquet = require_pyarrow()
    metadata = parquet.read_schema(path).metadata or {}
    if b"pairlens" not in metadata:
        raise InputError("this was not written by pairlens' save: its metadata has no `pairlens`.")
    return _parse(metadata[b"pairlens"].decode())


def _write_csv(document: Document, file: BinaryIO) -> None:
    rows = list(_rows(document))
    text = io.StringIO(newline="")
    # The last row has all columns. Lines end in CR LF: with LF alone, the module leaves a CR in a text unquoted.
    writer = csv.DictWriter(text, list(rows[-1]), restval="", lineterminator="\r\n")
    writer.writeheader()
    writer.writerows(rows)  # floats by repr: the same bits when read back
    file.write(text.getvalue().encode())


def _read_csv(path: Path) -> Document:
    with path.open(encoding="utf-8", newline="") as file:
        text = file.read()
    if not text.endswith("\n"):
        raise ValueError("its last line has no end")
    limit = csv.field_size_limit(max(len(text), 131072))  # a text may be longer than the module's usual limit
    try:
        rows = list(csv.DictReader(io.StringIO(text, newline=""), strict=True))
    finally:
        csv.field_size_limit(limit)
    if not rows or rows[0].get("part") != "format":
        raise InputError("this was not written by pairlens' save: its first row does not name its format.")
    return _from_rows(rows)


_WRITERS: dict[str, Callable[[Document, BinaryIO], None]] = {
    ".json": _write_json,
    ".npz": _write_npz,
    ".csv": _write_csv,
    ".parquet": _write_parquet,
}
_READERS: dict[str, Callable[[Path], Document]] = {
    ".json": _read_json,
    ".npz": _read_npz,
    ".csv": _read_csv,
    ".parquet": _read_parquet,
}

# Documents as long tables: one row for every pair of units (or, of contributions, for every unit and dimension), after
# the rows that hold everything else. What is text stands in a text column, so that `value` is a column of numbers.
# A part is a field's name, or "pair" or "value"; `effects_a`, `effects_b` and `units` are the rows that name the units.


def _rows(document: Document) -> Iterator[Row]:
    sides = _sides(document)
    for name, value in document.items():
        side = _side(name, sides)
        if name.startswith("tokens"):
            yield from ({"part": name, f"text{side}": token} for token in value)
        elif name.startswith("effects"):
            for unit, effect in zip(document[f"units{side}"], value, strict=True):
                yield {"part": name, **_cells(unit, side), "value": float(effect)}
        elif name == "units":
            for unit, error in zip(value, document["error"], strict=True):
                yield {"part": name, **_cells(unit, ""), "error": float(error)}
        elif name in _OPTIONAL or _AXES.get(name) == ("dim",):
            yield from ({"part": name, "dim": i, "value": float(number)} for i, number in enumerate(np.ravel(value)))
        elif isinstance(value, str):
            yield {"part": name, f"text{side}": value}
        elif isinstance(value, dict):
            yield {"part": name, f"text{side}": json.dumps(value, ensure_ascii=False, allow_nan=False)}
        elif isinstance(value, int | float):
            yield {"part": name, "value": float(value)}
    if sides == ("",):
        for unit, vector, error in zip(document["units"], document["values"], document["error"], strict=True):
            for i, value in enumerate(vector):
                yield {"part": "value", **_cells(unit, ""), "dim": i, "value": float(value), "error": float(error)}
        return
    for unit_a, values, errors in zip(document["units_a"], document["matrix"], document["entry_error"], strict=True):
        for unit_b, value, error in zip(document["units_b"], values, errors, strict=True):
            cells = {**_cells(unit_a, "_a"), **_cells(unit_b, "_b")}
            yield {"part": "pair", **cells, "value": float(value), "error": float(error)}


def _from_rows(rows: list[Row]) -> Document:
    parts: dict[str, list[Row]] = {}
    for row in rows:
        parts.setdefault(row["part"], []).append(row)
    sides = _sides(parts)
    entries = parts.pop("value" if sides == ("",) else "pair")
    document: Document = {f"tokens{side}": [] for side in sides}
    for name, found in parts.items():
        side = _side(name, sides)
        if name.startswith("tokens"):
            document[name] = [row[f"text{side}"] for row in found]
        elif name in _OPTIONAL:
            document[name] = _numbers(found, "value")
        elif name in _AXES or name == "units":
            if _AXES.get(name) != ("dim",):
                document[f"units{side}"] = [[row[f"{key}{side}"] for key in _UNIT] for row in found]
            document["error" if name == "units" else name] = _numbers(found, "error" if name == "units" else "value")
        elif name == "settings":
            document[name] = _parse(found[0][f"text{side}"])
        elif found[0]["value"]:
            kind = int if name == "version" else bool if name.startswith("truncated") else float
            document[name] = kind(float(found[0]["value"]))
        else:
            document[name] = found[0][f"text{side}"]
    shape = [len(document[f"units{side}"]) for side in sides]
    if sides == ("",):
        values = _numbers(entries, "value").reshape(*shape, -1)
        for name, length in zip(_OPTIONAL, values.shape, strict=True):
            if name in document:
                document[name] = document[name].reshape(-1, length)
        return {**document, "values": values}
    matrix, error = (_numbers(entries, column).reshape(shape) for column in ("value", "error"))
    return {**document, "matrix": matrix, "entry_error": error}


_UNIT = ("text", "start", "end", "kind")


def _sides(parts: Mapping[str, Any]) -> tuple[str, ...]:
    return ("_a", "_b") if "effects_a" in parts else ("",)


def _side(name: str, sides: tuple[str, ...]) -> str:
    return name[-2:] if name[-2:] in sides else sides[0]


def _cells(unit: list[Any], side: str) -> Row:
    return {f"{name}{side}": value for name, value in zip(_UNIT, unit, strict=True)}


def _numbers(rows: list[Row], column: str) -> np.ndarray:
    return np.array([float(row[column]) for row in rows])
