"""The yardstick: Shapley values of real deletions, known well enough to judge others by."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from pairlens.attribution.contributions import Contributions
from pairlens.lens import Lens
from pairlens.shapes import Array
from pairlens.study.faithfulness.deletions import Deletions
from pairlens.study.statistics import spearman
from pairlens.subsets import SubsetSampler, every_subset, exact, kriged

EXACT = 2048
"""A text with no more subsets of units than this is solved by going through all of them."""
AGREEMENT = 0.97
FIRST_PASSES, MOST_PASSES = 256, 4096
GROWTH = 1.5
"""Passes are kept from one try to the next, so small steps only cost the solving."""
SEEDS = 1, 2


@dataclass(frozen=True)
class Yardstick:
    """Shapley values of a pair.

    Attributes:
        matrix: over pairs of text units, as reference_terms="project" has it, (text units of a, of b).
        agreement: Spearman of two independent runs, of which `matrix` is the mean; 1 where it is exact.
        passes: forward passes that each run spent on a text; 0 where both texts are exact.
        exact: whether both texts were gone through in full.
    """

    matrix: Array
    agreement: float | None
    passes: int
    exact: bool


def measure_pair(lens: Lens, a: Deletions, b: Deletions, measure: str, *, exact: int = EXACT) -> Yardstick:
    """The yardstick of a pair: exact where that is cheap, else two runs that must agree.

    Args:
        lens: the model.
        a: one text. `b`: the other.
        measure: "cosine" or "dot".
        exact: the most subsets of units that are gone through.
    """
    runs = [(Run(a, seed, exact), Run(b, seed, exact)) for seed in SEEDS]
    passes = FIRST_PASSES
    while True:
        first, second = (_matrix(lens, one.solve(passes), other.solve(passes), measure) for one, other in runs)
        done = all(run.exact(passes) for run in runs[0])
        agreement = 1.0 if done else spearman(first, second)
        if agreement is None or agreement >= AGREEMENT or passes >= MOST_PASSES:
            return Yardstick((first + second) / 2, agreement, 0 if done else passes, done)
        passes = int(GROWTH * passes)


class Run:
    """Shapley values of one text from ever more subsets of its units, as `pairlens.Shapley` has them.

    What one run has tried, the other need not try again: the two differ where there are too many subsets to try all.

    Args:
        side: the text.
        seed: which subsets are tried.
        limit: the most subsets of units that are gone through.
    """

    def __init__(self, side: Deletions, seed: int, limit: int = EXACT) -> None:
        self.side = side
        self.limit = limit
        random = np.random.default_rng([seed, zlib.crc32(side.text.text.encode())])
        self._sampler = SubsetSampler(side.count, random)

    def exact(self, passes: int) -> bool:
        """Whether all subsets are tried."""
        return 2**self.side.count <= max(self.limit, passes)

    def solve(self, passes: int) -> Contributions:
        """The values after about so many forward passes in all."""
        if self.exact(passes):
            return solve(self.side)
        self._sampler.grow(passes)
        tried = self._sampler.tried
        return _contributions(self.side, kriged(tried, self.side.embed(tried)).values)


def solve(side: Deletions) -> Contributions:
    """Exact Shapley values of a text, from the embeddings of all its subsets."""
    members = every_subset(side.count)
    return _contributions(side, exact(members, side.embed(members)).values)


def _contributions(side: Deletions, shares: Array) -> Contributions:
    """Contributions of a text whose units have these values, (units that can be deleted, dim)."""
    reference, embedding = side.embed(np.array([[False], [True]]).repeat(side.count, 1))
    values = np.zeros((len(side.units), len(embedding)))
    values[side.units] = shares
    miss = np.linalg.norm(values.sum(0) - embedding + reference)
    return Contributions(
        text=side.text.text,
        units=side.text.units,
        tokens=side.text.tokens,
        values=values,
        error=np.zeros(len(values)),
        reference=reference,
        embedding=embedding,
        output=side.encoder.outputs([side.text])[0].astype(np.float64),
        gap=float(miss / max(float(np.linalg.norm(embedding - reference)), 1e-12)),
        settings={
            "model": side.encoder.name,
            "fingerprint": side.encoder.fingerprint,
            "method": "shapley",
            "reference": "empty",
            "space": side.space,
            "level": "token",
        },
    )


def _matrix(lens: Lens, a: Contributions, b: Contributions, measure: str) -> Array:
    """The matrix over text units."""
    e = lens.compare(a, b, reference_terms="project", measure=measure)
    rows, columns = (np.array([unit.kind == "text" for unit in units]) for units in (e.units_a, e.units_b))
    return e.matrix[np.ix_(rows, columns)]
