"""What a study has computed, kept on disk so that another study, or the same one started again, need not repeat it."""

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
from pairlens.io import documents

Parts = dict[str, Any]
"""Plain JSON by name, and arrays by name."""


class Archive:
    """Pieces of work by what they depend on. A piece is a file that appears whole or not at all.

    Nothing is ever changed or forgotten: other settings are other pieces. So a run that was cut off repeats what an
    uninterrupted one does, piece by piece.

    Args:
        folder: where to keep the pieces; None to keep them in memory.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = folder
        self._known: dict[str, Parts] = {}
        if folder is not None:
            try:
                folder.mkdir(parents=True, exist_ok=True)
            except OSError as error:
                raise InputError(f"the folder {folder} cannot be made: {error.strerror}.") from error
            sweep(folder)

    def recall(self, key: Any) -> Parts | None:
        """The piece that was kept under this key, plain JSON, or None."""
        name = _name(key)
        if self.folder is None:
            return self._known.get(name)
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
        """Keep a piece."""
        name = _name(key)
        if self.folder is None:
            self._known[name] = parts
            return
        arrays = {part: value for part, value in parts.items() if isinstance(value, np.ndarray)}
        plain = {part: value for part, value in parts.items() if part not in arrays}
        with documents.whole_file(self.folder / f"{name}.npz") as file:
            np.savez(file, allow_pickle=False, plain=np.array(json.dumps(plain, ensure_ascii=False)), **arrays)

    def remember(self, key: Any, make: Callable[[], Parts]) -> Parts:
        """The piece under this key, made now if it was never made."""
        found = self.recall(key)
        if found is None:
            self.keep(key, found := make())
        return found


def pack(entries: Sequence[Explanation | str]) -> Parts:
    """Explanations, or for pairs without one the reason why, as a piece."""
    parts: Parts = {"entries": []}
    for number, entry in enumerate(entries):
        document = entry if isinstance(entry, str) else documents.to_document(entry)
        if isinstance(document, Mapping):
            arrays = {name: value for name, value in document.items() if isinstance(value, np.ndarray)}
            parts |= {f"{number}.{name}": value for name, value in arrays.items()}
            document = {name: value for name, value in document.items() if name not in arrays}
        parts["entries"].append(document)
    return parts


def unpack(parts: Parts) -> list[Explanation | str]:
    """What `pack` packed."""
    arrays: dict[str, Parts] = {}
    for name, value in parts.items():
        number, _, part = name.partition(".")
        if part:
            arrays.setdefault(number, {})[part] = value
    return [
        entry if isinstance(entry, str) else documents.from_document(Explanation, {**entry, **arrays[str(number)]})
        for number, entry in enumerate(parts["entries"])
    ]


def sweep(folder: Path) -> None:
    """Remove what a run that was killed while it wrote has left behind."""
    for path in folder.glob(".*.tmp"):
        path.unlink(missing_ok=True)


def _name(key: Any) -> str:
    return hashlib.sha256(json.dumps(key, sort_keys=True, ensure_ascii=False).encode()).hexdigest()[:32]
