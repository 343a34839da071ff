"""Other values of the literature as methods, to compare the default with; a lens does not offer them.

`LeastSquares` tries the same deletions as `Banzhaf`, and fits them by ridge regression alone. `Mixture` is the mean of
weighted Banzhaf values. The others read the same Gaussian process, kriging's, which predicts all subsets from those
tried: `KrigedLinear` as a linear model, `FaithShap` and `ShapleyTaylor` as a model with pairs of units inside a text,
which are compounds of its explanation. The Faith-Shap values of order 1 are the Shapley values; order 2 is meant here.
"""

from __future__ import annotations

import itertools
import math
from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from pairlens import linalg
from pairlens.methods.banzhaf import KEEP, Banzhaf
from pairlens.methods.sampled import Sampled
from pairlens.methods.shapley import FEWEST, MOST, PER_UNIT
from pairlens.shapes import Array, Vector
from pairlens.subsets import BalancedSampler, DeletionSampler, Fit, SubsetSampler, banzhaf, deletion_weights

RIDGE = 0.03
"""Ridge of `LeastSquares`, relative to the mean square of a feature: the best of 0.001 to 0.4 on STS-B train pairs."""
ENUMERATED = 11
"""Up to this many units, the prediction of every subset is looked at; above, of `SUBSETS` random ones."""
SUBSETS = 2048
DRAWS = 32
"""Random contexts of each pair of units in `ShapleyTaylor`, for texts with too many subsets."""


@dataclass(frozen=True, kw_only=True)
class _OtherValues(Sampled):
    """What these methods share: they fit all dimensions, and try as many subsets as `Shapley` by default."""

    def describe(self, encoder: Any, role: str | None) -> dict[str, Any]:
        """The method's own entries of a result's settings."""
        return {"layer": None, "reference": "fitted", "rule": None, "passes": self.passes, "seed": self.seed}

    def sampler(self, players: int, random: np.random.Generator) -> SubsetSampler:
        """What draws the subsets of one text."""
        return BalancedSampler(players, random)

    def budget(self, players: int, *, long: bool = False, part: bool = False) -> int:
        """The forward passes that a text of this many units gets."""
        return min(max(FEWEST, PER_UNIT * players), MOST) if self.passes is None else self.passes


@dataclass(frozen=True, kw_only=True)
class LeastSquares(_OtherValues):
    """Ridge regression through the whole text, on the deletions that `Banzhaf` tries."""

    keep: float = KEEP
    ridge: float = RIDGE
    name = "least-squares"

    def sampler(self, players: int, random: np.random.Generator) -> DeletionSampler:
        """What draws the subsets of one text."""
        return Banzhaf(keep=self.keep).sampler(players, random)

    def fit(self, tried: Array, values: Array, sizes: Array | None = None) -> Fit:
        """The linear model of the subsets tried, from their embeddings."""
        whole = values[tried.all(1)][0]
        vectors = _through_whole(tried, values, deletion_weights(tried, self.keep), whole, self.ridge)
        return _fit(tried, vectors, whole - vectors.sum(0))


@dataclass(frozen=True, kw_only=True)
class Mixture(_OtherValues):
    """The mean of weighted Banzhaf values over probabilities of staying between `low` and `high`."""

    low: float = 0.5
    high: float = 0.95
    name = "mixture"

    def sampler(self, players: int, random: np.random.Generator) -> DeletionSampler:
        """What draws the subsets of one text."""
        return DeletionSampler(players, random, (self.low + self.high) / 2 * KEEP)

    def fit(self, tried: Array, values: Array, sizes: Array | None = None) -> Fit:
        """The linear model of the subsets tried, from their embeddings."""
        nodes, weights = np.polynomial.legendre.leggauss(3)
        keeps = self.low + (nodes + 1) / 2 * (self.high - self.low)
        fits = [banzhaf(tried, values, float(keep)).values for keep in keeps]
        vectors = np.einsum("k,kpd->pd", weights / 2, np.array(fits))
        return _fit(tried, vectors, values[tried.all(1)][0] - vectors.sum(0))


