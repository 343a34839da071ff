"""Make a plain model an adjusted one, without training."""

from __future__ import annotations

from typing import Any

from pairlens.adjusted.body import without_normalize
from pairlens.adjusted.module import Adjusted
from pairlens.model.loading import with_modules


def wrap(model: Any) -> Any:
    """Return the adjusted form of a SentenceTransformer: its modules inside one that shifts them, then any Normalize.

    Example:
        >>> from pairlens import Lens
        >>> from pairlens.model.loading import load
        >>> e = Lens(wrap(load(None, "cpu")[0])).explain("A cat.", "A dog.", layer=6)
        >>> e.base, float(abs(e.effects_a).sum() + abs(e.effects_b).sum()), bool(abs(e.gap) < 1e-3)
        (0.0, 0.0, True)
    """
    modules = list(model.children())
    body = without_normalize(modules)
    return with_modules(model, [Adjusted(body), *modules[len(body) :]])
