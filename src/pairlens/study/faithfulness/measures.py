"""The measures that are functions of arrays alone: the pair-deletion curve, and bootstrap intervals over pairs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairlens.shapes import Array

RESAMPLES = 2000


@dataclass(frozen=True)
class DeletionStep:
    """One point of a pair-deletion curve.

    Attributes:
        left_a: which units of text a are left, booleans.
        left_b: which units of text b are left, booleans.
        deleted: how many units of both texts are deleted.
    """

    left_a: Array
    left_b: Array
    deleted: int


def deletion_steps(order: Array, count_a: int, count_b: int) -> list[DeletionStep]:
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
    steps = [DeletionStep(left[0].copy(), left[1].copy(), 0)]
    for pair in order:
        changed = False
        for text, unit in enumerate(divmod(int(pair), count_b)):
            if left[text][unit] and room[text]:
                left[text][unit] = False
                room[text] -= 1
                changed = True
        if changed:
            deleted = int((~left[0]).sum() + (~left[1]).sum())
            steps.append(DeletionStep(left[0].copy(), left[1].copy(), deleted))
        if not any(room):
            break
    return steps


def fall_area(scores: Array, deleted: Array) -> float:
    """The area between a deletion curve and its first score: the mean fall of the score over all deletions.

    Args:
        scores: the score after each step, beginning with that of the whole texts, (steps,).
        deleted: the number of deleted units at each step, (steps,).

    Example:
        >>> import numpy as np
        >>> fall_area(np.array([1.0, 0.5, 0.0]), np.array([0, 1, 2]))
        0.5
    """
    return float(np.trapezoid(scores[0] - scores, deleted / deleted[-1]))


def bootstrap(values: Array, seed: int, resamples: int = RESAMPLES) -> tuple[float, float, float]:
    """The mean and the ends of its 95 % interval, from drawing pairs with replacement.

    Args:
        values: one number per pair, (pairs,).
        seed: of the draws.
        resamples: the number of draws.

    Example:
        >>> import numpy as np
        >>> bootstrap(np.full(5, 0.25), seed=0)
        (0.25, 0.25, 0.25)
    """
    draws = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    low, high = np.percentile(values[draws].mean(1), [2.5, 97.5])
    return float(values.mean()), float(low), float(high)
