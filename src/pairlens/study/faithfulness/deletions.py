"""What the model says of a text when units of it are really deleted; everything that was asked once is remembered."""

from __future__ import annotations

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.attribution.treatments import space_for
from pairlens.model.encoder import Encoder
from pairlens.model.tokenize import Text
from pairlens.shapes import Array


class Deletions:
    """One text whose text units can be deleted: their token ids go, the positions close up.

    Special tokens and the prompt always stay, so that with every unit deleted they stand alone.

    Args:
        encoder: the model.
        text: the text.
        measure: "cosine" or "dot", which says what embedding is meant.
    """

    def __init__(self, encoder: Encoder, text: Text, measure: str) -> None:
        self.encoder = encoder
        self.text = text
        self.space = encoder.space(text.role, space_for("project", measure))
        self.units = np.array([unit.kind == "text" for unit in text.units])
        self._known: dict[bytes, Array] = {}

    @property
    def count(self) -> int:
        """How many units can be deleted."""
        return int(self.units.sum())

    def embed(self, coalitions: Array) -> Array:
        """Embeddings of the text with only some units left, (coalitions, dim).

        Args:
            coalitions: which units are left, (coalitions, units), booleans.
        """
        keys = [row.tobytes() for row in coalitions]
        missing = {key: row for key, row in zip(keys, coalitions, strict=True) if key not in self._known}
        if missing:
            keeps = []
            for row in missing.values():
                keep = np.ones(len(self.units), dtype=bool)
                keep[self.units] = row
                keeps.append(keep)
            found = self.encoder.encode([self.text], [0] * len(keeps), keeps, self.space)
            self._known.update(zip(missing, found, strict=True))
        return np.stack([self._known[key] for key in keys])

    def whole(self) -> Array:
        """The embedding of the whole text, (dim,)."""
        return self.embed(np.ones((1, self.count), dtype=bool))[0]


def of_text(e: Explanation, a: Deletions, b: Deletions) -> Array:
    """An explanation's matrix without special tokens and prompts, (text units of a, of b)."""
    return e.matrix[np.ix_(a.units, b.units)]
