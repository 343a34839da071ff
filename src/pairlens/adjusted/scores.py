"""Spearman's correlation of a model's similarities with the scores of people."""

from __future__ import annotations

from typing import Any

import numpy as np

from pairlens.adjusted.body import without_normalize
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

    modes = {module: module.training for module in model.modules()}
    texts = list(dict.fromkeys([*pairs.a, *pairs.b]))
    try:
        # The whole embeddings before a final Normalize.
        whole = with_modules(model, without_normalize(list(model.children())), truncate_dim=None)
        encoded = whole.encode(texts, batch_size=BATCH, show_progress_bar=False, convert_to_numpy=True)
    finally:
        for module, training in modes.items():
            module.training = training
    raw = encoded.astype(np.float64)
    if not np.isfinite(raw).all():
        raise NumericalError("the model's embeddings are not numbers: the training has diverged. Try a lower lr.")
    places = {text: place for place, text in enumerate(texts)}
    a, b = (raw[[places[text] for text in side]] for side in (pairs.a, pairs.b))
    dot = (a * b).sum(1)
    lengths = np.linalg.norm(a, axis=1) * np.linalg.norm(b, axis=1)
    similarities = {"cosine": dot / np.where(lengths > 0, lengths, 1.0), "dot": dot}
    correlations: dict[str, Any] = {name: spearmanr(values, pairs.scores) for name, values in similarities.items()}
    # Where all similarities are the same, the correlation is undefined, and written as 0.
    return {name: float(np.nan_to_num(correlation.statistic)) for name, correlation in correlations.items()}
