"""Pooling of token states: which modes a model has, and how the tokens are weighted when their gates close."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import torch
from torch import Tensor, nn

from pairlens.errors import ModelError
from pairlens.model.gates import OTHERS, Gates
from pairlens.model.tokenize import Text

AVERAGING = ("mean", "mean_sqrt_len_tokens", "weightedmean")


def pooling_modes(modules: Iterable[nn.Module]) -> str:
    """Return the names of the pooling modes, joined by +; empty where no module pools."""
    for module in modules:
        if hasattr(module, "pooling_mode"):
            mode: Any = module.pooling_mode
            return mode if isinstance(mode, str) else "+".join(mode)
        if hasattr(module, "get_pooling_mode_str"):
            return module.get_pooling_mode_str()  # pyright: ignore[reportCallIssue]
    return ""


def check_pooling(pooling: str, modules: Sequence[nn.Module], texts: Sequence[Text]) -> None:
    """Raise unless each text has tokens to pool once its own tokens have faded, so that the integral exists.

    Attention in the rows of fading tokens never makes the integral diverge: in a row that sees only gates, the weights
    change like 1/g, but the row itself is attended to and pooled with weight g.

    Args:
        pooling: the pooling modes, joined by +.
        modules: the model's modules.
        texts: the texts.

    Raises:
        ModelError: the text or the pooling cannot fade; says why.
    """
    modes = pooling.split("+")
    if "max" in modes:
        raise ModelError(f"max pooling does not weigh tokens, so they cannot fade; {OTHERS}.")
    if "weightedmean" in modes and len(modes) > 1:
        raise ModelError(f"pooling by {pooling} weighs tokens in two ways, which fading cannot; {OTHERS}.")
    excluding = any(getattr(module, "include_prompt", True) is False for module in modules)
    for text in texts:
        start = text.features.get("prompt_length", 0) if excluding else 0
        kept, tokens = text.kept[start:], text.tokens[start:]
        for mode, place in (("cls", 0), ("lasttoken", -1)):
            if mode in modes and not kept[place]:
                raise ModelError(
                    f"{mode} pooling takes {tokens[place]!r} of {text.text!r:.40}, a token of the text, which "
                    f"cannot fade: the embedding would be of nothing; {OTHERS}."
                )
        if not any(kept) and any(mode in AVERAGING for mode in modes):
            raise ModelError(
                f"no special token of {text.text!r:.40} is pooled, so that nothing is left where its tokens have "
                f"faded, and the integral diverges; {OTHERS}."
            )


def pooling_weights(gates: Gates, pooling: str, closing_up: bool) -> Tensor:
    """Return the weights that replace the attention mask in pooling, (texts, tokens)."""
    if pooling != "weightedmean":
        return gates.values
    # Pooling multiplies by a token's number, from 1, which moves up too. Only ratios matter; weights below 1 are not
    # mistaken for the first token after padding.
    numbers = torch.arange(1, gates.values.shape[1] + 1, device=gates.values.device)
    return gates.values * ((numbers + gates.moved) / numbers if closing_up else 1) / 2
