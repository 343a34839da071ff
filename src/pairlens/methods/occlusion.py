"""Leave one out: the change of the embedding when one unit is deleted. The cheapest method."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens import progress
from pairlens.methods.base import Batch, Decomposition, Method, Trials
from pairlens.quadrature import Rule


@dataclass(frozen=True)
class Occlusion(Method):
    """U[s] = e(x) - e(x without s), around the reference e(x) - Σ U.

    With reference_terms="keep", a unit's whole effect is exactly what the score loses without it. What several units
    do together is counted twice or not at all.
    """

    name = "occlusion"
    deletes = True

    def describe(self, encoder: Any, role: str | None) -> dict[str, Any]:
        """The method's own entries of a result's settings."""
        return {"layer": None, "reference": "fitted", "rule": None}

    def decompose(self, encoder: Any, batch: Batch, rule: Rule) -> list[Decomposition]:
        """One decomposition per text of the batch; `rule` is ignored."""
        deletions = encoder.deletions(batch.texts, batch.labels, batch.space)
        subsets = [
            np.concatenate([np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool)]) for n in map(len, deletions.players)
        ]
        with progress.share(0, 0.9):
            embeddings_by_text = deletions.embeddings(subsets)
        with progress.share(0.9, 1):
            outputs = encoder.outputs(batch.texts)
        decompositions = []
        columns = zip(subsets, embeddings_by_text, deletions.players, batch.counts, outputs, strict=True)
        for tried, embeddings, players, count, output in columns:
            embedding, without = embeddings[0], embeddings[1:]
            values = embedding - without
            decomposition = Decomposition(
                values=values,
                error=np.zeros(len(values)),
                reference=embedding - values.sum(0),
                embedding=embedding,
                output=output,
                gap=0.0,
                nodes=len(embeddings),
                trials=Trials(tried, embeddings),
            )
            decompositions.append(decomposition.expand(players, count))
        return decompositions
