"""References of neighbouring lengths, computed as one batch.

Encoding sorts its texts by length, so that the next lengths are wanted soon, and eight short references in a batch cost
little more than one. Which lengths go together depends on the length alone: what an embedding is does not depend on
what was encoded before.
"""

from __future__ import annotations

import torch
from torch import Tensor

from pairlens.adjusted.features import Features

TOGETHER, SHORT = 8, 64
"""So many lengths go together, up to so many tokens; beyond, a batch costs what its references cost one by one."""


def lengths_near(length: int, shortest: int, longest: int) -> range:
    """The lengths that are computed with this one, itself among them.

    Args:
        length: of a reference, in tokens.
        shortest: the least that a reference with these special tokens can have and still stand for a token of a text.
        longest: what the model takes.

    Example:
        >>> lengths_near(11, 3, 512), lengths_near(5, 3, 512), lengths_near(11, 3, 12), lengths_near(100, 3, 512)
        (range(9, 17), range(3, 9), range(9, 13), range(100, 101))
    """
    if not shortest <= length <= SHORT:
        return range(length, length + 1)
    first = (length - 1) // TOGETHER * TOGETHER + 1
    return range(max(first, shortest), max(min(first + TOGETHER - 1, longest), length) + 1)


def references_near(own: Features, kept: Tensor, padding: int, side: str, longest: int) -> tuple[Features, Tensor]:
    """A batch of the reference itself and its neighbours, and which of its tokens are their own, (references, tokens).

    Args:
        own: the reference's features as a batch of one, without padding.
        kept: which of its tokens are special or the prompt's, (tokens,) booleans.
        padding: the id of the padding token. `side`: where the tokenizer pads, "left" or "right".
        longest: the most tokens that the model takes.
    """
    count = len(kept)
    inner = (~kept).nonzero()[:, 0].tolist()
    lead = inner[0] if inner else count
    tail = count - 1 - inner[-1] if inner else 0
    lengths = lengths_near(count, lead + tail + 1, longest)
    width = lengths[-1]
    places, masks = (
        torch.zeros(len(lengths), width, dtype=torch.long),
        torch.zeros(len(lengths), width, dtype=torch.bool),
    )
    for row, length in enumerate(lengths):
        begin = width - length if side == "left" else 0
        middle = length - lead - tail
        places[row, begin : begin + length] = torch.tensor(
            [*range(lead), *[lead] * middle, *range(count - tail, count)]
        )
        masks[row, begin : begin + length] = True
    places, masks = places.to(kept.device), masks.to(kept.device)
    batch: Features = {}
    for name, value in own.items():
        if isinstance(value, Tensor) and value.ndim > 1 and value.shape[:2] == (1, count):
            batch[name] = value[0][places]
        elif isinstance(value, Tensor) and value.ndim and len(value) == 1:
            batch[name] = value.expand(len(lengths), *value.shape[1:])
        else:
            batch[name] = value
    batch["input_ids"] = torch.where(masks, batch["input_ids"], padding)
    if "attention_mask" in batch:
        batch["attention_mask"] = batch["attention_mask"] * masks
    return batch, masks
