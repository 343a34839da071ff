"""Weighted Banzhaf values: the linear model that predicts random deletions best, from the values of some subsets.

Delete each unit with probability q = 1 - keep, and write the loss of a set D of deleted units as y(D) = e(whole) - e(D
deleted). The weighted Banzhaf values U are the least-squares fit y(D) ≈ Σ_{s in D} U[s] over these random sets. A
compound c, a pair of units that act together, adds the feature "both units are deleted", and so has a vector of its own
that counts only if both units stay.

Where only some sets were tried, the losses of all others are predicted by Gaussian process regression. Its kernel

    k(D, D') = ((1 + INTERACTION)^|D ∩ D'| - 1) / INTERACTION

gives every product of deletions an independent weight, smaller by the factor INTERACTION for each further unit. The
least-squares fit of the prediction has a closed form: expectations of products over units are products. Sets that were
tried enter with their measured losses, so with all sets tried the fit is exact.

The errors have their size from the posterior variance of the prediction, times the variance that leave-one-out
residuals show, and their directions from these residuals. Over seeds, estimates spread around the exact values as these
errors say (tests/subsets/test_banzhaf.py).
"""

from __future__ import annotations

import itertools
import math

import numpy as np

from pairlens import linalg
from pairlens.shapes import Array
from pairlens.subsets.fit import Fit, deletion_weights, in_sampled_size

INTERACTION = 0.3
"""The prior variance of an interaction, relative to that of one with a unit less. 0.1 to 0.8 predict about as well."""
NUGGET = 0.01
"""The part of a loss's variance that other losses cannot predict; 0.001 to 0.03 predict as well."""
MOST_PLAYERS = 40
"""Up to this many units, compounds are tried for comparison when none are asked for."""
COMPARED = 8
"""The number of compounds that are tried for comparison."""


def banzhaf(tried: Array, values: Array, keep: float, compounds: int = 0) -> Fit:
    """Weighted Banzhaf values from the values of the subsets tried.

    Args:
        tried: which players are in each subset, (tried, players), booleans; with the full one and each without one.
        values: the value of each subset, (tried, dim).
        keep: the probability that a player stays.
        compounds: the largest number of compounds; one is added while that improves the prediction of held-out sets.
    """
    regression = _Regression(tried, values, keep)
    singles = np.eye(tried.shape[1], dtype=bool)
    if compounds:
        return regression.fit(regression.with_compounds(compounds))
    fit = regression.fit(singles)
    if 3 <= len(singles) <= MOST_PLAYERS:
        members = regression.with_compounds(COMPARED)
        fit = Fit(fit.values, fit.reference, fit.predictions, fit.noise, (), regression.predictions(members))
    return fit


