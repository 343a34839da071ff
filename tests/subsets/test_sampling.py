"""Which subsets are tried."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pairlens.subsets.sampling import allot, draw


@given(n=st.integers(2, 40), pairs=st.integers(1, 200))
def test_pairs_are_spread_evenly_and_never_more_than_there_are(n, pairs):
    shares = allot(n, pairs)
    room = {size: math.comb(n, size) // (2 if 2 * size == n else 1) for size in range(1, n // 2 + 1)}
    assert sum(shares.values()) == min(pairs, sum(room.values()))
    assert all(0 < count <= room[size] for size, count in shares.items())
    free = [shares.get(size, 0) / (1 if 2 * size == n else 2) for size in room if shares.get(size, 0) < room[size]]
    assert max(free, default=0) - min(free, default=0) <= 1


@given(n=st.integers(2, 12), seed=st.integers(0, 99), data=st.data())
def test_no_set_is_drawn_twice_nor_with_its_complement(n, seed, data):
    size = data.draw(st.integers(1, n // 2))
    possible = math.comb(n, size) // (2 if 2 * size == n else 1)
    count = data.draw(st.integers(1, possible))
    known: dict[bytes, None] = {}
    random = np.random.default_rng(seed)
    drawn = np.concatenate([draw(n, size, count // 2, known, random), draw(n, size, count - count // 2, known, random)])
    assert (drawn.sum(1) == size).all()
    both = {row.tobytes() for row in np.concatenate([drawn, ~drawn])}
    assert len(both) == 2 * count
