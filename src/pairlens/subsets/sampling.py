"""Which subsets of a text's units to try: complementary pairs, spread evenly over all sizes, none of them twice."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterator
from typing import Any

import numpy as np

from pairlens.shapes import Array


def allot(n: int, pairs: int) -> dict[int, int]:
    """How many complementary pairs to try of every size up to n/2: evenly, but no more than there are.

    Example:
        >>> allot(6, 20)
        {1: 6, 2: 10, 3: 4}
    """
    room = {size: math.comb(n, size) // (2 if 2 * size == n else 1) for size in range(1, n // 2 + 1)}
    share = {size: 1 if 2 * size == n else 2 for size in room}
    given = dict.fromkeys(room, 0)
    for _ in range(min(pairs, sum(room.values()))):
        # The neediest size next; the middle stands for one size where the others stand for two.
        open_sizes = [size for size in room if given[size] < room[size]]
        given[min(open_sizes, key=lambda size: ((given[size] + 1) / share[size], size))] += 1
    return {size: count for size, count in given.items() if count}


def draw(n: int, size: int, count: int, known: dict[bytes, None], random: np.random.Generator) -> Array:
    """New sets of a size, none of them known or complementary to a known one; every player about equally often."""
    possible = math.comb(n, size) // (2 if 2 * size == n else 1)
    candidates = _all_sets(n, size) if len(known) + count >= possible else _random_sets(n, size, random)
    drawn: list[Array] = []
    while len(drawn) < count and (candidate := next(candidates, None)) is not None:
        if 2 * size == n and not candidate[0]:
            candidate = ~candidate
        if candidate.tobytes() not in known:
            known[candidate.tobytes()] = None
            drawn.append(candidate)
    return np.array(drawn, dtype=bool).reshape(-1, n)


def _all_sets(n: int, size: int) -> Iterator[Array]:
    for members in itertools.combinations(range(n), size):
        yield _as_set(n, list(members))


def _random_sets(n: int, size: int, random: np.random.Generator) -> Iterator[Array]:
    """Permutations cut into blocks, so that every player comes once before any comes again."""
    while True:
        order = random.permutation(n)
        for start in range(0, n - size + 1, size):
            yield _as_set(n, order[start : start + size])


def _as_set(n: int, members: Any) -> Array:
    chosen = np.zeros(n, dtype=bool)
    chosen[members] = True
    return chosen
