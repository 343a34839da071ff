"""The embeddings of a text with units deleted. Every subset of units is embedded once, and cached."""

from __future__ import annotations

import numpy as np

from pairlens.attribution import Explanation, space_for
from pairlens.model import Encoder, Text
from pairlens.shapes import Array, Matrix, Vector


class DeletableText:
    """One text whose text units can be deleted: their token ids are removed, and the positions close up.

    Special tokens and the prompt always stay, so the empty subset of units is the special tokens alone.

    Args:
        encoder: the model.
        text: the text.
        measure: "cosine" or "dot"; it decides which embedding is computed.

    Attributes:
        units: which units of the text can be deleted, (units,) booleans.
    """

    def __init__(self, encoder: Encoder, text: Text, measure: str) -> None:
        self.encoder = encoder
        self.text = text
        self.space = encoder.space(text.role, space_for("project", measure))
        self.units = np.array([unit.kind == "text" for unit in text.units])
        self._embeddings: dict[bytes, Array] = {}

    @property
    def count(self) -> int:
        """The number of units that can be deleted."""
        return int(self.units.sum())

    def embed(self, subsets: Array) -> Array:
        """Embeddings of the text with only some of its units left, (subsets, dim).

        Args:
            subsets: which of the deletable units are left, (subsets, count), booleans.
        """
        keys = [row.tobytes() for row in subsets]
        missing = {key: row for key, row in zip(keys, subsets, strict=True) if key not in self._embeddings}
        if missing:
            keeps = np.ones((len(missing), len(self.units)), dtype=bool)
            keeps[:, self.units] = list(missing.values())
            embeddings = self.encoder.encode([self.text], [0] * len(keeps), list(keeps), self.space)
            self._embeddings.update(zip(missing, embeddings, strict=True))
        return np.stack([self._embeddings[key] for key in keys])

    def whole(self) -> Vector:
        """The embedding of the whole text, (dim,)."""
        return self.embed(np.ones((1, self.count), dtype=bool))[0]

    def without_each(self) -> Array:
        """The embeddings of the text without each unit in turn, (count, dim)."""
        return self.embed(~np.eye(self.count, dtype=bool))


def text_matrix(e: Explanation, a: DeletableText, b: DeletableText) -> Matrix:
    """An explanation's matrix without special tokens and prompts, (text units of a, of b)."""
    return e.matrix[np.ix_(a.units, b.units)]
