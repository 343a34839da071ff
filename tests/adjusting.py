"""Tiny adjusted models, and the papers' definition of their embeddings, computed by hand."""

from __future__ import annotations

import copy
from typing import Any

import torch
from torch import Tensor

import zoo
from pairlens.adjusted.wrapping import wrap

A, B = "The coffee here is not good.", "This coffee is bad."


def pieces(plain: Any, text: str) -> Tensor:
    """Return a text's token ids, (1, tokens), from the tokenizer alone."""
    return plain[0].tokenizer([text], return_tensors="pt")["input_ids"]


def reference_of(plain: Any, ids: Tensor, before: int = 1, after: int = 1) -> Tensor:
    """Return the ids with padding in place of the text's tokens."""
    reference = ids.clone()
    reference[:, before : ids.shape[1] - after] = plain[0].tokenizer.pad_token_id
    return reference


def run(plain: Any, ids: Tensor, **more: Any) -> Tensor:
    """Return the plain model's embedding of token ids with a mask of ones, (dim,)."""
    features: dict[str, Any] = {"input_ids": ids, "attention_mask": torch.ones_like(ids), **more}
    if "token_type_ids" in plain[0].tokenizer.model_input_names:
        features["token_type_ids"] = torch.zeros_like(ids)
    with torch.no_grad():
        return plain(features)["sentence_embedding"][0]


def shifted(plain: Any, text: str, before: int = 1, after: int = 1) -> Tensor:
    """Return e'(x) - e'(r), (dim,), computed for one text alone."""
    ids = pieces(plain, text)
    return run(plain, ids) - run(plain, reference_of(plain, ids, before, after))


def encode(model: Any, texts: Any, **options: Any) -> Tensor:
    """Return embeddings as a tensor, (texts, dim)."""
    return model.encode(texts, convert_to_tensor=True, **options)


def tiny(family: str = "bert", *, double: bool = True, **options: Any) -> tuple[Any, Any]:
    """Return a plain model and its adjusted form, which share no weights."""
    plain: Any = zoo.encoder(family, **options)
    plain = plain.double() if double else plain
    return plain, wrap(copy.deepcopy(plain)).eval()