class _Regression:
    """The least-squares problem of one text. A feature is a set of players that are all deleted, a row of booleans."""

    def __init__(self, tried: Array, values: Array, keep: float) -> None:
        self._keep, self._delete = keep, 1 - keep
        self._players = tried.shape[1]
        self._weights = deletion_weights(tried, keep)
        self._deleted = (~tried).astype(float)
        self._whole = values[tried.all(1)][0]
        self._losses = self._whole - values
        sizes = self._deleted.sum(1)
        self._chances = self._delete**sizes * keep ** (self._players - sizes)
        self._exact = len(tried) == 2**self._players
        if not self._exact:
            self._kernel = _kernel(linalg.product(self._deleted, self._deleted.T))
            noisy = self._kernel + NUGGET * np.eye(len(tried))
            self._inverse = linalg.inverse(noisy)
            # What each loss is off from its prediction by all others.
            scales = np.diag(self._inverse)
            self._residuals = linalg.product(self._inverse, self._losses) / scales[:, None]
            sampled = in_sampled_size(tried)
            sampled = sampled if sampled.any() else sizes > 0
            self._variance = float(((self._residuals**2).sum(1) * scales)[sampled].mean())

    def fit(self, members: Array) -> Fit:
        """The fit with these features: each player alone first, then compounds."""
        weights = self._solution(members)
        change = self._to_kept(members)
        vectors = linalg.product(change, linalg.product(weights, self._losses))
        noise = None if self._exact else self._noise(members, change)
        return Fit(
            values=vectors,
            reference=self._whole - vectors.sum(0),
            predictions=self.predictions(members),
            noise=noise,
            compounds=tuple(tuple(np.flatnonzero(row).tolist()) for row in members[self._players :]),
        )

    def predictions(self, members: Array) -> Array:
        """The embeddings of the subsets tried, each as predicted by a fit that has not seen it, (tried, dim)."""
        weights, present = self._solution(members), self._present(members)
        losses = linalg.product(present, linalg.product(weights, self._losses))
        if not self._exact:
            losses -= np.einsum("tf,ft->t", present, weights)[:, None] * self._residuals
        return self._whole - losses

    def with_compounds(self, most: int) -> Array:
        """Features with up to `most` pairs of players, chosen greedily, each while held-out sets gain by it."""
        n = self._players
        pairs = list(itertools.combinations(range(n), 2))
        members = np.zeros((n + len(pairs), n), dtype=bool)
        members[range(n), range(n)] = True
        for row, pair in enumerate(pairs, start=n):
            members[row, pair] = True
        gram = self._gram(members)
        moments = linalg.product(self._moments(members), self._losses)
        chosen = list(range(n))
        error = self._held_out_error(members[chosen])
        while len(chosen) < min(n + most, len(members)):
            inside = gram[np.ix_(chosen, chosen)]
            solved = linalg.solve(inside, np.concatenate([gram[chosen], moments[chosen]], axis=1))
            left = moments - linalg.product(gram[:, chosen], solved[:, len(members) :])
            spread = np.diag(gram) - np.einsum("cf,cf->f", gram[chosen], solved[:, : len(members)])
            gains = (left**2).sum(1) / np.maximum(spread, 1e-9)
            gains[chosen] = -1.0
            candidate = [*chosen, int(gains.argmax())]
            reached = self._held_out_error(members[candidate])
            if reached >= error:
                break
            chosen, error = candidate, reached
        return members[chosen]

    def _held_out_error(self, members: Array) -> float:
        missed = self._whole - self._losses - self.predictions(members)
        return float(self._weights @ (missed**2).sum(1))

    def _solution(self, members: Array) -> Array:
        """The weights of the losses in the least-squares solution, (features, tried)."""
        return linalg.solve(self._gram(members), self._moments(members))

    def _present(self, members: Array) -> Array:
        """Whether each feature is present in each subset tried, (tried, features)."""
        return (linalg.product(self._deleted, members.T.astype(float)) == members.sum(1)).astype(float)

    def _gram(self, members: Array) -> Array:
        """The expected product of every two features, (features, features)."""
        return self._delete ** self._union(members)

    def _moments(self, members: Array) -> Array:
        """The weights of the losses in the expected product of a feature and the loss, (features, tried)."""
        known = self._chances[:, None] * self._present(members)
        if self._exact:
            return known.T
        return (known + linalg.product(self._inverse, self._unknown(members, known))).T

    def _unknown(self, members: Array, known: Array) -> Array:
        """The expected product of a feature and the kernel with each set tried, over untried sets, (tried, features)."""
        sizes, inside = members.sum(1), linalg.product(self._deleted, members.T.astype(float))
        outside = self._deleted.sum(1)[:, None] - inside
        grown = (1 + INTERACTION) ** inside * (1 + INTERACTION * self._delete) ** outside
        return self._delete**sizes * (grown - 1) / INTERACTION - linalg.product(self._kernel, known)

    def _noise(self, members: Array, change: Array) -> tuple[Array, Array]:
        """The errors of the fit: weights (tried, features) and residuals (tried, dim)."""
        known = self._chances[:, None] * self._present(members)
        unknown = self._unknown(members, known)
        transform = linalg.product(change, linalg.solve(self._gram(members), np.eye(len(members))))
        weights = linalg.product(transform, linalg.product(unknown.T, self._inverse))
        # The posterior covariance of the moments over the untried sets.
        all_sets, all_known = self._prior(members)
        known_part = linalg.product(known.T, unknown)
        prior = all_sets - known_part - known_part.T - linalg.product(known.T, linalg.product(self._kernel, known))
        prior += NUGGET * (all_known - linalg.product(known.T, known))
        posterior = prior - linalg.product(unknown.T, linalg.product(self._inverse, unknown))
        variance = np.maximum((linalg.product(transform, posterior) * transform).sum(1), 0.0).sum() * self._variance
        claimed = float((weights**2).sum(0) @ (self._residuals**2).sum(1))
        if claimed > 0:
            weights *= math.sqrt(variance / claimed)
        return weights.T, self._residuals

    def _prior(self, members: Array) -> tuple[Array, Array]:
        """Over two random sets, the expected product of two features and the kernel; and Σ chances² of both features."""
        n, q, keep = self._players, self._delete, self._keep
        union = self._union(members)
        sizes = members.sum(1)
        both = sizes[:, None] + sizes - union
        same = 1 + INTERACTION * q * q
        grown = (
            (q * q * (1 + INTERACTION)) ** both * (q * (1 + INTERACTION * q)) ** (union - both) * same ** (n - union)
        )
        expected = (grown - q ** (sizes[:, None] + sizes)) / INTERACTION
        return expected, q ** (2 * union) * (q * q + keep * keep) ** (n - union)

    def _union(self, members: Array) -> Array:
        """The number of players in every two features together, (features, features)."""
        sizes = members.sum(1).astype(float)
        return sizes[:, None] + sizes - linalg.product(members.astype(float), members.T.astype(float))

    def _to_kept(self, members: Array) -> Array:
        """From vectors of "deleted" features to vectors that count while units stay, (features, features).

        A pair that is lost once one of its units is deleted is lost with either, but not twice with both.
        """
        n = self._players
        change = np.eye(len(members))
        change[:n, n:] = members[n:].T
        change[n:, n:] *= -1
        return change


def _kernel(shared: Array) -> Array:
    """The kernel of two sets that share this many deleted players."""
    return ((1 + INTERACTION) ** shared - 1) / INTERACTION
