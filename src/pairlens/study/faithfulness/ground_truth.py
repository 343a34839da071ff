"""Shapley values of deletions, precise enough to compare candidates with; summary.json calls them the yardstick."""

from __future__ import annotations

import zlib
from dataclasses import dataclass

import numpy as np

from pairlens.attribution import Contributions
from pairlens.lens import Lens
from pairlens.shapes import Array, Matrix
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.study.faithfulness.score_model import ScoreModel
from pairlens.study.statistics import spearman
from pairlens.subsets import BalancedSampler, shapley

EXACT = 1024
"""A text with at most this many subsets of units is solved exactly, from all of them."""
AGREEMENT = 0.97
"""Sampling stops when the Spearman correlation of two independent runs reaches this."""
FIRST_PASSES, MOST_PASSES = 256, 4096
GROWTH = 1.5
"""Embeddings are kept from one attempt to the next, so a small step costs only the solving."""
SEEDS = 1, 2


@dataclass(frozen=True)
class GroundTruth:
    """Shapley values of a pair.

    Attributes:
        matrix: their products over pairs of deletable units: the Shapley values of the score itself, in both texts.
        agreement: Spearman of two independent runs, whose mean `matrix` is; 1 where the values are exact.
        passes: forward passes that each run spent on a text; 0 where both texts are exact.
        exact: whether all subsets of both texts were tried.
    """

    matrix: Matrix
    agreement: float | None
    passes: int
    exact: bool


def can_be_sampled(a: DeletableText, b: DeletableText) -> bool:
    """Whether sampled values of both texts are not exact anyway, because they have few subsets of units."""
    return min(2**a.count, 2**b.count) > FIRST_PASSES


def ground_truth(lens: Lens, a: DeletableText, b: DeletableText, measure: str, *, exact: int = EXACT) -> GroundTruth:
    """Shapley values of a pair: exact where both texts are short, else the mean of two runs that must agree.

    Args:
        lens: the model.
        a: one text.
        b: the other.
        measure: "cosine" or "dot".
        exact: the most subsets of a text's units that are all tried.
    """
    runs = [(sampler(a, seed), sampler(b, seed)) for seed in SEEDS]
    passes = FIRST_PASSES
    while True:
        matrices: list[Matrix] = []
        for run in runs:
            values = [shapley_values(text, drawn, passes, exact) for text, drawn in zip((a, b), run, strict=True)]
            e = lens.compare(*values, reference_terms="keep", measure=measure)
            matrices.append(ScoreModel(e, a, b).matrix)
        done = all(drawn.exhausted for drawn in runs[0])
        agreement = 1.0 if done else spearman(*matrices)
        if agreement is None or agreement >= AGREEMENT or passes >= MOST_PASSES:
            return GroundTruth((matrices[0] + matrices[1]) / 2, agreement, 0 if done else passes, done)
        passes = int(GROWTH * passes)


def sampler(text: DeletableText, seed: int) -> BalancedSampler:
    """A sampler of a text's units whose draws depend on the seed and the text alone."""
    return BalancedSampler(text.count, np.random.default_rng([seed, zlib.crc32(text.text.text.encode())]))


def shapley_values(text: DeletableText, drawn: BalancedSampler, passes: int, exact: int = EXACT) -> Contributions:
    """Shapley values of a text's units from about `passes` subsets, or from all if there are at most `exact`.

    Args:
        text: the text.
        drawn: the subsets tried so far; it draws more.
        passes: how many subsets to try in all.
        exact: the most subsets of the text's units that are all tried.
    """
    every = 2**text.count
    drawn.grow(every if every <= exact else passes)
    return _contributions(text, shapley(drawn.tried, text.embed(drawn.tried)).values)


def _contributions(text: DeletableText, shares: Array) -> Contributions:
    """Contributions of a text whose deletable units have these values, (count, dim)."""
    reference, embedding = text.embed(np.array([[False], [True]]).repeat(text.count, 1))
    values = np.zeros((len(text.units), len(embedding)))
    values[text.players] = shares
    missing = np.linalg.norm(values.sum(0) - embedding + reference)
    return Contributions(
        text=text.text.text,
        units=text.units,
        tokens=text.text.tokens,
        values=values,
        error=np.zeros(len(values)),
        reference=reference,
        embedding=embedding,
        output=text.encoder.outputs([text.text])[0].astype(np.float64),
        gap=float(missing / max(float(np.linalg.norm(embedding - reference)), 1e-12)),
        settings={
            "model": text.encoder.name,
            "fingerprint": text.encoder.fingerprint,
            "method": "shapley",
            "reference": "empty",
            "space": text.space,
            "level": text.level,
        },
    )
