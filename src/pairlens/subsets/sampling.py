"""Which subsets of a text's units to try."""

from __future__ import annotations

import itertools
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator
from typing import Any

import numpy as np

from pairlens.shapes import Array

GOLDEN = (math.sqrt(5) - 1) / 2
"""The step of the low-discrepancy sequence."""


class SubsetSampler(ABC):
    """Draws subsets of a text's units, more at every call and none twice.

    A subset is a row of booleans: which units stay.

    Args:
        players: how many units can be deleted.
        random: the random generator.

    Attributes:
        tried: all subsets returned so far, (tried, players).
    """

    def __init__(self, players: int, random: np.random.Generator) -> None:
        self.players = players
        self.tried = np.zeros((0, players), dtype=bool)
        self._random = random

    @property
    def exhausted(self) -> bool:
        """Whether every subset was tried."""
        return self.players < 20 and len(self.tried) == 2**self.players

    def grow(self, passes: int) -> Array:
        """New subsets, so that about `passes` are tried in all; the rest of all 2ⁿ where there are no more."""
        n = self.players
        if 2**n <= max(passes, 2):
            tried = {row.tobytes() for row in self.tried}
            fresh = np.array([row for row in every_subset(n) if row.tobytes() not in tried], dtype=bool).reshape(-1, n)
        else:
            fresh = self._draw(passes)
        self.tried = np.concatenate([self.tried, fresh])
        return fresh

    @abstractmethod
    def _draw(self, passes: int) -> Array:
        """New subsets, so that about `passes` are tried in all."""


class BalancedSampler(SubsetSampler):
    """Draws complementary pairs, spread evenly over all sizes; the empty and the full subset come first."""

    def __init__(self, players: int, random: np.random.Generator) -> None:
        super().__init__(players, random)
        self._drawn_by_size: dict[int, dict[bytes, None]] = {}

    def _draw(self, passes: int) -> Array:
        n = self.players
        parts = [] if len(self.tried) else [np.zeros((1, n), dtype=bool), np.ones((1, n), dtype=bool)]
        for size, pairs in allot(n, max(1, passes // 2 - 1)).items():
            known = self._drawn_by_size.setdefault(size, {})
            drawn = draw(n, size, pairs - len(known), known, self._random)
            parts += [drawn, ~drawn]
        return np.concatenate(parts)


class DeletionSampler(SubsetSampler):
    """Draws random deletions that keep each unit with a given probability.

    The whole text and all deletions of a single unit come first, whatever the budget. The numbers of deleted units
    follow their probabilities as evenly as a low-discrepancy sequence allows.

    Args:
        players: how many units can be deleted.
        random: the random generator.
        keep: the probability that a unit stays.
    """

    def __init__(self, players: int, random: np.random.Generator, keep: float) -> None:
        super().__init__(players, random)
        sizes = np.arange(2, players + 1)
        logs = np.array([math.lgamma(players + 1) - math.lgamma(k + 1) - math.lgamma(players - k + 1) for k in sizes])
        logs += sizes * math.log1p(-keep) + (players - sizes) * math.log(keep)
        self._cumulative = np.cumsum(np.exp(logs - logs.max(initial=0.0)))
        self._position = random.random()
        self._room = {int(size): math.comb(players, size) for size in sizes}
        self._candidates: dict[int, Iterator[Array]] = {}
        self._known: set[bytes] = set()

    def _draw(self, passes: int) -> Array:
        n = self.players
        fresh = [] if len(self.tried) else [np.ones(n, dtype=bool), *~np.eye(n, dtype=bool)]
        while len(self.tried) + len(fresh) < passes:
            self._position = (self._position + GOLDEN) % 1
            size = 2 + int(np.searchsorted(self._cumulative, self._position * self._cumulative[-1]))
            fresh.append(self._new(min((s for s in self._room if self._room[s]), key=lambda s: abs(s - size))))
        return np.array(fresh, dtype=bool).reshape(-1, n)

    def _new(self, size: int) -> Array:
        """A new subset that lacks `size` units."""
        self._room[size] -= 1
        candidates = self._candidates.setdefault(size, _random_of_size(self.players, size, self._random))
        while (deleted := next(candidates)).tobytes() in self._known:
            pass
        self._known.add(deleted.tobytes())
        return ~deleted


def every_subset(n: int) -> Array:
    """All subsets of n units, (2ⁿ, n)."""
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)


def allot(n: int, pairs: int) -> dict[int, int]:
    """The number of complementary pairs to try of every size up to n/2: even, but at most as many as exist.

    Example:
        >>> allot(6, 20)
        {1: 6, 2: 10, 3: 4}
    """
    room = {size: math.comb(n, size) // (2 if 2 * size == n else 1) for size in range(1, n // 2 + 1)}
    share = {size: 1 if 2 * size == n else 2 for size in room}
    given = dict.fromkeys(room, 0)
    for _ in range(min(pairs, sum(room.values()))):
        # The size with the fewest pairs comes next. A pair of size n/2 has one size, all other pairs have two.
        open_sizes = [size for size in room if given[size] < room[size]]
        given[min(open_sizes, key=lambda size: ((given[size] + 1) / share[size], size))] += 1
    return {size: count for size, count in given.items() if count}


def draw(n: int, size: int, count: int, known: dict[bytes, None], random: np.random.Generator) -> Array:
    """New subsets of one size, (count, n), none known or complementary to a known one; adds them to `known`.

    Every player is drawn about equally often.
    """
    possible = math.comb(n, size) // (2 if 2 * size == n else 1)
    candidates = _all_of_size(n, size) if len(known) + count >= possible else _random_of_size(n, size, random)
    drawn: list[Array] = []
    while len(drawn) < count and (candidate := next(candidates, None)) is not None:
        if 2 * size == n and not candidate[0]:
            candidate = ~candidate
        if candidate.tobytes() not in known:
            known[candidate.tobytes()] = None
            drawn.append(candidate)
    return np.array(drawn, dtype=bool).reshape(-1, n)


def _all_of_size(n: int, size: int) -> Iterator[Array]:
    for members in itertools.combinations(range(n), size):
        yield _row(n, list(members))


def _random_of_size(n: int, size: int, random: np.random.Generator) -> Iterator[Array]:
    """Permutations cut into blocks, so that every player is drawn once before any is drawn again."""
    while True:
        order = random.permutation(n)
        for start in range(0, n - size + 1, size):
            yield _row(n, order[start : start + size])


def _row(n: int, members: Any) -> Array:
    chosen = np.zeros(n, dtype=bool)
    chosen[members] = True
    return chosen
