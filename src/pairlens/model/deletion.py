"""Deletion as a game: the units of a text are players, a coalition is a text with the other units taken out.

The value of a coalition is the embedding of what is left of the text, a vector. Special tokens and the prompt are no
players: they always stay, so the empty coalition is the special tokens alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

import numpy as np

from pairlens.model.tokenize import Text
from pairlens.shapes import Array

if TYPE_CHECKING:
    from pairlens.model.encoder import Encoder


@runtime_checkable
class Games(Protocol):
    """Games over several texts, played together so that their forward passes run in batches.

    Attributes:
        players: for every text, the units that can be deleted; a coalition has a boolean for each of them.
    """

    players: list[list[int]]

    def values(self, coalitions: Sequence[Array]) -> list[Array]:
        """Embeddings of coalitions: for every text (coalitions, players) booleans in, (coalitions, dim) out."""
        ...


class TokenGames:
    """Deletion of token ids, the tokens that are left closing up.

    Args:
        encoder: the model.
        texts: texts of one role.
        labels: for every token of every text, the unit it belongs to.
        space: the embedding to take apart.
    """

    def __init__(self, encoder: Encoder, texts: Sequence[Text], labels: Sequence[Sequence[int]], space: str) -> None:
        self.encoder = encoder
        self._texts = texts
        self._space = space
        self.players: list[list[int]] = []
        self._members: list[Array] = []
        for text, row in zip(texts, labels, strict=True):
            faded = ~np.array(text.kept)
            players = sorted({unit for unit, free in zip(row, faded, strict=True) if free})
            self.players.append(players)
            self._members.append((np.array(players)[:, None] == np.array(row)) & faded)

    def values(self, coalitions: Sequence[Array]) -> list[Array]:
        """Embeddings of coalitions, one list a text."""
        rows = np.repeat(np.arange(len(coalitions)), [len(own) for own in coalitions])
        keeps = [
            ~deleted
            for own, members in zip(coalitions, self._members, strict=True)
            for deleted in (~own).astype(int) @ members > 0
        ]
        found = self.encoder.encode(self._texts, rows.tolist(), keeps, self._space)
        return np.split(found, np.cumsum([len(own) for own in coalitions])[:-1])
