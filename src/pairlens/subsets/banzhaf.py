"""Weighted Banzhaf values: the linear model that predicts random deletions best, from the values of some subsets.

Delete each unit with probability q = 1 - keep, and call y(D) = e(whole) - e(D deleted) the loss of a set D of deleted
units. The weighted Banzhaf values U are the least-squares fit y(D) ≈ Σ_{s in D} U[s] over these random sets. A
compound, a pair of units that act together, adds the feature "both units are deleted". Its vector counts only if both
units stay.

Where only some sets were tried, Gaussian process regression predicts the losses of all others. Its kernel is

    k(D, D') = ((1 + i)^|D ∩ D'| - 1) / i + FREE |features in both| + closing term

The first term gives every product of deletions a weight of its own, whose prior variance is smaller by the factor i for
each further unit. The second term leaves the weights of the fitted features free, so that a text whose words add up is
recovered exactly. The third term is there if only a part of the text can be deleted (closing.py). The least-squares fit
of the prediction has a closed form, because the expectation of a product of independent deletions is a product. Sets
that were tried enter with their measured losses: with all sets tried the fit is exact. Texts differ in how much their
words interact and in what no other set can predict, so i, the nugget and the weight of the closing term are those with
the smallest error on held-out sets.

Errors have their size from the posterior variance of the prediction, times the variance that leave-one-out residuals
show, and their directions from these residuals.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pairlens import linalg
from pairlens.shapes import Array
from pairlens.subsets.closing import Closing
from pairlens.subsets.fit import Fit, deletion_weights, in_sampled_size

INTERACTIONS = (0.3, 0.1, 0.03, 0.01)
"""Prior variances of an interaction, relative to that of an interaction with one unit less."""
NUGGETS = (0.01, 0.1, 1.0)
"""Parts of a loss's variance that other losses cannot predict, in units of a single word's variance."""
CLOSINGS = (0.0, 1.0, 4.0, 16.0)
"""Weights of the closing term, in units of a single word's variance."""
LARGEST = 1e6
"""The largest interaction term of the kernel that leaves the inverse enough digits."""
FREE = 1e4
"""The prior variance of a fitted feature: so large that it is not shrunk, small enough for the inverse's digits."""
MOST_PLAYERS = 40
"""Up to this many units, compounds are tried for comparison when none are asked for, and all pairs can be compounds."""
WORTH = 0.02
"""The part of the error on held-out sets that a compound must remove to be added."""
COMPARED = 8
"""The number of compounds that are tried for comparison."""


def banzhaf(tried: Array, values: Array, keep: float, compounds: int = 0, sizes: Array | None = None) -> Fit:
    """Weighted Banzhaf values from the values of the subsets tried.

    Args:
        tried: which players are in each subset, (tried, players), booleans; with the full one and each without one.
        values: the value of each subset, (tried, dim).
        keep: the probability that a player stays.
        compounds: the largest number of compounds; one is added while it helps to predict held-out sets.
        sizes: the tokens of each player, if the text goes on after the players; None if they are the whole text.
    """
    n = tried.shape[1]
    plain = _Regression(tried, values, keep, np.eye(n, dtype=bool), sizes)
    if compounds:
        return _Regression(tried, values, keep, plain.with_compounds(compounds), sizes, plain.prior).fit()
    fit = plain.fit()
    if sizes is not None or not 3 <= n <= MOST_PLAYERS:
        return fit
    richer = _Regression(tried, values, keep, plain.with_compounds(COMPARED), sizes, plain.prior)
    return replace(fit, compound_predictions=richer.predictions())


class _Prior(NamedTuple):
    """What the Gaussian process assumes before any set was tried.

    Attributes:
        interaction: the prior variance of an interaction, relative to that of one with a unit less.
        nugget: the part of a loss's variance that other losses cannot predict.
        closing: the weight of the closing term.
    """

    interaction: float
    nugget: float
    closing: float = 0.0


