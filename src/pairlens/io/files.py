"""Files that are whole or absent, their folders, and the optional packages that read and write them."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any, BinaryIO
from uuid import uuid4

from pairlens.errors import InputError, MissingExtra


@contextmanager
def whole_file(path: Path) -> Iterator[BinaryIO]:
    """Open a scratch file for writing; it replaces `path` at the end, and only if nothing was raised."""
    path = Path(os.path.realpath(path))  # a symbolic link stays a link
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


def write_file(path: Path, content: bytes) -> Path:
    """Write a file whole or not at all; returns its path."""
    with whole_file(path) as file:
        file.write(content)
    return path


def check_folder(path: Path) -> None:
    """Raise unless the path's folder exists and the path itself is not a folder."""
    if not path.parent.is_dir():
        raise InputError(f"{path} cannot be written: the folder {path.parent} does not exist. Make it first.")
    if path.is_dir():
        raise InputError(f"{path} is a folder; give the name of a file.")


def make_folder(folder: Path, option: str) -> Path:
    """Make a folder where it does not exist; `option` is what the user can change, such as "--out"."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror}. Give another {option}.") from error
    return folder


def sha256(path: Path) -> str:
    """The SHA-256 of a file's content, in hexadecimal."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def versions(*more: str) -> dict[str, str]:
    """The installed versions of the packages that results depend on; packages that are missing are left out."""
    installed = {}
    for name in ("pairlens", "torch", "transformers", "sentence-transformers", "numpy", *more):
        with suppress(PackageNotFoundError):
            installed[name] = version(name)
    return installed


def require(module: str, extra: str) -> Any:
    """Import an optional module; raises MissingExtra, which names the extra to install, where it is missing."""
    try:
        return import_module(module)
    except ImportError as error:
        raise MissingExtra(module.partition(".")[0], extra) from error


def require_pyarrow() -> tuple[Any, Any]:
    """The modules pyarrow and pyarrow.parquet."""
    return require("pyarrow", "study"), require("pyarrow.parquet", "study")
