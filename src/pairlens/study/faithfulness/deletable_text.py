"""The embeddings of a text with units deleted. Every subset of units is embedded once, and cached."""

from __future__ import annotations

import numpy as np

from pairlens.attribution import space_for
from pairlens.model import Encoder, Text
from pairlens.shapes import Array, Vector
from pairlens.text import group


class DeletableText:
    """One text whose units can be deleted: their token ids are removed, and the positions close up.

    Special tokens and the prompt always stay, so the empty subset of units is the special tokens alone.

    Args:
        encoder: the model.
        text: the text.
        measure: "cosine" or "dot"; it decides which embedding is computed.
        level: "token" or "word", what a unit is.

    Attributes:
        units: all units of the text at this level.
        players: the indices of the units that can be deleted, (count,).
    """

    def __init__(self, encoder: Encoder, text: Text, measure: str, level: str) -> None:
        self.encoder = encoder
        self.text = text
        self.level = level
        self.space = encoder.space(text.role, space_for("keep", measure))
        self.units, labels = group(text.text, text.units, level, finest=True)
        self._deletions = encoder.deletions([text], [labels], self.space)
        self.players = np.array(self._deletions.players[0], dtype=int)
        self._embeddings: dict[bytes, Array] = {}

    @property
    def count(self) -> int:
        """The number of units that can be deleted."""
        return len(self.players)

    def embed(self, subsets: Array) -> Array:
        """Embeddings of the text with only some of its units left, (subsets, dim).

        Args:
            subsets: which of the deletable units are left, (subsets, count), booleans.
        """
        keys = [row.tobytes() for row in subsets]
        missing = {key: row for key, row in zip(keys, subsets, strict=True) if key not in self._embeddings}
        if missing:
            embeddings = self._deletions.embeddings([np.array(list(missing.values()))])[0]
            self._embeddings.update(zip(missing, embeddings, strict=True))
        return np.stack([self._embeddings[key] for key in keys])

    def whole(self) -> Vector:
        """The embedding of the whole text, (dim,)."""
        return self.embed(np.ones((1, self.count), dtype=bool))[0]

    def without_each(self) -> Array:
        """The embeddings of the text without each unit in turn, (count, dim)."""
        return self.embed(~np.eye(self.count, dtype=bool))
