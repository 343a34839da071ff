"""References, where paths start: inputs of the same length without the content of the text."""

from __future__ import annotations

from collections.abc import Hashable
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

import numpy as np
import torch
from torch import Tensor

from pairlens.errors import ModelError

if TYPE_CHECKING:
    from pairlens.model.tokenize import Text

REFERENCES = ("padding", "mask", "zero")


@runtime_checkable
class Tokenizing(Protocol):
    """An object with a tokenizer: a reader of texts, or a module."""

    tokenizer: Any


def reference_token(reference: str, reader: Tokenizing) -> tuple[int, str]:
    """Return the id and the name of the token that replaces every token of the text."""
    tokenizer = reader.tokenizer
    names = ("mask_token",) if reference == "mask" else ("pad_token", "eos_token")
    for name in names:
        token_id = getattr(tokenizer, f"{name}_id", None)
        if token_id is not None:
            return int(token_id), str(getattr(tokenizer, name))
    if reference == "mask":
        raise ModelError("the model's tokenizer has no mask token; use reference='padding' or reference='zero'.")
    raise ModelError("the model's tokenizer has neither a padding nor an end token to make a reference of.")


def reference_ids(text: Text, token: int) -> Tensor:
    """Return the token ids of the reference, (tokens,): `token` for every token but special and prompt tokens.

    The zero reference takes the states of its special tokens from the padding reference.
    """
    return torch.from_numpy(np.where(text.kept, text.features["input_ids"].numpy()[0], token))


def reference_key(text: Text, ids: Tensor, layer: int) -> Hashable:
    """Return a key of all that the states of a text's reference, with these token ids, depend on at a layer."""
    rest = [
        (name, value.numpy().tobytes() if isinstance(value, Tensor) else repr(value))
        for name, value in text.features.items()
        if name != "input_ids"
    ]
    return layer, ids.numpy().tobytes(), *rest


def replaced(ids: Tensor, kept: Tensor, reference: str, reader: Tokenizing) -> Tensor:
    """Return token ids with all but the kept ones replaced by the reference's token; all arguments have one shape."""
    return torch.where(kept, ids, reference_token(reference, reader)[0])


def special_ends(tokenizer: Any) -> tuple[int, int]:
    """Return how many special tokens a tokenizer puts before and after every text."""
    special = tokenizer("one two three", return_special_tokens_mask=True)["special_tokens_mask"]
    if all(special):
        raise ModelError("the model's tokenizer takes plain words for special tokens; a reference cannot be made.")
    return special.index(0), special[::-1].index(0)
