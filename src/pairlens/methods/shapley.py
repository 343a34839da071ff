"""Shapley values of real deletions, for every dimension of the embedding at once.

The value of unit s is what s adds to the embedding, averaged over all orders in which the units could be added. A text
of n units has 2ⁿ subsets. Where these are too many, some are tried and the values of the rest are predicted (the room
`subsets`). With `near` above 1, subsets that miss few units count more than subsets of few units.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairlens import progress
from pairlens.errors import InputError, NotConverged, whole
from pairlens.linalg import length
from pairlens.methods.base import Batch, Decomposition, Method
from pairlens.quadrature import Rule
from pairlens.shapes import Array
from pairlens.subsets import Shares, SubsetSampler, solve

FEWEST, PER_UNIT, MOST = 160, 8, 400
"""Subsets tried by default: 8 per unit, between 160 and 400. The average subset lacks half of the tokens, so a text
costs less than 250 full forward passes, and a pair of sentences of 15 tokens half a second on two cores."""
NEAR, MOST_NEAR = 1.5, 1000
"""The default of a lens, and the largest value allowed. With 1.5 instead of 1, a unit's whole effect agrees better with
leaving the unit out, and an entry of the matrix with deleting both units (docs/faithfulness.md)."""
MOST_PASSES = 8192
"""The most subsets tried to reach `error`: the prediction inverts a matrix with this many rows and columns."""


@dataclass(frozen=True)
class Shapley(Method):
    """Shapley values of deletions: complete, exact for short texts, else with standard errors.

    Attributes:
        permutations: spend as many forward passes as this many permutations, n each; excludes `passes`.
        seed: decides which subsets are tried.
        passes: forward passes per text, at least 4; by default 8 per unit, between 160 and 400. A text with fewer
            subsets is solved exactly.
        near: how much more deletions from the whole text count than deletions from a few words. 1 gives Shapley
            values; with 2 the probability of a subset's size grows linearly with it; large values approach leaving
            one unit out.
        error: try more subsets until every unit's standard error is at most this, relative to the norm of
            embedding - reference.
    """

    permutations: int | None = None
    seed: int = 0
    passes: int | None = None
    near: float = 1.0
    error: float | None = None
    name = "shapley"
    deletes = True

    def __post_init__(self) -> None:
        if self.permutations is not None and self.passes is not None:
            raise InputError("permutations and passes say the same thing twice: give one of them.")
        for name, fewest in (("permutations", 1), ("passes", 4)):
            if getattr(self, name) is not None:
                whole(f"Shapley's {name}", getattr(self, name), fewest)
        whole("Shapley's seed", self.seed, 0)
        near, error = self.near, self.error
        if isinstance(near, bool) or not isinstance(near, int | float) or not 1 <= near <= MOST_NEAR:
            raise InputError(f"Shapley's near must lie between 1 and {MOST_NEAR}, for example 1.5; it is {near!r}.")
        if error is not None and (isinstance(error, bool) or not isinstance(error, int | float) or not 0 < error < 1):
            raise InputError(f"Shapley's error must lie between 0 and 1, for example 0.02; it is {error!r}.")

    def describe(self, encoder: Any, role: str | None) -> dict[str, Any]:
        """The method's own entries of a result's settings."""
        options = {"permutations": self.permutations, "passes": self.passes, "error": self.error}
        given = {name: value for name, value in options.items() if value is not None}
        given |= {"near": self.near} if self.near != 1 else {}
        return {"layer": None, "reference": "empty", "rule": None, **given, "seed": self.seed}

    def with_passes(self, passes: int | None) -> Shapley:
        """The same method with another budget of forward passes; None keeps that of `permutations`, if any."""
        return replace(self, passes=passes, permutations=self.permutations if passes is None else None)

    def decompose(self, encoder: Any, batch: Batch, rule: Rule) -> list[Decomposition]:
        """One decomposition per text of the batch; `rule` is ignored. `nodes` counts forward passes."""
        deletions = encoder.deletions(batch.texts, batch.labels, batch.space)
        estimates = [
            _Estimate(text.text, len(players), self.near, self.seed)
            for text, players in zip(batch.texts, deletions.players, strict=True)
        ]
        budgets = [self._budget(len(players)) for players in deletions.players]
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
            unfinished = [i for i in unfinished if not self._is_precise(estimates[i])]
            budgets = [2 * budget for budget in budgets]
        with progress.share(0.9, 1):
            outputs = encoder.outputs(batch.texts)
        return [
            estimate.decomposition(output).expand(players, count)
            for estimate, output, players, count in zip(
                estimates, outputs, deletions.players, batch.counts, strict=True
            )
        ]

    def _budget(self, players: int) -> int:
        if self.permutations is not None:
            return self.permutations * players
        return min(max(FEWEST, PER_UNIT * players), MOST) if self.passes is None else self.passes

    def _is_precise(self, estimate: _Estimate) -> bool:
        """Whether the standard errors are small enough; raises where that would take more than `MOST_PASSES`."""
        error = estimate.shares.error
        if self.error is None or not error.any():
            return True
        reached, passes = float(error.max()) / length(estimate.total), len(estimate.sampler.tried)
        if reached <= self.error:
            return True
        if 2 * passes > MOST_PASSES:
            raise NotConverged(
                f"the standard error of {estimate.text!r:.60} is {reached:.1e} after {passes} forward passes, and "
                f"{self.error:.0e} was asked for. What helps: ask for less (error={reached * 1.2:.0e}), or for a "
                "coarser level.",
                gap=reached,
                tol=self.error,
            )
        return False


class _Estimate:
    """Shapley values of one text's units, from the embeddings of the subsets tried so far."""

    shares: Shares

    def __init__(self, text: str, players: int, near: float, seed: int) -> None:
        self.text = text
        # Seeded by the text, so that a result does not depend on the other texts of the batch.
        random = np.random.default_rng(zlib.crc32(text.encode()) ^ seed * 2654435761 % 2**32)
        self.sampler = SubsetSampler(players, random)
        self._near = near
        self._embeddings = np.zeros((0, 0))

    def learn(self, embeddings: Array) -> None:
        """Add the embeddings of the subsets drawn last, and estimate the shares again."""
        if len(embeddings):
            self._embeddings = np.concatenate([self._embeddings.reshape(-1, embeddings.shape[1]), embeddings])
            self.shares = solve(self.sampler.tried, self._embeddings, self._near)

    @property
    def total(self) -> Array:
        """What the units contribute together, (dim,)."""
        return self._at(self.sampler.players) - self._at(0)

    def decomposition(self, output: Array) -> Decomposition:
        """The result, with the model's own output for the text."""
        size = length(self.total)
        return Decomposition(
            values=self.shares.values,
            error=self.shares.error,
            reference=self._at(0),
            embedding=self._at(self.sampler.players),
            output=output,
            gap=length(self.shares.values.sum(0) - self.total) / size if size else 0.0,
            nodes=len(self.sampler.tried),
            noise=self.shares.noise,
        )

    def _at(self, size: int) -> Array:
        """The embedding of the empty subset, or of the whole text."""
        return self._embeddings[self.sampler.tried.sum(1) == size][0]
