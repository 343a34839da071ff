"""Which subsets are tried."""

from __future__ import annotations

import math

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from pairlens.subsets.sampling import DeletionSampler, allot, draw


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


@given(n=st.integers(1, 24), passes=st.integers(4, 120), seed=st.integers(0, 99), keep=st.floats(0.05, 0.95))
def test_deletions_begin_with_each_unit_alone_and_none_is_drawn_twice(n, passes, seed, keep):
    sampler = DeletionSampler(n, np.random.default_rng(seed), keep)
    first = sampler.grow(passes)
    more = sampler.grow(2 * passes)
    assert len(first) == min(2**n, max(passes, n + 1))
    assert len(first) + len(more) == min(2**n, max(2 * passes, len(first)))
    assert len({row.tobytes() for row in sampler.tried}) == len(sampler.tried)
    assert (first.sum(1) >= n - 1).sum() == n + 1  # the whole text and each deletion of one unit


def test_sizes_of_deletions_follow_their_probabilities():
    n, keep, passes = 30, 0.64, 400
    drawn = DeletionSampler(n, np.random.default_rng(0), keep).grow(passes)[n + 1 :]
    sizes = (~drawn).sum(1)
    assert abs(sizes.mean() - n * (1 - keep)) < 0.1
    assert abs(sizes.std() - math.sqrt(n * keep * (1 - keep))) < 0.2
    counts = (~drawn).sum(0)
    assert counts.max() < 1.3 * counts.min()
