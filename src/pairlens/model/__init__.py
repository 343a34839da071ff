"""A sentence encoder, opened up: its tokens, its hidden states at any layer, its references, and deletions.

A model comes in (a hub id, a folder, a SentenceTransformer, or any function from texts to vectors); an `Encoder` or an
`EmbeddingFunction` goes out, both of the protocol `EmbeddingModel`. Names are imported on first use: the command line
reads `model.bundled` without waiting for torch.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pairlens.model.bundled import DEFAULT_MODEL, offline_model
    from pairlens.model.encoder import Encoder
    from pairlens.model.function import EmbeddingFunction
    from pairlens.model.protocol import FIXED, EmbeddingModel
    from pairlens.model.tokenize import Text

_HOMES = {
    "FIXED": "protocol",
    "DEFAULT_MODEL": "bundled",
    "EmbeddingFunction": "function",
    "EmbeddingModel": "protocol",
    "Encoder": "encoder",
    "Text": "tokenize",
    "offline_model": "bundled",
}

__all__ = ["DEFAULT_MODEL", "FIXED", "EmbeddingFunction", "EmbeddingModel", "Encoder", "Text", "offline_model"]


def __getattr__(name: str) -> Any:
    """Return a name of the room, imported on first use."""
    if name not in _HOMES:
        raise AttributeError(f"module 'pairlens.model' has no attribute {name!r}")
    return getattr(importlib.import_module(f"pairlens.model.{_HOMES[name]}"), name)
