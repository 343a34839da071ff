"""A kernel for what deletions do to the rest of a text: it moves up by the number of deleted tokens.

Where words are deleted inside one sentence of a long text, every later token gets another position. Deletions of
equally many tokens move the rest equally far, whichever words they are. In abstracts this is most of what deleting a
short word does. The kernel is a squared exponential in the number of deleted tokens, zero where nothing is deleted:

    k(D, D') = f(t - t') - f(t) - f(t') + 1,  f(x) = exp(-x² / 2 FAR²),  t and t' the tokens of D and D'

The number of tokens of a random set is a sum of independent numbers, so the expectations have a closed form.
"""

from __future__ import annotations

import functools

import numpy as np

from pairlens import linalg
from pairlens.shapes import Array

FAR = 3.0
"""Moves that differ by more than this many tokens have little in common. Of 2, 3, 6 and 20, 3 predicts best."""


class Closing:
    """The kernel for one text, and its expectations over random deletions.

    Args:
        sizes: the tokens of each player, (players,).
        delete: the probability that a player is deleted.
        members: features, (features, players), booleans: each is present where all of its players are deleted.
    """

    def __init__(self, sizes: Array, delete: float, members: Array) -> None:
        self._sizes = np.asarray(sizes, dtype=int)
        self._delete = delete
        self._members = members

    def between(self, deleted: Array) -> Array:
        """The kernel of sets of deleted players, (sets, sets); `deleted` is (sets, players), 0 and 1."""
        moved = self._moved(deleted)
        return _kernel(moved, moved)

    def with_features(self, deleted: Array) -> Array:
        """The expected product of each feature and the kernel with each set, (sets, features)."""
        return linalg.product(_kernel(self._moved(deleted), self._counts), self._chances.T)

    @functools.cached_property
    def of_features(self) -> Array:
        """The expected product of two features, one of each of two random sets, and their kernel."""
        return linalg.product(self._chances, linalg.product(_kernel(self._counts, self._counts), self._chances.T))

    @functools.cached_property
    def _counts(self) -> Array:
        return np.arange(self._sizes.sum() + 1, dtype=float)

    @functools.cached_property
    def _chances(self) -> Array:
        """The probability of each feature together with each number of deleted tokens, (features, counts)."""
        chances = np.zeros((len(self._members), len(self._counts)))
        chances[:, 0] = 1.0
        for size, inside in zip(self._sizes, self._members.T, strict=True):
            longer = np.zeros_like(chances)
            longer[:, size:] = chances[:, : len(self._counts) - size]
            chances = self._delete * longer + (1 - self._delete) * ~inside[:, None] * chances
        return chances

    def _moved(self, deleted: Array) -> Array:
        return linalg.product(deleted.astype(float), self._sizes[:, None].astype(float))[:, 0]


def _kernel(one: Array, other: Array) -> Array:
    """The kernel of two lists of numbers of deleted tokens."""

    def near(distance: Array) -> Array:
        return np.exp(-(distance**2) / (2 * FAR**2))

    return near(one[:, None] - other) - near(one)[:, None] - near(other) + 1
