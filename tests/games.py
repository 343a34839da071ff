"""Games of known values: set functions, and Shapley values straight from the definition."""

from __future__ import annotations

import itertools
import math

import numpy as np

from pairlens.subsets import BalancedSampler


def subsets(n: int) -> np.ndarray:
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)


def by_permutations(tried: np.ndarray, values: np.ndarray) -> np.ndarray:
    """The definition: what each player adds, averaged over all orders."""
    n = tried.shape[1]
    place = {row.tobytes(): i for i, row in enumerate(tried)}
    shares = np.zeros((n, values.shape[1]))
    for order in itertools.permutations(range(n)):
        present = np.zeros(n, dtype=bool)
        for player in order:
            before = values[place[present.tobytes()]]
            present[player] = True
            shares[player] += values[place[present.tobytes()]] - before
    return shares / math.factorial(n)


def random_game(n: int, dim: int, seed: int):
    """A smooth set function of the kind an encoder is: tokens look at each other and are pooled."""
    random = np.random.default_rng(seed)
    vectors = random.normal(size=(n + 2, dim))
    mixing = random.normal(size=(dim, dim)) / math.sqrt(dim)
    scores = random.normal(size=(n + 2, n + 2))

    def game(tried: np.ndarray) -> np.ndarray:
        present = np.concatenate([tried, np.ones((len(tried), 2), dtype=bool)], axis=1).astype(float)
        attention = np.exp(scores) * present[:, None, :]
        attention /= attention.sum(-1, keepdims=True)
        states = vectors + np.tanh(attention @ vectors @ mixing)
        pooled = (states * present[:, :, None]).sum(1) / present.sum(1, keepdims=True)
        return pooled / np.linalg.norm(pooled, axis=1, keepdims=True)

    return game


def sample(n: int, passes: int, seed: int) -> np.ndarray:
    """Return the subsets that a sampler tries for this budget."""
    return BalancedSampler(n, np.random.default_rng(seed)).grow(passes)
