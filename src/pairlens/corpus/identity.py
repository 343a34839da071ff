"""The model of an index: its fingerprint, its name, and the check that a lens holds the same model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any
from weakref import WeakKeyDictionary

import torch

from pairlens.errors import InputError, ModelError
from pairlens.lens import Lens

_fingerprints: WeakKeyDictionary[Any, str] = WeakKeyDictionary()


def fingerprint(lens: Lens) -> str:
    """A hash of everything that an embedding depends on: weights, configuration, tokenizer, prompts.

    The hash is computed once for every lens, in 0.2 seconds for all-MiniLM-L6-v2. A black box has its name only.
    """
    encoder: Any = lens.encoder
    if not encoder.has_layers:
        return f"function {encoder.name}"
    if encoder not in _fingerprints:
        _fingerprints[encoder] = _hash(encoder.sentence_transformer)
    return _fingerprints[encoder]


def _hash(model: Any) -> str:
    digest = hashlib.sha256()
    for name, tensor in model.state_dict().items():
        digest.update(f"{name} {tensor.dtype} {tuple(tensor.shape)}".encode())
        digest.update(tensor.detach().cpu().contiguous().flatten().view(torch.uint8).numpy().data)
    for name in ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim"):
        digest.update(f"{name} {getattr(model, name, None)!r}".encode())
    for module in model.modules():
        describe = getattr(module, "get_config_dict", None)
        if describe is not None:
            length = getattr(module, "max_seq_length", None)
            digest.update(
                f"{type(module).__name__} {json.dumps(describe(), sort_keys=True, default=str)} {length}".encode()
            )
        tokenizer = getattr(module, "tokenizer", None)
        if tokenizer is not None:
            digest.update(_tokenizer(tokenizer).encode())
    return digest.hexdigest()


def _tokenizer(tokenizer: Any) -> str:
    """A tokenizer's configuration as JSON, without padding and truncation, which calls change."""
    fast = getattr(tokenizer, "backend_tokenizer", tokenizer)
    if hasattr(fast, "to_str"):
        parts = json.loads(fast.to_str())
        return json.dumps({name: value for name, value in parts.items() if name not in ("padding", "truncation")})
    return json.dumps(sorted(tokenizer.get_vocab().items()))


def full_name(name: str) -> str:
    """A model's name; of a folder, its absolute path."""
    return str(Path(name).expanduser().resolve()) if Path(name).expanduser().is_dir() else name


def load_model(document: Mapping[str, Any]) -> Lens:
    """The model that an index was made with, loaded by its name."""
    try:
        return Lens(document["model"], dtype=document["contributions"]["dtype"])
    except ModelError as error:
        raise InputError(
            f"the index was made with the model {document['model']!r}, which cannot be loaded by that name: "
            f"{error} Give it: Index.open(path, lens), or --model."
        ) from error


def check_model(document: Mapping[str, Any], lens: Lens) -> None:
    """Raise unless a lens holds the model that an index was made with, in the same precision."""
    present = fingerprint(lens)
    if document["fingerprint"] != present:
        raise InputError(
            f"the index was made with the model {document['model']!r} (fingerprint "
            f"{document['fingerprint'][:16]}), and this is {lens.name!r} (fingerprint {present[:16]}). "
            "Open it with the model that it was made with."
        )
    if document["contributions"]["dtype"] != lens.encoder.precision:
        raise InputError(
            f"the index was computed in {document['contributions']['dtype']}, and this lens computes in "
            f"{lens.encoder.precision}. Open it with Lens(…, dtype={document['contributions']['dtype']!r})."
        )
