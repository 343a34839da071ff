"""Embeddings of texts of which only some units are left: the values from which Shapley values are computed.

The units of a text are the players. Special tokens and the prompt are no players: they always stay, so of the empty
subset the special tokens are left.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Protocol, runtime_checkable

import numpy as np

from pairlens.model.tokenize import Text
from pairlens.shapes import Array


@runtime_checkable
class Deletions(Protocol):
    """Deletions in several texts, embedded together so that the forward passes run in batches.

    Attributes:
        players: for every text, the units that can be deleted; a subset has a boolean for each of them.
    """

    players: list[list[int]]

    def embeddings(self, subsets: Sequence[Array]) -> list[Array]:
        """Return the embeddings of what is left: for every text, (subsets, players) booleans to (subsets, dim)."""
        ...


class TokenDeletions:
    """Deletion of token ids; the tokens that are left move together.

    Args:
        embed: takes, for every forward pass, the index of its text and which tokens stay; returns (passes, dim).
        texts: texts of one role.
        labels: for every token of every text, the unit it belongs to.
    """

    def __init__(
        self,
        embed: Callable[[Sequence[int], Sequence[Array]], Array],
        texts: Sequence[Text],
        labels: Sequence[Sequence[int]],
    ) -> None:
        self._embed = embed
        self.players: list[list[int]] = []
        self._members: list[Array] = []
        for text, row in zip(texts, labels, strict=True):
            free = ~np.array(text.kept)
            players = sorted({unit for unit, is_free in zip(row, free, strict=True) if is_free})
            self.players.append(players)
            self._members.append((np.array(players)[:, None] == np.array(row)) & free)

    def embeddings(self, subsets: Sequence[Array]) -> list[Array]:
        """Return the embeddings of what is left: for every text, (subsets, players) booleans to (subsets, dim)."""
        counts = [len(rows) for rows in subsets]
        passes = np.repeat(np.arange(len(subsets)), counts)
        keeps = [
            ~deleted
            for rows, members in zip(subsets, self._members, strict=True)
            for deleted in (~rows).astype(int) @ members > 0
        ]
        return np.split(self._embed(passes.tolist(), keeps), np.cumsum(counts)[:-1])
