"""Shapley values from the values of all subsets.

A player's Shapley value is what the player adds to a random subset of the others, averaged over the subset's size, all
sizes with the same probability.
"""

from __future__ import annotations

import math

import numpy as np

from pairlens.shapes import Array
from pairlens.subsets.fit import Fit


def exact_shapley(tried: Array, values: Array) -> Fit:
    """Shapley values from the values of all subsets.

    Args:
        tried: which players are in each subset, (2ⁿ, players), booleans.
        values: the value of each subset, (2ⁿ, dim).
    """
    n = tried.shape[1]
    sizes = tried.sum(1)
    weight = 1 / (n * np.array([math.comb(n - 1, size) for size in range(n)]))
    with_player = np.where(sizes > 0, weight[sizes - 1], 0.0)[:, None]
    without_player = np.where(sizes < n, weight[np.minimum(sizes, n - 1)], 0.0)[:, None]
    shares = np.where(tried, with_player, -without_player).T @ values
    reference = values[sizes == 0][0]
    return Fit(shares, reference, reference + tried @ shares)
