"""How well an explanation predicts the model's score of shortened texts.

Keep the units S of text a and T of text b, and an explanation says

    g(S, T) = base + Σ_{s in S} effects_a + Σ_{t in T} effects_b + Σ_{s in S, t in T} matrix[s, t]

The deletions that a method has tried on each text give real scores to compare with. Each is predicted by a fit that has
not seen it, so the comparison holds for deletions that nobody has tried.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from pairlens import linalg
from pairlens.attribution.products import ScoredText
from pairlens.methods import Trials
from pairlens.methods.banzhaf import KEEP
from pairlens.shapes import Array
from pairlens.subsets import deletion_weights

FEWEST = 10
"""With fewer deletions of several units there is no forecast, unless these are all."""
LOW = 0.7
"""Below this R², views warn that the explanation is a poor forecast."""


@dataclass(frozen=True)
class Forecast:
    """How well an explanation predicts random deletions that it has not seen, by cross-validation.

    Attributes:
        r2: the part of the score's variance over random deletions that the explanation predicts; 1 is perfect, 0 as
            good as the mean.
        error: the typical error of a prediction, in points of the score (root mean square).
        keep: the probability that a unit stays, in these deletions.
        with_compounds: the R² where up to 8 pairs of units that act together have rows of their own, as
            `Banzhaf(compounds=8)` gives them; None where that was not tried.
    """

    r2: float
    error: float
    keep: float
    with_compounds: float | None = None

    @property
    def is_low(self) -> bool:
        """Whether the explanation is a poor forecast."""
        return self.r2 < LOW


def cross_validate(a: ScoredText, b: ScoredText) -> Forecast | None:
    """The forecast of a pair from the deletions that were tried on its texts; None where none were predicted."""
    tried_a, tried_b = a.trials, b.trials
    if tried_a is None or tried_b is None or tried_a.predictions is None or tried_b.predictions is None:
        return None
    keep_a, keep_b = (float(text.settings.get("keep", KEEP)) for text in (a, b))
    weights_a, weights_b = trial_weights(tried_a, keep_a), trial_weights(tried_b, keep_b)
    if weights_a is None or weights_b is None:
        return None
    weights = np.outer(weights_a, weights_b)
    real = linalg.product(tried_a.embeddings, tried_b.embeddings.T)
    mean = float((weights * real).sum())
    variance = float((weights * (real - mean) ** 2).sum())
    error = _squared_error(weights, real, tried_a.predictions, tried_b.predictions)
    richer_a, richer_b, better = tried_a.compound_predictions, tried_b.compound_predictions, None
    if richer_a is not None or richer_b is not None:
        richer_a = tried_a.predictions if richer_a is None else richer_a
        richer_b = tried_b.predictions if richer_b is None else richer_b
        better = _r2(_squared_error(weights, real, richer_a, richer_b), variance)
    return Forecast(_r2(error, variance), math.sqrt(error), (keep_a + keep_b) / 2, better)


def embeddings_without_each(text: ScoredText) -> Array | None:
    """The embeddings of a text without each unit, (units, dim), where all units were deleted alone; else None.

    For rows that are no unit to delete, special tokens and compounds, it is the embedding of the whole text.
    """
    if text.trials is None:
        return None
    kept = text.trials.kept
    alone = kept.shape[1] - kept.sum(1) == 1
    units = np.argmin(kept[alone], axis=1)
    if (~kept.all(0)).sum() > len(set(units.tolist())):
        return None
    embeddings = np.repeat(text.embedding[None], len(text.values), axis=0)
    embeddings[units] = text.trials.embeddings[alone]
    return embeddings


def measured_scores(a: ScoredText, b: ScoredText) -> dict[str, Array | None]:
    """The model's scores without each unit of a, without each of b, and without one unit of each."""
    without_a, without_b = embeddings_without_each(a), embeddings_without_each(b)
    return {
        "measured_a": None if without_a is None else without_a @ b.embedding,
        "measured_b": None if without_b is None else without_b @ a.embedding,
        "measured_pairs": None if without_a is None or without_b is None else linalg.product(without_a, without_b.T),
    }


def trial_weights(trials: Trials, keep: float) -> Array | None:
    """The weights that make the deletions tried stand for random ones, (tried,); None where they are too few."""
    if trials.weights is not None:
        return trials.weights
    kept = trials.kept[:, ~trials.kept.all(0)]
    if len(kept) < 2 ** kept.shape[1] and ((~kept).sum(1) > 1).sum() < FEWEST:
        return None
    return deletion_weights(kept, keep)


def _squared_error(weights: Array, real: Array, one: Array, other: Array) -> float:
    return float((weights * (real - linalg.product(one, other.T)) ** 2).sum())


def _r2(error: float, variance: float) -> float:
    return 1 - error / variance if variance > 0 else 1.0
