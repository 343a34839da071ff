"""From a plain model to its adjusted self."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from torch import nn

from pairlens.adjusted.module import Adjusted


def wrap(model: Any) -> Any:
    """A SentenceTransformer's adjusted self: the same modules, in one that shifts them, then a final Normalize, if any.

    Example:
        >>> from pairlens import Lens
        >>> from pairlens.loading import load
        >>> e = Lens(wrap(load(None, "cpu")[0])).explain("A cat.", "A dog.", layer=6)
        >>> e.base, float(abs(e.effects_a).sum() + abs(e.effects_b).sum()), bool(abs(e.gap) < 1e-3)
        (0.0, 0.0, True)
    """
    body = list(model.children())
    ending: list[nn.Module] = []
    while len(body) > 1 and type(body[-1]).__name__ == "Normalize":
        ending.insert(0, body.pop())
    return rebuilt(model, [Adjusted(body), *ending])


def rebuilt(model: Any, modules: Sequence[nn.Module], **settings: Any) -> Any:
    """A SentenceTransformer of other modules, with a given one's prompts, measure, truncation and device."""
    from sentence_transformers import SentenceTransformer

    names = ("prompts", "default_prompt_name", "similarity_fn_name", "truncate_dim")
    own: dict[str, Any] = {name: getattr(model, name) for name in names} | settings
    return SentenceTransformer(modules=list(modules), device=str(model.device), **own)
