"""How an adjusted model lies on disk: as the plain model does, its modules named in one file more."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from pairlens.errors import ModelError

ADJUSTED = "pairlens.adjusted.module.Adjusted"
"""The module's class, as modules.json has it."""
CONFIG = "adjusted_config.json"
Entry = dict[str, Any]


def stage_folder(place: int, kind: str) -> str:
    """The folder of one of the modules: the first one's is the model's own, as in a plain model."""
    return f"adjusted/{place}_{kind.rsplit('.', 1)[-1]}" if place else ""


def stage_classes(config: Mapping[str, Any]) -> Sequence[str]:
    """The modules' classes, from the content of the configuration file. Nothing else may be imported by its name."""
    kinds = config.get("body")
    if not isinstance(kinds, list) or not kinds or not all(isinstance(kind, str) for kind in kinds):
        raise ModelError(f"{CONFIG} does not name the modules of an adjusted model. Save the model again.")
    foreign = next((kind for kind in kinds if not kind.startswith("sentence_transformers.")), None)
    if foreign is not None:
        raise ModelError(f"{CONFIG} names {foreign!r}, which is not part of sentence-transformers, and is not loaded.")
    return kinds


def plain_entries(folder: Path, entries: Sequence[Entry]) -> list[Entry]:
    """The content of modules.json as that of the plain model: the adjusted module's own in its place."""
    found: list[Entry] = []
    for entry in entries:
        if entry.get("type") != ADJUSTED:
            found.append(entry)
            continue
        home = str(entry.get("path", ""))
        try:
            config = json.loads((folder / home / CONFIG).read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ModelError(f"{folder / home / CONFIG} cannot be read as JSON: {error}") from error
        for place, kind in enumerate(stage_classes(config)):
            path = Path(home, stage_folder(place, kind)).as_posix()
            found.append({"path": "" if path == "." else path, "type": kind})
    return [{**entry, "idx": idx, "name": str(idx)} for idx, entry in enumerate(found)]
