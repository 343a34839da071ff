"""Leave one out: what the embedding loses when a unit is deleted. Cheapest, and not complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens import progress
from pairlens.model.tokenize import Text
from pairlens.quadrature.integrate import Integral
from pairlens.quadrature.rules import Rule
from pairlens.shapes import Array


@dataclass(frozen=True)
class Occlusion:
    """U[s] = e(x) - e(x without s). What the units do together is counted twice or not at all; `gap` says how much."""

    name = "occlusion"

    def describe(self, encoder: Any, role: str | None) -> dict[str, Any]:
        """What of this method belongs into a result's settings."""
        return {"layer": None, "reference": "empty", "rule": None}

    def decompose(
        self,
        encoder: Any,
        texts: Sequence[Text],
        labels: Sequence[Sequence[int]],
        counts: Sequence[int],
        *,
        space: str,
        rule: Rule,
    ) -> list[tuple[Integral, Array]]:
        """Contributions of groups of tokens, for texts of one role; `rule` is for integrals and not used here."""
        games = encoder.games(texts, labels, space)
        asked = [
            np.concatenate([np.zeros((1, n), dtype=bool), np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool)])
            for n in map(len, games.players)
        ]
        found = []
        with progress.share(0, 0.9):
            played = games.values(asked)
        for embeddings, players, count in zip(played, games.players, counts, strict=True):
            reference, embedding, without = embeddings[0], embeddings[1], embeddings[2:]
            values = np.zeros((count, embeddings.shape[1]))
            values[players] = embedding - without
            total = embedding - reference
            size = float(np.linalg.norm(total))
            gap = float(np.linalg.norm(values.sum(0) - total)) / size if size else 0.0
            found.append(Integral(values, np.zeros(count), reference, embedding, gap=gap, nodes=len(embeddings)))
        with progress.share(0.9, 1):
            outputs = encoder.outputs(texts)
        return list(zip(found, outputs, strict=True))
