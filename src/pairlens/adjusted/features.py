"""Functions of a batch's features: the token ids, mask, embeddings and more that the modules pass on, by name."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

Features = dict[str, Any]


def attention_mask(features: Features) -> Tensor:
    """Return which tokens are not padding, (texts, tokens) booleans."""
    mask = features.get("attention_mask")
    return torch.ones_like(features["input_ids"], dtype=torch.bool) if mask is None else mask.bool()


def row_keys(ids: Tensor, mask: Tensor) -> list[bytes]:
    """Return a key for every row of token ids, (texts, tokens); padding does not count."""
    return [row[tokens].tobytes() for row, tokens in zip(ids.cpu().numpy(), mask.cpu().numpy(), strict=True)]


def take_rows(features: Features, rows: Tensor, count: int | None = None) -> Features:
    """Return some rows of a batch of `count` texts."""
    count = len(features["input_ids"]) if count is None else count
    return {
        name: value[rows.to(value.device)]
        if isinstance(value, Tensor) and value.ndim and len(value) == count
        else value
        for name, value in features.items()
    }


def take_tokens(features: Features, row: int, mask: Tensor) -> Features:
    """Return one row of a batch with the mask (texts, tokens), without its padding."""
    columns = mask[row].nonzero()[:, 0]
    return {
        name: value[:, columns] if isinstance(value, Tensor) and value.shape[:2] == (1, mask.shape[1]) else value
        for name, value in take_rows(features, torch.tensor([row], device=mask.device)).items()
    }