@dataclass(frozen=True, kw_only=True)
class KrigedLinear(_OtherValues):
    """The linear model that is nearest to kriging's prediction of random deletions."""

    keep: float = KEEP
    name = "kriging"

    def fit(self, tried: Array, values: Array, sizes: Array | None = None) -> Fit:
        """The linear model of the subsets tried, from their embeddings."""
        kriging, n = Kriging.of(tried, values), tried.shape[1]
        if n <= ENUMERATED:
            subsets = _every_subset(n)
            kept = subsets.sum(1)
            weights = self.keep**kept * (1 - self.keep) ** (n - kept)
        else:
            subsets = np.random.default_rng(n).random((SUBSETS, n)) < self.keep
            weights = np.full(SUBSETS, 1 / SUBSETS)
        whole = values[tried.all(1)][0]
        vectors = _through_whole(subsets, kriging.predict(subsets), weights, whole, 1e-9)
        return _fit(tried, vectors, whole - vectors.sum(0))


@dataclass(frozen=True, kw_only=True)
class _WithPairs(_OtherValues):
    """Values of single units and of all pairs of units inside a text."""

    def fit(self, tried: Array, values: Array, sizes: Array | None = None) -> Fit:
        """The model with pairs of the subsets tried, from their embeddings."""
        pairs = list(itertools.combinations(range(tried.shape[1]), 2))
        empty = values[~tried.any(1)][0]
        vectors = self.values_of(Kriging.of(tried, values), pairs, values[tried.all(1)][0] - empty)
        return _fit(tried, vectors, empty, tuple(pairs))

    @abstractmethod
    def values_of(self, kriging: Kriging, pairs: list[tuple[int, int]], total: Vector) -> Array:
        """The vectors of all units, then of all pairs, (players + pairs, dim), which sum to `total`."""


@dataclass(frozen=True, kw_only=True)
class FaithShap(_WithPairs):
    """The faithful Shapley interaction index of order 2 (arXiv 2203.00870): a regression with Shapley's weights."""

    name = "faith-shap"

    def values_of(self, kriging: Kriging, pairs: list[tuple[int, int]], total: Vector) -> Array:
        """The vectors of all units, then of all pairs, (players + pairs, dim), which sum to `total`."""
        n = kriging.players
        subsets, weights = _shapley_weighted(n, max(SUBSETS, 4 * (n + len(pairs))))
        columns = np.array(pairs, dtype=int).reshape(-1, 2)
        features = np.concatenate([subsets, subsets[:, columns[:, 0]] & subsets[:, columns[:, 1]]], 1).astype(float)
        # The whole text is met exactly, so that the values add up: it has a very large weight.
        features = np.concatenate([features, np.ones((1, features.shape[1]))])
        weights = np.append(weights, 1e6)
        targets = np.concatenate([kriging.predict(subsets) - kriging.empty, total[None]])
        gram = linalg.product(features.T * weights, features)
        gram[np.diag_indices_from(gram)] += 1e-7
        return linalg.solve(gram, linalg.product(features.T * weights, targets))


@dataclass(frozen=True, kw_only=True)
class ShapleyTaylor(_WithPairs):
    """The Shapley–Taylor interaction index of order 2 (arXiv 1902.05622).

    A unit's value is what it alone adds to the empty text; a pair's is its interaction in the units that come before
    both in a random order.
    """

    name = "shapley-taylor"

    def values_of(self, kriging: Kriging, pairs: list[tuple[int, int]], total: Vector) -> Array:
        """The vectors of all units, then of all pairs, (players + pairs, dim), which sum to `total`."""
        n = kriging.players
        singles = kriging.predict(np.eye(n, dtype=bool)) - kriging.empty
        if n == 1:
            return total[None]
        random = np.random.default_rng(n)
        interactions = np.array([self._interaction(kriging, pair, random) for pair in pairs])
        interactions += (total - singles.sum(0) - interactions.sum(0)) / len(pairs)
        return np.concatenate([singles, interactions])

    def _interaction(self, kriging: Kriging, pair: tuple[int, int], random: np.random.Generator) -> Vector:
        """The mean interaction of a pair over the sets of units that come before both in a random order."""
        n = kriging.players
        if n <= ENUMERATED:
            contexts = _every_subset(n)
            contexts = contexts[~contexts[:, pair].any(1)]
            weights = 2 / (n * np.array([math.comb(n - 1, int(size)) for size in contexts.sum(1)]))
        else:
            places = random.random((DRAWS, n))
            contexts = places < places[:, pair].min(1, keepdims=True)
            weights = np.full(DRAWS, 1 / DRAWS)
        total = np.zeros(len(kriging.empty))
        for sign, members in ((1, pair), (-1, pair[:1]), (-1, pair[1:]), (1, ())):
            there = contexts.copy()
            there[:, list(members)] = True
            total += sign * (weights @ kriging.predict(there))
        return total


