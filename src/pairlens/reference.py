"""Where a path starts: the states of an input of the same length that says nothing."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import torch
from torch import Tensor

from pairlens.errors import ModelError

if TYPE_CHECKING:
    from pairlens.reading import Reader, Text

REFERENCES = ("padding", "mask", "zero")


def reference_token(reference: str, reader: Reader) -> tuple[int, str]:
    """The id and the name of the token that stands for every token of the text."""
    tokenizer = reader.tokenizer
    names = ("mask_token",) if reference == "mask" else ("pad_token", "eos_token")
    for name in names:
        token_id = getattr(tokenizer, f"{name}_id", None)
        if token_id is not None:
            return int(token_id), str(getattr(tokenizer, name))
    if reference == "mask":
        raise ModelError("the model's tokenizer has no mask token; use reference='padding' or reference='zero'.")
    raise ModelError("the model's tokenizer has neither a padding nor an end token to make a reference of.")


def reference_ids(text: Text, reference: str, reader: Reader) -> Tensor:
    """Token ids of the reference input: special and prompt tokens kept, every other one replaced, (tokens,).

    The zero reference takes its special rows from the padding one.
    """
    ids = text.features["input_ids"][0].cpu()
    return torch.where(torch.tensor(text.kept), ids, reference_token(reference, reader)[0])


def reference_states(states: Tensor, texts: Sequence[Text], reference: str) -> Tensor:
    """The states the path starts from, given those of the reference input, (texts, tokens, width)."""
    if reference != "zero":
        return states
    kept = torch.tensor([text.kept for text in texts], device=states.device)
    return torch.where(kept[..., None], states, 0)
