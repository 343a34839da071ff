"""Spearman's correlation of a model's similarities with the scores of people."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from pairlens.adjusted.data import ScoredPairs
from pairlens.errors import NumericalError
from pairlens.model.loading import with_modules

BATCH = 64


def measure_scores(model: Any, pairs: ScoredPairs) -> dict[str, float]:
    """Return Spearman's correlation of a model's similarities with the scores, by cosine and by dot product.

    The embeddings are those before a final Normalize, after which the two would be the same. The model keeps its mode.

    Args:
        model: a SentenceTransformer.
        pairs: the scored pairs.
    """
    from scipy.stats import spearmanr

    modules = list(model.children())
    while len(modules) > 1 and type(modules[-1]).__name__ == "Normalize":
        modules.pop()
    modes = {module: module.training for module in model.modules()}
    texts = list(dict.fromkeys([*pairs.a, *pairs.b]))
    try:
        raw = _encode(model, modules, texts)
    finally:
        for module, training in modes.items():
            module.training = training
    if not np.isfinite(raw).all():
        raise NumericalError("the model's embeddings are not numbers: the training has diverged. Try a lower lr.")
    places = {text: place for place, text in enumerate(texts)}
    a, b = (raw[[places[text] for text in side]] for side in (pairs.a, pairs.b))
    dot = (a * b).sum(1)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    similarities = {"cosine": dot / np.where(lengths > 0, lengths, 1.0), "dot": dot}
    ranked: dict[str, Any] = {name: spearmanr(values, pairs.scores) for name, values in similarities.items()}
    return {name: _finite(float(result.statistic)) for name, result in ranked.items()}


def _encode(model: Any, modules: list[nn.Module], texts: list[str]) -> np.ndarray:
    """Return the texts' whole embeddings by the modules, (texts, dim)."""
    whole = with_modules(model, modules, truncate_dim=None)
    return whole.encode(texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True).astype(np.float64)


def _finite(value: float) -> float:
    """Return the correlation, and 0 where it is undefined: all similarities are the same."""
    return value if np.isfinite(value) else 0.0