class Kriging(NamedTuple):
    """Kriging's prediction of the embeddings of subsets (pairlens.subsets.kriging), with known ones where tried.

    Attributes:
        tried: the subsets tried, (tried, players).
        empty: the embedding of the empty subset, (dim,).
        duals: the weights of the kernel's sections, (tried, dim).
        known: the embeddings of the subsets tried.
    """

    tried: Array
    empty: Vector
    duals: Array
    known: dict[bytes, Vector]

    @classmethod
    def of(cls, tried: Array, values: Array) -> Kriging:
        """Fit the process to the subsets tried, among them the empty one, and their embeddings."""
        ends = tried.all(1) | ~tried.any(1)
        kernel = _kernel(tried, tried) + np.diag(np.where(ends, 1e-9, 1e-3))
        empty = values[~tried.any(1)][0]
        known = {row.tobytes(): value for row, value in zip(np.ascontiguousarray(tried), values, strict=True)}
        return cls(tried, empty, linalg.solve(kernel, values - empty), known)

    @property
    def players(self) -> int:
        """The number of units."""
        return self.tried.shape[1]

    def predict(self, subsets: Array) -> Array:
        """The embeddings of subsets, (subsets, dim): those that were tried as they are, others as predicted."""
        predicted = self.empty + linalg.product(_kernel(subsets, self.tried), self.duals)
        for row, subset in enumerate(subsets):
            if (value := self.known.get(subset.tobytes())) is not None:
                predicted[row] = value
        return predicted


def _kernel(subsets: Array, others: Array) -> Array:
    """Kriging's kernel, (subsets, others)."""
    shared = linalg.product(subsets.astype(float), others.T.astype(float))
    sizes = np.sqrt(np.outer(subsets.sum(1) + 2.0, others.sum(1) + 2.0))
    return np.exp((shared + 2) / sizes - 1) + shared / 10


def _through_whole(subsets: Array, embeddings: Array, weights: Array, whole: Vector, ridge: float) -> Array:
    """The weighted least-squares fit of losses by the units that are deleted: it meets the whole text."""
    deleted = (~subsets).astype(float)
    gram = linalg.product(deleted.T * weights, deleted)
    gram[np.diag_indices_from(gram)] += ridge * max(float(np.diag(gram).mean()), 1e-12)
    return linalg.solve(gram, linalg.product(deleted.T * weights, whole - embeddings))


def _fit(tried: Array, vectors: Array, reference: Vector, compounds: tuple[tuple[int, ...], ...] = ()) -> Fit:
    """A fit with these vectors, without errors; its predictions are the model's own, which the judge does not read."""
    n = tried.shape[1]
    return Fit(vectors, reference, reference + tried @ vectors[:n], compounds=compounds)


def _every_subset(n: int) -> Array:
    return (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)


def _shapley_weighted(n: int, most: int) -> tuple[Array, Array]:
    """Subsets that are neither empty nor whole, with Shapley's weights: all of them, or at most so many random ones."""
    if n <= ENUMERATED:
        subsets = _every_subset(n)[1:-1]
        sizes = subsets.sum(1)
        return subsets, np.array([(n - 1) / (math.comb(n, int(size)) * size * (n - size)) for size in sizes])
    random = np.random.default_rng(n)
    sizes = np.arange(1, n)
    chances = 1 / (sizes * (n - sizes))
    drawn = random.choice(sizes, most, p=chances / chances.sum())
    places = random.random((most, n)).argsort(1).argsort(1)
    return places < drawn[:, None], np.full(most, 1 / most)
