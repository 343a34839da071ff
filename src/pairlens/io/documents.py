"""Explanations, contrasts and contributions as files.

An object becomes one neutral document, a dict of its fields beside `format` and `version`. `formats` writes and reads
documents as JSON, NPZ, CSV and Parquet, all of them lossless.
"""

from __future__ import annotations

import csv
import json
import math
import zipfile
import zlib
from collections.abc import Collection, Mapping
from dataclasses import asdict, fields
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np

from pairlens.errors import InputError, choose
from pairlens.io.files import check_folder, require, require_pyarrow, whole_file
from pairlens.io.formats import READERS, WRITERS, dump
from pairlens.io.rows import to_columns
from pairlens.io.schema import AXES, EXPLANATIONS, OPTIONAL, SCALARS, WORDS, Document
from pairlens.text.units import Unit

if TYPE_CHECKING:
    from pairlens.attribution.contrast import Contrast
    from pairlens.attribution.contributions import Contributions
    from pairlens.attribution.explanation import Explanation

    Stored = Explanation | Contributions | Contrast

VERSION = 1
PICTURE = ".html"
"""The suffix of the interactive picture, which `pairlens.render.html` writes."""
PLOTS = (".png", ".svg", ".pdf")
"""The suffixes of plots, which `pairlens.render.plot` writes."""
T = TypeVar("T", bound="Stored")
_DAMAGED = (ValueError, KeyError, TypeError, IndexError, OSError, EOFError, csv.Error, zipfile.BadZipFile, zlib.error)
"""What reading a damaged file may raise."""


def save(obj: Stored, path: str | Path) -> Path:
    """Write a result; the suffix names the format: .json, .npz, .csv or .parquet; of a contrast it is .json."""
    path = check(path)
    document = to_document(obj)
    with whole_file(path) as file:
        WRITERS[path.suffix.lower()](document, file)
    return path


def load(cls: type[T], path: str | Path) -> T:
    """Read an object of the given class from a file that `save` wrote."""
    path = Path(path)
    suffix = choose("file suffix", path.suffix.lower(), READERS)
    if not path.is_file():
        raise InputError(f"there is no file {path}." if not path.exists() else f"{path} is not a file.")
    try:
        return from_document(cls, READERS[suffix](path))
    except InputError as error:
        raise InputError(f"{path}: {error}") from error
    except _DAMAGED as error:
        reason = str(error).splitlines()[0].rstrip(".") if str(error) else type(error).__name__
        raise InputError(
            f"{path} is not a whole file of pairlens ({reason}). It was cut off or changed: save it again."
        ) from error


def check(path: str | Path, *, formats: Collection[str] = tuple(WRITERS), picture: bool = False) -> Path:
    """The path, if `save` can write there: a known suffix, its package installed, and a folder that exists.

    `formats` are the suffixes of files that can be read back; `picture` also allows those of the interactive picture
    and of plots.
    """
    path = Path(path)
    suffix = choose("file suffix", path.suffix.lower(), (*formats, *(PICTURE, *PLOTS) * picture))
    if suffix == ".parquet":
        require_pyarrow()
    if suffix in PLOTS:
        require("matplotlib", "plot")
    check_folder(path)
    return path


def plain(obj: Stored) -> Document:
    """The document of an explanation or of contributions with lists instead of arrays."""
    return json.loads(to_json(obj))


def table(obj: Stored) -> Any:
    """The numbers of an explanation or of contributions as a pandas DataFrame: the rows of a saved .csv file."""
    return require("pandas", "study").DataFrame(to_columns(to_document(obj))[0])


def to_json(obj: Stored) -> str:
    """The JSON document of an explanation or of contributions, as `save` writes it."""
    return dump(to_document(obj))


def to_document(obj: Stored) -> Document:
    """The fields of an object: arrays as NumPy arrays, everything else as JSON types."""
    document: Document = {"format": _format(type(obj)), "version": VERSION}
    finite = True
    for field in fields(obj):
        value = getattr(obj, field.name)
        if field.name in OPTIONAL and value is None:
            continue
        if field.name in AXES:
            value = np.asarray(value, dtype=np.float64)
            finite = np.isfinite(value).all()
        elif field.name.startswith("units"):
            value = [list(unit.stored()) for unit in value]
        elif isinstance(value, tuple):
            value = list(value)
        elif field.name == "forecast":
            value = asdict(value)
        elif field.name in EXPLANATIONS:
            value = plain(value)
        elif isinstance(value, Mapping):
            value = dict(value)
            dump(value)  # raises where JSON cannot hold a setting
        elif field.type == "float":
            value = float(value)
            finite = math.isfinite(value)
        if not finite:
            raise InputError(f"`{field.name}` holds a NaN or an infinity and cannot be saved.")
        document[field.name] = value
    return document


def from_document(cls: type[T], document: Document) -> T:
    """The object of a document, after checks of its format, its version, its types and the shapes of its arrays."""
    if not isinstance(document, dict) or "format" not in document:
        raise InputError("this was not written by pairlens: it does not name its format.")
    if document["format"] != _format(cls):
        raise InputError(f"this holds {document['format']!r} and not {_format(cls)!r}.")
    version = document["version"]
    if not isinstance(version, int) or version > VERSION:
        raise InputError(f"this is of version {version}, and this pairlens reads up to {VERSION}. Update pairlens.")
    sizes = {name: len(value) for name, value in document.items() if name.startswith("units")}
    values: dict[str, Any] = {}
    for field in fields(cls):
        if field.name in OPTIONAL and field.name not in document:
            continue
        value = document[field.name]
        if field.name in AXES:
            value = np.asarray(value, dtype=np.float64)
            expected = tuple(
                sizes.setdefault(axis, length) for axis, length in zip(AXES[field.name], value.shape, strict=True)
            )
            if value.shape != expected or not np.isfinite(value).all():
                raise ValueError(f"`{field.name}` should be finite numbers of shape {expected}")
        elif field.name.startswith("units"):
            value = tuple(Unit.from_stored(*parts) for parts in value)
        elif field.name.startswith(WORDS):
            value = tuple(value)
        elif field.name == "forecast":
            value = _forecast(**value)
        elif field.name in EXPLANATIONS:
            value = _explanation(value)
        elif field.type == "float" and type(value) is int and abs(value) < 2**53:
            value = float(value)  # browsers write 0.0 as 0
        elif field.type in SCALARS and not isinstance(value, SCALARS[field.type]):
            raise TypeError(f"`{field.name}` is {value!r:.40} and not a {field.type}")
        values[field.name] = value
    return cls(**values)


def _format(cls: type) -> str:
    return f"pairlens.{cls.__name__.lower()}"


def _explanation(document: Document) -> Any:
    from pairlens.attribution.explanation import Explanation

    return from_document(Explanation, document)


def _forecast(**numbers: float | None) -> Any:
    from pairlens.attribution.forecast import Forecast

    if not all(
        number is None or (isinstance(number, int | float) and math.isfinite(number)) for number in numbers.values()
    ):
        raise ValueError("`forecast` should hold finite numbers")
    return Forecast(**numbers)  # pyright: ignore[reportArgumentType]
