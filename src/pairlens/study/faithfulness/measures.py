"""The measures that are functions of arrays alone: curves, agreement of matrices, and bootstrap intervals."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from pairlens.shapes import Array, Matrix

RESAMPLES = 2000
STRONGEST = 0.2
"""The part of all entries that `top_agreement` compares."""


@dataclass(frozen=True)
class CurveStep:
    """One point of a curve on which pairs of units are deleted or inserted.

    Attributes:
        left_a: which units of text a are left, booleans.
        left_b: which units of text b are left, booleans.
        changed: how many units of both texts were deleted or inserted so far.
    """

    left_a: Array
    left_b: Array
    changed: int


def deletion_steps(order: Array, count_a: int, count_b: int) -> list[CurveStep]:
    """The steps of deleting pairs of units in an order, until half of both texts is deleted.

    A text never loses more than half of its units (rounded down, at least one): with fewer units an encoder sees
    fragments that are not language, and a short text would be empty before a long one loses its first units. Every
    order therefore deletes the same number of units, so the areas of different orders can be compared.

    Args:
        order: pairs of units as positions in the flattened matrix, in the order of deletion.
        count_a: units of text a.
        count_b: units of text b.
    """
    left = np.ones(count_a, dtype=bool), np.ones(count_b, dtype=bool)
    room = [max(1, count_a // 2), max(1, count_b // 2)]
    steps = [CurveStep(left[0].copy(), left[1].copy(), 0)]
    for pair in order:
        changed = False
        for text, unit in enumerate(divmod(int(pair), count_b)):
            if left[text][unit] and room[text]:
                left[text][unit] = False
                room[text] -= 1
                changed = True
        if changed:
            deleted = int((~left[0]).sum() + (~left[1]).sum())
            steps.append(CurveStep(left[0].copy(), left[1].copy(), deleted))
        if not any(room):
            break
    return steps


def insertion_steps(order: Array, start_a: Array, start_b: Array) -> list[CurveStep]:
    """The steps of putting deleted units back, pair by pair in an order, until both texts are whole.

    The mirror image of `deletion_steps`: both texts keep at least half of their units all the time.

    Args:
        order: pairs of units as positions in the flattened matrix, in the order of insertion.
        start_a: which units of text a are there at first, booleans.
        start_b: likewise for text b.
    """
    left = start_a.copy(), start_b.copy()
    missing = int((~start_a).sum() + (~start_b).sum())
    steps = [CurveStep(left[0].copy(), left[1].copy(), 0)]
    for pair in order:
        before = steps[-1].changed
        for text, unit in enumerate(divmod(int(pair), len(start_b))):
            left[text][unit] = True
        changed = missing - int((~left[0]).sum() + (~left[1]).sum())
        if changed > before:
            steps.append(CurveStep(left[0].copy(), left[1].copy(), changed))
        if changed == missing:
            break
    return steps


def fall_area(scores: Array, changed: Array) -> float:
    """The area between a curve and its first score: the mean fall of the score over all units; negative for a rise.

    Args:
        scores: the score after each step, (steps,).
        changed: the number of units deleted or inserted until each step, (steps,).

    Example:
        >>> import numpy as np
        >>> fall_area(np.array([1.0, 0.5, 0.0]), np.array([0, 1, 2]))
        0.5
    """
    return float(np.trapezoid(scores[0] - scores, changed / changed[-1]))


def top_agreement(matrix: Matrix, truth: Matrix) -> float:
    """The part of the strongest fifth of the truth's entries that is in the matrix's own strongest fifth, same sign.

    Example:
        >>> truth = np.array([[5.0, -4.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]])
        >>> top_agreement(np.array([[9.0, 8.0, 1.0, 0.0, 0.0], [0.0, 0.0, 0.0, 0.0, 0.0]]), truth)
        0.5
    """
    count = math.ceil(truth.size * STRONGEST)
    strongest = [set(np.argsort(-np.abs(entries), axis=None, kind="stable")[:count]) for entries in (matrix, truth)]
    same_sign = np.flatnonzero(np.sign(matrix.ravel()) == np.sign(truth.ravel()))
    return len(strongest[0] & strongest[1] & set(same_sign)) / count


def claimed_ratio(claimed: Iterable[Array], real: Iterable[Array]) -> float | None:
    """The sum of claimed losses by that of real losses, both without their signs; None where nothing is lost.

    Example:
        >>> claimed_ratio([np.array([0.3, -0.1])], [np.array([0.1, 0.1])])
        2.0
    """
    total = float(sum(np.abs(losses).sum() for losses in real))
    return float(sum(np.abs(losses).sum() for losses in claimed)) / total if total > 1e-9 else None


def bootstrap(
    values: Array, seed: int, resamples: int = RESAMPLES, *, median: bool = False
) -> tuple[float, float, float]:
    """The mean, or the median, and the ends of its 95 % interval, from drawing pairs with replacement.

    Args:
        values: one number per pair, (pairs,).
        seed: of the draws.
        resamples: the number of draws.
        median: whether it is the median.

    Example:
        >>> bootstrap(np.full(5, 0.25), seed=0)
        (0.25, 0.25, 0.25)
    """
    draws = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    middle = np.median if median else np.mean
    low, high = np.percentile(middle(values[draws], axis=1), [2.5, 97.5])
    return float(middle(values)), float(low), float(high)
