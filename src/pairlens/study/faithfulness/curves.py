"""Deletion and insertion curves: units of both texts are deleted, or put back, pair by pair in a candidate's order."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Mapping
from typing import TypeVar

import numpy as np

from pairlens.shapes import Array
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.study.faithfulness.measures import CurveStep, deletion_steps, fall_area, insertion_steps
from pairlens.study.faithfulness.score_model import ScoreModel
from pairlens.study.statistics import Record, score

STARTS = 2
"""Random halves of both texts that insertion curves start from, the same for all candidates."""
Key = TypeVar("Key", bound=Hashable)


class PairCurves:
    """The curves of one pair of texts.

    Args:
        a: one text.
        b: the other.
        measure: "cosine" or "dot".
        random: draws the random orders and the halves that insertion starts from.
        draws: the number of random orders.
    """

    def __init__(
        self, a: DeletableText, b: DeletableText, measure: str, random: np.random.Generator, draws: int
    ) -> None:
        self._a, self._b, self._measure = a, b, measure
        self._orders = [random.permutation(a.count * b.count) for _ in range(draws)]
        self._starts = [(_half(a.count, random), _half(b.count, random)) for _ in range(STARTS)]

    def deletion(self, models: Mapping[str, ScoreModel]) -> dict[str, Record]:
        """For each explanation `deletion`, `deletion_reverse` and `deletion_whole`; strongest pairs are deleted first.

        The strongest are those with the largest entries, and for `deletion_whole` with the largest joint losses. Areas
        are more than those of random orders, and for `deletion_reverse` than that of the opposite order.
        """
        orders: dict[tuple[str, str], Array] = {}
        for name, model in models.items():
            orders[name, "entries"] = _descending(model.matrix)
            orders[name, "reverse"] = _descending(-model.matrix)
            orders[name, "whole"] = _descending(model.joint_losses)
        counts = self._a.count, self._b.count
        areas = self._areas({key: deletion_steps(order, *counts) for key, order in orders.items()})
        at_random = self._areas(dict(enumerate(deletion_steps(order, *counts) for order in self._orders)))
        random = float(np.mean(list(at_random.values())))
        return {
            name: {
                "deletion": areas[name, "entries"] - random,
                "deletion_reverse": areas[name, "entries"] - areas[name, "reverse"],
                "deletion_whole": areas[name, "whole"] - random,
            }
            for name in models
        }

    def insertion(self, models: Mapping[str, ScoreModel]) -> dict[str, Record]:
        """For each explanation `insertion` and `insertion_whole`: the rise of the score, more than by random orders."""
        orders: dict[tuple[str, str], Array] = {}
        for name, model in models.items():
            orders[name, "insertion"] = _descending(model.matrix)
            orders[name, "insertion_whole"] = _descending(model.joint_losses)
        curves = {
            (key, place): insertion_steps(order, *start)
            for key, order in [*orders.items(), *enumerate(self._orders)]
            for place, start in enumerate(self._starts)
        }
        falls = self._areas(curves)

        def rise(key: tuple[str, str] | int) -> float:
            return -float(np.mean([falls[key, place] for place in range(STARTS)]))

        random = float(np.mean([rise(number) for number in range(len(self._orders))]))
        kinds = ("insertion", "insertion_whole")
        return {name: {kind: rise((name, kind)) - random for kind in kinds} for name in models}

    def _areas(self, curves: Mapping[Key, list[CurveStep]]) -> dict[Key, float]:
        """The areas of some curves, with one batch of forward passes per text."""
        steps = list(itertools.chain(*curves.values()))
        embeddings_a = self._a.embed(np.array([step.left_a for step in steps]))
        embeddings_b = self._b.embed(np.array([step.left_b for step in steps]))
        ends = np.cumsum([len(curve) for curve in curves.values()])
        scores = np.split(score(embeddings_a, embeddings_b, self._measure), ends[:-1])
        return {
            key: fall_area(part, np.array([step.changed for step in curve]))
            for (key, curve), part in zip(curves.items(), scores, strict=True)
        }


def _descending(entries: Array) -> Array:
    """Pairs of units as positions in the flattened matrix, those with the largest entries first."""
    return np.argsort(-entries.ravel(), kind="stable")


def _half(count: int, random: np.random.Generator) -> Array:
    """Which units are left when half of them, at least one, is deleted at random, (count,)."""
    left = np.ones(count, dtype=bool)
    left[random.permutation(count)[: max(1, count // 2)]] = False
    return left
