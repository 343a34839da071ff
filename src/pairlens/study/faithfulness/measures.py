"""What is measured of an explanation, as functions of arrays alone: no model, no text."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from pairlens.shapes import Array

RESAMPLES = 2000


# The pair-deletion curve.


@dataclass(frozen=True)
class Step:
    """Where a walk has got to: which units are left in either text, and how many are gone from both."""

    left_a: Array
    left_b: Array
    gone: int


def walk(order: Array, count_a: int, count_b: int) -> list[Step]:
    """Go through pairs of units, deleting the units of each that are still there, until half of both texts is gone.

    A text never loses more than half of its units (rounded down, but one at least): beyond that an encoder is asked
    about fragments that no one writes, and a short text would be gone before a long one is touched. So every order
    deletes the same number of units, and the areas of different orders can be compared.

    Args:
        order: pairs of units as positions in the flattened matrix, the first to go first.
        count_a: units of text a. `count_b`: of text b.
    """
    left = np.ones(count_a, dtype=bool), np.ones(count_b, dtype=bool)
    room = [max(1, count_a // 2), max(1, count_b // 2)]
    steps = [Step(left[0].copy(), left[1].copy(), 0)]
    for pair in order:
        fresh = False
        for side, unit in enumerate(divmod(int(pair), count_b)):
            if left[side][unit] and room[side]:
                left[side][unit] = False
                room[side] -= 1
                fresh = True
        if fresh:
            gone = int((~left[0]).sum() + (~left[1]).sum())
            steps.append(Step(left[0].copy(), left[1].copy(), gone))
        if not any(room):
            break
    return steps


def fall_area(scores: Array, gone: Array) -> float:
    """The area above a curve of scores, from its beginning: the mean fall of the score over the walk.

    Args:
        scores: the score after each step, the whole texts' first, (steps,).
        gone: how many units are gone at each, (steps,).

    Example:
        >>> import numpy as np
        >>> fall_area(np.array([1.0, 0.5, 0.0]), np.array([0, 1, 2]))
        0.5
    """
    return float(np.trapezoid(scores[0] - scores, gone / gone[-1]))


# Over pairs.


def bootstrap(values: Array, seed: int, resamples: int = RESAMPLES) -> tuple[float, float, float]:
    """The mean and the ends of its 95 % interval, by drawing pairs with replacement.

    Args:
        values: one number a pair, (pairs,).
        seed: of the draws.
        resamples: how many draws.

    Example:
        >>> import numpy as np
        >>> bootstrap(np.full(5, 0.25), seed=0)
        (0.25, 0.25, 0.25)
    """
    draws = np.random.default_rng(seed).integers(len(values), size=(resamples, len(values)))
    low, high = np.percentile(values[draws].mean(1), [2.5, 97.5])
    return float(values.mean()), float(low), float(high)
