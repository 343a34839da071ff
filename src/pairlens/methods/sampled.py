"""What Banzhaf and Shapley share: both fit a linear model to the embeddings of some subsets of a text's units."""

from __future__ import annotations

import zlib
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np

from pairlens import progress
from pairlens.errors import InputError, NotConverged, whole
from pairlens.linalg import length
from pairlens.methods.base import Batch, Decomposition, Method, Trials
from pairlens.quadrature import Rule
from pairlens.shapes import Array
from pairlens.subsets import Fit, SubsetSampler

LONG = 8
"""From this many tokens per unit on, a forward pass counts as long. Sentences reach it."""
MOST_PASSES = 8192
"""The most subsets tried to reach `error`: an estimate inverts a matrix with this many rows and columns."""


@dataclass(frozen=True, kw_only=True)
class Sampled(Method):
    """A method that tries subsets of a text's units, up to a budget or until its standard errors are small.

    Attributes:
        seed: decides which subsets are tried.
        passes: forward passes per text; a text with fewer subsets is solved exactly.
        error: try more subsets until every unit's standard error is at most this, relative to the norm of
            embedding - reference.
    """

    seed: int = 0
    passes: int | None = None
    error: float | None = None
    deletes = True

    def __post_init__(self) -> None:
        kind = type(self).__name__
        if self.passes is not None:
            whole(f"{kind}'s passes", self.passes, 4)
        whole(f"{kind}'s seed", self.seed, 0)
        error = self.error
        if error is not None and (isinstance(error, bool) or not isinstance(error, int | float) or not 0 < error < 1):
            raise InputError(f"{kind}'s error must lie between 0 and 1, for example 0.02; it is {error!r}.")

    @abstractmethod
    def sampler(self, players: int, random: np.random.Generator) -> SubsetSampler:
        """What draws the subsets of one text."""

    @abstractmethod
    def fit(self, tried: Array, values: Array, sizes: Array | None = None) -> Fit:
        """The linear model of the subsets tried.

        Args:
            tried: the subsets, (tried, players), booleans.
            values: their embeddings, (tried, dim).
            sizes: the tokens of each player, if they are a part of the text; None if they are all of it.
        """

    @abstractmethod
    def budget(self, players: int, *, long: bool = False, part: bool = False) -> int:
        """The forward passes that a text of this many units gets.

        Args:
            players: the number of units.
            long: whether a pass takes long for their number.
            part: whether the units are only a part of the text.
        """

    def with_passes(self, passes: int | None) -> Self:
        """The same method with another budget of forward passes; None is its default budget."""
        return replace(self, passes=passes)

    def decompose(self, encoder: Any, batch: Batch, rule: Rule) -> list[Decomposition]:
        """One decomposition per text of the batch; `rule` is ignored. `nodes` counts forward passes."""
        deletions = encoder.deletions(batch.texts, batch.labels, batch.space)
        estimates = [
            _Estimate(self, text.text, sizes, part=fixed > 0)
            for text, sizes, fixed in zip(batch.texts, deletions.sizes, deletions.fixed, strict=True)
        ]
        budgets = [
            self.budget(len(sizes), long=sizes.sum() >= LONG * len(sizes), part=fixed > 0)
            for sizes, fixed in zip(deletions.sizes, deletions.fixed, strict=True)
        ]
        unfinished = list(range(len(estimates)))
        reached, until = 0.0, 0.9 if self.error is None else 0.5
        while unfinished:
            subsets = [
                estimate.sampler.grow(budget) if i in unfinished else estimate.sampler.tried[:0]
                for i, (estimate, budget) in enumerate(zip(estimates, budgets, strict=True))
            ]
            with progress.share(reached, until):
                embeddings = deletions.embeddings(subsets)
            for i in unfinished:
                estimates[i].learn(embeddings[i])
                progress.report(until)
            reached, until = until, (until + 0.9) / 2
            unfinished = [i for i in unfinished if not estimates[i].is_precise()]
            budgets = [2 * budget for budget in budgets]
        if encoder.space(batch.role, "output", path=False) == batch.space:
            outputs = [estimate.embedding for estimate in estimates]
        else:
            with progress.share(0.9, 1):
                outputs = encoder.outputs(batch.texts)
        return [
            estimate.decomposition(output).expand(players, count)
            for estimate, output, players, count in zip(
                estimates, outputs, deletions.players, batch.counts, strict=True
            )
        ]


class _Estimate:
    """The linear model of one text, from the embeddings of the subsets tried so far."""

    fit: Fit

    def __init__(self, method: Sampled, text: str, sizes: Array, *, part: bool) -> None:
        self._method = method
        self._text = text
        self._sizes = sizes if part else None
        # Seeded by the text, so that a result does not depend on the other texts of the batch.
        random = np.random.default_rng(zlib.crc32(text.encode()) ^ method.seed * 2654435761 % 2**32)
        self.sampler = method.sampler(len(sizes), random)
        self._embeddings = np.zeros((0, 0))

    def learn(self, embeddings: Array) -> None:
        """Add the embeddings of the subsets drawn last, and fit again."""
        if len(embeddings):
            self._embeddings = np.concatenate([self._embeddings.reshape(-1, embeddings.shape[1]), embeddings])
            self.fit = self._method.fit(self.sampler.tried, self._embeddings, self._sizes)

    def is_precise(self) -> bool:
        """Whether the standard errors are small enough; raises where that would take more than `MOST_PASSES`."""
        wanted, error = self._method.error, self.fit.error
        if wanted is None or not error.any():
            return True
        size = length(self.embedding - self.fit.reference)
        reached, passes = float(error.max()) / size if size else 0.0, len(self.sampler.tried)
        if reached <= wanted:
            return True
        if 2 * passes > MOST_PASSES:
            raise NotConverged(
                f"the standard error of {self._text!r:.60} is {reached:.1e} after {passes} forward passes, and "
                f"{wanted:.0e} was asked for. What helps: ask for less (error={reached * 1.2:.0e}), or for a "
                "coarser level.",
                gap=reached,
                tol=wanted,
            )
        return False

    def decomposition(self, output: Array) -> Decomposition:
        """The result, with the model's own output for the text."""
        fit, embedding = self.fit, self.embedding
        size = length(embedding - fit.reference)
        return Decomposition(
            values=fit.values,
            error=fit.error,
            reference=fit.reference,
            embedding=embedding,
            output=output,
            gap=length(fit.reference + fit.values.sum(0) - embedding) / size if size else 0.0,
            nodes=len(self.sampler.tried),
            noise=fit.noise,
            trials=Trials(self.sampler.tried, self._embeddings, fit.predictions, fit.compound_predictions),
            compounds=fit.compounds,
        )

    @property
    def embedding(self) -> Array:
        """The embedding of the whole text."""
        return self._embeddings[self.sampler.tried.all(1)][0]
