"""How well a model's similarities order pairs as people do."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch import nn

from pairlens.adjusted.data import ScoredPairs
from pairlens.adjusted.wrapping import rebuilt
from pairlens.errors import NumericalError

BATCH = 64


def measure_scores(model: Any, pairs: ScoredPairs) -> dict[str, float]:
    """Spearman's correlation of a model's similarities with the scores, by cosine and by dot product.

    The embeddings are those before a final Normalize, as after it the two are one. The model is left in its mode.

    Args:
        model: a SentenceTransformer.
        pairs: what to measure it by.
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
    sizes = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    found = {"cosine": dot / np.where(sizes > 0, sizes, 1.0), "dot": dot}
    ranked: dict[str, Any] = {name: spearmanr(own, pairs.scores) for name, own in found.items()}
    return {name: _finite(float(own.statistic)) for name, own in ranked.items()}


def _encode(model: Any, modules: list[nn.Module], texts: list[str]) -> np.ndarray:
    whole = rebuilt(model, modules, truncate_dim=None)
    return whole.encode(texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True).astype(np.float64)


def _finite(value: float) -> float:
    """A model that finds all pairs equally similar orders nothing."""
    return value if np.isfinite(value) else 0.0