class _Regression:
    """The least-squares problem of one text.

    Args:
        tried: the subsets tried, (tried, players), booleans.
        values: their values, (tried, dim).
        keep: the probability that a player stays.
        members: the features, (features, players), booleans: each is a set of players, present where all of them are
            deleted. Each player alone comes first, then compounds.
        tokens: those of each player, for the closing term; None for no such term.
        prior: the prior; None for the one with the smallest error on held-out sets.
    """

    def __init__(
        self,
        tried: Array,
        values: Array,
        keep: float,
        members: Array,
        tokens: Array | None,
        prior: _Prior | None = None,
    ) -> None:
        self._keep, self._delete, self._tokens = keep, 1 - keep, tokens
        self._players = tried.shape[1]
        self._members = members
        self._weights = deletion_weights(tried, keep)
        self._deleted = (~tried).astype(float)
        self._whole = values[tried.all(1)][0]
        self._losses = self._whole - values
        sizes = self._deleted.sum(1)
        self._chances = self._delete**sizes * keep ** (self._players - sizes)
        self._exact = len(tried) == 2**self._players
        self._present = self._presence(members)
        self.prior = prior or _Prior(INTERACTIONS[0], NUGGETS[0])
        if not self._exact:
            self.prior = prior or self._best_prior()
            self._kernel, self._inverse = self._process(self.prior)
            # What each loss is off from its prediction by all others.
            self._residuals = linalg.product(self._inverse, self._losses) / np.diag(self._inverse)[:, None]
            sampled = in_sampled_size(tried)
            sampled = sampled if sampled.any() else sizes > 0
            squares = (self._residuals**2).sum(1) * np.diag(self._inverse)
            self._variance = float(squares[sampled].mean())
        gram = self._gram(members, members)
        self._inverse_gram = linalg.inverse(gram)
        self._solution = linalg.product(self._inverse_gram, self._moments(members))  # weights of the losses

    def _process(self, prior: _Prior) -> tuple[Array, Array]:
        """The kernel of the sets tried under a prior, and its inverse with the nugget, (tried, tried)."""
        kernel = ((1 + prior.interaction) ** linalg.product(self._deleted, self._deleted.T) - 1) / prior.interaction
        kernel += FREE * linalg.product(self._present, self._present.T)
        if prior.closing:
            kernel += prior.closing * self._closing(self._members).between(self._deleted)
        return kernel, linalg.inverse(kernel + prior.nugget * np.eye(len(kernel)))

    def _best_prior(self) -> _Prior:
        """The prior with the smallest error on held-out sets."""
        largest, products = self._deleted.sum(1).max(), linalg.product(self._losses, self._losses.T)
        errors: dict[_Prior, float] = {}
        closings = (0.0,) if self._tokens is None else CLOSINGS
        for prior in itertools.starmap(_Prior, itertools.product(INTERACTIONS, NUGGETS, closings)):
            if (1 + prior.interaction) ** largest <= LARGEST or prior.interaction == INTERACTIONS[-1]:
                inverse = self._process(prior)[1]
                squares = (linalg.product(inverse, products) * inverse).sum(1) / np.diag(inverse) ** 2
                errors[prior] = float(self._weights @ squares)
        return min(errors, key=errors.__getitem__)

    def fit(self) -> Fit:
        """The least-squares fit."""
        change = self._to_kept()
        vectors = linalg.product(change, linalg.product(self._solution, self._losses))
        return Fit(
            values=vectors,
            reference=self._whole - vectors.sum(0),
            predictions=self.predictions(),
            noise=None if self._exact else self._noise(change),
            compounds=tuple(tuple(np.flatnonzero(row).tolist()) for row in self._members[self._players :]),
        )

    def predictions(self) -> Array:
        """The embeddings of the subsets tried, each as predicted by a fit that has not seen it, (tried, dim)."""
        losses = linalg.product(self._present, linalg.product(self._solution, self._losses))
        if not self._exact:
            losses -= np.einsum("tf,ft->t", self._present, self._solution)[:, None] * self._residuals
        return self._whole - losses

    def with_compounds(self, most: int) -> Array:
        """The features with up to `most` more pairs of players, each the one that explains most of what is left.

        A pair is added while it removes enough of the error on held-out sets. In long texts only pairs of players that
        are near each other are looked at.
        """
        n = self._players
        reach = MOST_PLAYERS**2 // n
        pairs = [(i, j) for i, j in itertools.combinations(range(n), 2) if j - i <= reach]
        members = np.zeros((n + len(pairs), n), dtype=bool)
        members[:n] = self._members
        for row, pair in enumerate(pairs, start=n):
            members[row, pair] = True
        moments = linalg.product(self._moments(members), self._losses)
        variances = self._delete ** members.sum(1)
        chosen = list(range(n))
        error = self._held_out_error(members[chosen])
        while len(chosen) < min(n + most, len(members)):
            gram = self._gram(members[chosen], members)
            solved = linalg.solve(gram[:, chosen], np.concatenate([gram, moments[chosen]], axis=1))
            left = moments - linalg.product(gram.T, solved[:, len(members) :])
            spread = variances - np.einsum("fc,fc->c", gram, solved[:, : len(members)])
            gains = (left**2).sum(1) / np.maximum(spread, 1e-9)
            gains[chosen] = -1.0
            candidate = [*chosen, int(gains.argmax())]
            reached = self._held_out_error(members[candidate])
            if reached > (1 - WORTH) * error:
                break
            chosen, error = candidate, reached
        return members[chosen]

    def _held_out_error(self, members: Array) -> float:
        """The squared error of predictions with these features, over random deletions."""
        present = self._presence(members)
        solution = linalg.solve(self._gram(members, members), self._moments(members))
        missed = self._losses - linalg.product(present, linalg.product(solution, self._losses))
        if not self._exact:
            missed += np.einsum("tf,ft->t", present, solution)[:, None] * self._residuals
        return float(self._weights @ (missed**2).sum(1))

    def _presence(self, members: Array) -> Array:
        """Whether each feature is present in each subset tried, (tried, features)."""
        return (linalg.product(self._deleted, members.T.astype(float)) == members.sum(1)).astype(float)

    def _gram(self, one: Array, other: Array) -> Array:
        """The expected products of features, (one, other)."""
        return self._delete ** _union(one, other)

    def _moments(self, members: Array) -> Array:
        """The weights of the losses in the expected product of a feature and the loss, (features, tried)."""
        known = self._chances[:, None] * self._presence(members)
        if self._exact:
            return known.T
        return (known + linalg.product(self._inverse, self._unknown(members, known))).T

    def _unknown(self, members: Array, known: Array) -> Array:
        """The expected product of each feature and the kernel with each set tried, over untried sets."""
        sizes, inside = members.sum(1), linalg.product(self._deleted, members.T.astype(float))
        outside = self._deleted.sum(1)[:, None] - inside
        interaction = self.prior.interaction
        grown = (1 + interaction) ** inside * (1 + interaction * self._delete) ** outside
        expected = self._delete**sizes * (grown - 1) / interaction
        expected += FREE * linalg.product(self._present, self._gram(self._members, members))
        if self.prior.closing:
            expected += self.prior.closing * self._closing(members).with_features(self._deleted)
        return expected - linalg.product(self._kernel, known)

    def _noise(self, change: Array) -> tuple[Array, Array]:
        """The errors of the fit: weights (tried, features) and residuals (tried, dim)."""
        known = self._chances[:, None] * self._present
        unknown = self._unknown(self._members, known)
        transform = linalg.product(change, self._inverse_gram)
        weights = linalg.product(transform, linalg.product(unknown.T, self._inverse))
        # The posterior covariance of the moments over the untried sets.
        all_sets, all_known = self._prior()
        known_part = linalg.product(known.T, unknown)
        prior = all_sets - known_part - known_part.T - linalg.product(known.T, linalg.product(self._kernel, known))
        prior += self.prior.nugget * (all_known - linalg.product(known.T, known))
        posterior = prior - linalg.product(unknown.T, linalg.product(self._inverse, unknown))
        variance = np.maximum((linalg.product(transform, posterior) * transform).sum(1), 0.0).sum() * self._variance
        claimed = float((weights**2).sum(0) @ (self._residuals**2).sum(1))
        if claimed > 0:
            weights *= math.sqrt(variance / claimed)
        return weights.T, self._residuals

    def _prior(self) -> tuple[Array, Array]:
        """The expected product of two features, one of each of two random sets, and the kernel of these sets.

        And the sum of squared chances of all sets that have both features.
        """
        n, q, keep = self._players, self._delete, self._keep
        sizes = self._members.sum(1)
        union = _union(self._members, self._members)
        both, gram = sizes[:, None] + sizes - union, self._gram(self._members, self._members)
        i = self.prior.interaction
        grown = (q * q * (1 + i)) ** both * (q * (1 + i * q)) ** (union - both) * (1 + i * q * q) ** (n - union)
        expected = (grown - q ** (sizes[:, None] + sizes)) / i + FREE * linalg.product(gram, gram)
        if self.prior.closing:
            expected += self.prior.closing * self._closing(self._members).of_features
        return expected, q ** (2 * union) * (q * q + keep * keep) ** (n - union)

    def _closing(self, members: Array) -> Closing:
        """The closing term for some features."""
        assert self._tokens is not None
        return Closing(self._tokens, self._delete, members)

    def _to_kept(self) -> Array:
        """From vectors of "deleted" features to vectors that count while units stay, (features, features).

        A pair that is lost once one of its units is deleted is lost with either, but not twice with both.
        """
        n = self._players
        change = np.eye(len(self._members))
        change[:n, n:] = self._members[n:].T
        change[n:, n:] *= -1
        return change


def _union(one: Array, other: Array) -> Array:
    """The number of players in one feature or the other, (one, other)."""
    shared = linalg.product(one.astype(float), other.T.astype(float))
    return one.sum(1)[:, None] + other.sum(1) - shared
