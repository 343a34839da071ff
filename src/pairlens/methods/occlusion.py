"""Leave one out: the change of the embedding when one unit is deleted. The cheapest method, and not complete."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens import progress
from pairlens.linalg import length
from pairlens.methods.base import Batch, Decomposition, Method
from pairlens.quadrature import Rule


@dataclass(frozen=True)
class Occlusion(Method):
    """U[s] = e(x) - e(x without s).

    Joint effects of several units are counted twice or not at all, so the values do not add up; `gap` says by how much.
    """

    name = "occlusion"
    deletes = True

    def describe(self, encoder: Any, role: str | None) -> dict[str, Any]:
        """The method's own entries of a result's settings."""
        return {"layer": None, "reference": "empty", "rule": None}

    def decompose(self, encoder: Any, batch: Batch, rule: Rule) -> list[Decomposition]:
        """One decomposition per text of the batch; `rule` is ignored."""
        deletions = encoder.deletions(batch.texts, batch.labels, batch.space)
        subsets = [
            np.concatenate([np.zeros((1, n), dtype=bool), np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool)])
            for n in map(len, deletions.players)
        ]
        with progress.share(0, 0.9):
            embeddings_by_text = deletions.embeddings(subsets)
        with progress.share(0.9, 1):
            outputs = encoder.outputs(batch.texts)
        decompositions = []
        columns = zip(embeddings_by_text, deletions.players, batch.counts, outputs, strict=True)
        for embeddings, players, count, output in columns:
            reference, embedding, without = embeddings[0], embeddings[1], embeddings[2:]
            values = embedding - without
            total = embedding - reference
            size = length(total)
            decomposition = Decomposition(
                values=values,
                error=np.zeros(len(values)),
                reference=reference,
                embedding=embedding,
                output=output,
                gap=length(values.sum(0) - total) / size if size else 0.0,
                nodes=len(embeddings),
            )
            decompositions.append(decomposition.expand(players, count))
        return decompositions
