"""How an adjusted model is stored: like the plain model, with one more file that names its modules."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairlens.errors import ModelError

ADJUSTED = "pairlens.adjusted.module.Adjusted"
"""The class of the adjusting module, as modules.json has it."""
CONFIG = "adjusted_config.json"
Entry = dict[str, Any]


def class_name(module: object) -> str:
    """Return a module's class as modules.json has it."""
    return f"{type(module).__module__}.{type(module).__name__}"


def stage_folder(place: int, kind: str) -> str:
    """Return the folder of one module; the first one is in the model's own folder, as in a plain model."""
    return f"adjusted/{place}_{kind.rsplit('.', 1)[-1]}" if place else ""


def stage_classes(config: Mapping[str, Any]) -> Sequence[str]:
    """Return the modules' classes from the configuration file. Only classes of sentence-transformers are accepted."""
    kinds = config.get("body")
    if not isinstance(kinds, list) or not kinds or not all(isinstance(kind, str) for kind in kinds):
        raise ModelError(f"{CONFIG} does not name the modules of an adjusted model. Save the model again.")
    foreign = next((kind for kind in kinds if not kind.startswith("sentence_transformers.")), None)
    if foreign is not None:
        raise ModelError(f"{CONFIG} names {foreign!r}, which is not part of sentence-transformers, and is not loaded.")
    return kinds


def plain_entries(folder: Path, entries: Sequence[Entry]) -> list[Entry]:
    """Return the entries of modules.json with the adjusted module replaced by the modules that it holds."""
    plain: list[Entry] = []
    for entry in entries:
        if entry.get("type") != ADJUSTED:
            plain.append(entry)
            continue
        home = str(entry.get("path", ""))
        try:
            config = json.loads((folder / home / CONFIG).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(f"{folder / home / CONFIG} cannot be read as JSON: {error}") from error
        for place, kind in enumerate(stage_classes(config)):
            path = Path(home, stage_folder(place, kind)).as_posix()
            plain.append({"path": "" if path == "." else path, "type": kind})
    return [{**entry, "idx": idx, "name": str(idx)} for idx, entry in enumerate(plain)]
