"""A batch as the modules pass it on: token ids, a mask, embeddings and whatever else, by name."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

Features = dict[str, Any]


def own_tokens(features: Features) -> Tensor:
    """Which tokens are a text's own, and not padding, (texts, tokens) booleans."""
    mask = features.get("attention_mask")
    return torch.ones_like(features["input_ids"], dtype=torch.bool) if mask is None else mask.bool()


def keys(reference: Tensor, mask: Tensor) -> list[bytes]:
    """What tells references apart: their token ids, without padding."""
    rows, masks = reference.cpu().numpy(), mask.cpu().numpy()
    return [row[own].tobytes() for row, own in zip(rows, masks, strict=True)]


def take(features: Features, rows: Tensor, count: int | None = None) -> Features:
    """Some rows of a batch of `count`."""
    count = len(features["input_ids"]) if count is None else count
    return {
        name: value[rows.to(value.device)]
        if isinstance(value, Tensor) and value.ndim and len(value) == count
        else value
        for name, value in features.items()
    }
