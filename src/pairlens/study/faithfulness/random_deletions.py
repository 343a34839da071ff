"""Random deletions of a pair, their real scores, and how well an explanation predicts these."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairlens.shapes import Array
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.study.faithfulness.score_model import ScoreModel
from pairlens.study.statistics import Record, pearson, score

KEEPS = (0.5, 0.75, 0.9)
"""The probabilities with which units stay."""
DRAWS = 300
"""Draws for each of the probabilities."""
FEWEST = 30
"""With fewer draws than this that a candidate has not tried, the pair has no value."""


@dataclass(frozen=True)
class RandomDeletions:
    """Random deletions of a pair that keep each unit with one probability.

    Attributes:
        left_a: which units of text a are left, (draws, count of a), booleans.
        left_b: likewise for text b.
        scores: the model's score of what is left, (draws,).
    """

    left_a: Array
    left_b: Array
    scores: Array

    def untried(self, tried_a: Array | None, tried_b: Array | None) -> Array:
        """The draws that check a candidate, (draws,): those of which it has not tried both sides.

        Args:
            tried_a: the subsets of text a that the candidate has tried, (tried, count of a); None where none was.
            tried_b: likewise for text b.
        """
        return ~(_is_among(self.left_a, tried_a) & _is_among(self.left_b, tried_b))


def draw_deletions(
    a: DeletableText, b: DeletableText, measure: str, random: np.random.Generator
) -> dict[float, RandomDeletions]:
    """Random deletions of a pair for each of `KEEPS`."""
    left_a, left_b = ([random.random((DRAWS, text.count)) < keep for keep in KEEPS] for text in (a, b))
    scores = score(a.embed(np.concatenate(left_a)), b.embed(np.concatenate(left_b)), measure)
    parts = zip(KEEPS, left_a, left_b, np.split(scores, len(KEEPS)), strict=True)
    return {keep: RandomDeletions(one, other, part) for keep, one, other, part in parts}


def prediction_measures(
    model: ScoreModel, deletions: dict[float, RandomDeletions], tried: tuple[Array | None, Array | None]
) -> Record:
    """R² and correlation of predicted with real scores, as r2_50, correlation_50 and so on.

    They are of the untried draws, whose part of all is untried_50. R² over all draws, also those tried, is r2_50_all.

    Args:
        model: the explanation as a model of the score.
        deletions: the draws, by the probability that a unit stays.
        tried: the subsets of both texts that the explanation's method has tried.
    """
    measures: Record = {}
    for keep, drawn in deletions.items():
        untried, percent = drawn.untried(*tried), f"{keep * 100:.0f}"
        predicted = model.predict(drawn.left_a, drawn.left_b)
        enough = untried.sum() >= FEWEST
        measures[f"r2_{percent}"] = r2(drawn.scores[untried], predicted[untried]) if enough else None
        measures[f"correlation_{percent}"] = pearson(drawn.scores[untried], predicted[untried]) if enough else None
        measures[f"r2_{percent}_all"] = r2(drawn.scores, predicted)
        measures[f"untried_{percent}"] = float(untried.mean())
    return measures


def r2(real: Array, predicted: Array) -> float | None:
    """The part of the variance of `real` that is predicted; None where nothing varies.

    Example:
        >>> r2(np.array([0.0, 1.0, 2.0]), np.array([0.0, 1.0, 1.0]))
        0.5
    """
    variance = float(np.var(real))
    return 1 - float(((real - predicted) ** 2).mean()) / variance if variance > 1e-12 else None


def _is_among(rows: Array, tried: Array | None) -> Array:
    known = set() if tried is None else {row.tobytes() for row in np.ascontiguousarray(tried)}
    return np.array([row.tobytes() in known for row in rows], dtype=bool)
