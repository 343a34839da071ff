"""The shares of players in a game: Shapley values, and semivalues near them, from the values of all subsets.

A player's share is what the player adds to a random subset of the others, averaged over the subset's size. If all
sizes have the same probability, the share is the Shapley value. Here the size may follow a Beta(near, 1) distribution
(Kwon and Zou 2022): for near > 1, large subsets count more, that is deletions of few units from the whole text. Such
shares do not add up to the whole. The remainder is divided in proportion to the norms of the shares, so a player that
never changes anything still has a share of zero.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pairlens.shapes import Array, PerUnit, Values


@dataclass(frozen=True)
class Shares:
    """What every player contributes, and the errors of the estimates as independent draws.

    Attributes:
        values: one vector per player, (players, dim).
        noise: weights (draws, players) and residuals (draws, dim); None where every subset was tried.
    """

    values: Values
    noise: tuple[Array, Array] | None = None

    @property
    def error(self) -> PerUnit:
        """The standard error of each player's vector, as a norm, (players,)."""
        if self.noise is None:
            return np.zeros(len(self.values))
        return np.sqrt(squared_errors(*self.noise))


def squared_errors(weights: Array, residuals: Array) -> Array:
    """The squared standard error of each player's vector, (players,), from the draws of `Shares.noise`."""
    return (weights**2).T @ (residuals**2).sum(1)


def size_weights(n: int, near: float) -> Array:
    """The probability of each size of the subset that a player joins, (n,); uniform for near = 1.

    Example:
        >>> size_weights(4, 1.0), size_weights(4, 2.0)
        (array([0.25, 0.25, 0.25, 0.25]), array([0.1, 0.2, 0.3, 0.4]))
    """
    logs = np.array([math.lgamma(size + near) - math.lgamma(size + 1) for size in range(n)])
    weights = np.exp(logs - logs.max())
    return weights / weights.sum()


def exact(subsets: Array, values: Array, near: float = 1.0) -> Shares:
    """Shares from the values of all subsets.

    Args:
        subsets: which players are in each subset, (2ⁿ, players), booleans.
        values: the value of each subset, (2ⁿ, dim).
        near: the first parameter of the Beta distribution of sizes; 1 gives Shapley values.
    """
    n = subsets.shape[1]
    sizes = subsets.sum(1)
    weight = size_weights(n, near) / np.array([math.comb(n - 1, size) for size in range(n)])
    with_player = np.where(sizes > 0, weight[sizes - 1], 0.0)[:, None]
    without_player = np.where(sizes < n, weight[np.minimum(sizes, n - 1)], 0.0)[:, None]
    shares = np.where(subsets, with_player, -without_player).T @ values
    return Shares(complete(shares, sizes, values))


def complete(shares: Array, sizes: Array, values: Array) -> Array:
    """The shares plus their parts of the remainder, so that they add up; for near = 1 it is a rounding error.

    Args:
        shares: one vector per player, (players, dim).
        sizes: the sizes of the subsets tried, (tried,), with the empty and the full one.
        values: their values, (tried, dim).
    """
    total = values[sizes == len(shares)][0] - values[sizes == 0][0]
    return shares + np.outer(remainder_parts(shares), total - shares.sum(0))


def remainder_parts(shares: Array) -> Array:
    """The part of the remainder that each share takes, in proportion to its norm, (players,), summing to one."""
    norms = np.linalg.norm(shares, axis=1)
    return norms / norms.sum() if norms.any() else np.full(len(norms), 1 / len(norms))
