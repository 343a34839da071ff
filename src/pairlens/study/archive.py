"""An archive of computed parts of a study on disk: another study, or a run started again, reads them."""

from __future__ import annotations

import hashlib
import json
import zipfile
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError
from pairlens.io import documents, whole_file

Parts = dict[str, Any]
"""Plain JSON by name, and arrays by name."""


class Archive:
    """Pieces of work by the settings that they depend on. A piece is one file, written as a whole or not at all.

    Pieces are never changed or deleted: other settings make other pieces. A run that was interrupted therefore gives
    the same files as an uninterrupted one.

    Args:
        folder: where to keep the pieces; None to keep them in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._pieces: dict[str, Parts] = {}
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"the folder {folder} cannot be made: {error.strerror}.") from error
            remove_unfinished(folder)

    def recall(self, key: Any) -> Parts | None:
        """The piece kept under this key, which is plain JSON, or None."""
        name = _name(key)
        if self.folder is None:
            return self._pieces.get(name)
        path = self.folder / f"{name}.npz"
        if not path.exists():
            return None
        try:
            with np.load(path, allow_pickle=False) as parts:
                arrays = {part: parts[part] for part in parts.files if part != "plain"}
                return {**json.loads(str(parts["plain"])), **arrays}
        except (ValueError, KeyError, OSError, EOFError, zipfile.BadZipFile) as error:
            raise InputError(
                f"{path} is not a whole file of pairlens ({error}). Delete it, and start again."
            ) from error

    def keep(self, key: Any, parts: Parts) -> None:
        """Keep a piece under a key."""
        name = _name(key)
        if self.folder is None:
            self._pieces[name] = parts
            return
        plain, arrays = _split(parts)
        with whole_file(self.folder / f"{name}.npz") as file:
            np.savez(file, allow_pickle=False, plain=np.array(json.dumps(plain, ensure_ascii=False)), **arrays)

    def remember(self, key: Any, make: Callable[[], Parts]) -> Parts:
        """The piece kept under this key; `make` makes it if there is none."""
        parts = self.recall(key)
        if parts is None:
            self.keep(key, parts := make())
        return parts


def pack(entries: Sequence[Explanation | str]) -> Parts:
    """One piece from explanations, and from the reasons of the pairs that have none."""
    parts: Parts = {"entries": []}
    for number, entry in enumerate(entries):
        if not isinstance(entry, str):
            entry, arrays = _split(documents.to_document(entry))
            parts |= {f"{number}.{name}": value for name, value in arrays.items()}
        parts["entries"].append(entry)
    return parts


def unpack(parts: Parts) -> list[Explanation | str]:
    """The explanations and reasons that `pack` put together."""
    arrays: dict[str, Parts] = {}
    for name, value in parts.items():
        number, _, part = name.partition(".")
        if part:
            arrays.setdefault(number, {})[part] = value
    return [
        entry if isinstance(entry, str) else documents.from_document(Explanation, {**entry, **arrays[str(number)]})
        for number, entry in enumerate(parts["entries"])
    ]


def remove_unfinished(folder: Path) -> None:
    """Delete the temporary files of a run that was killed while it wrote."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def _split(parts: Mapping[str, Any]) -> tuple[Parts, Parts]:
    """The plain JSON of a piece, and its arrays."""
    arrays = {name: value for name, value in parts.items() if isinstance(value, np.ndarray)}
    return {name: value for name, value in parts.items() if name not in arrays}, arrays


def _name(key: Any) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]
