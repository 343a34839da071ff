"""One pair before the judge: what every candidate says of it, and what the model itself says when units are deleted."""

from __future__ import annotations

import itertools
import time
import warnings
import zlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.attribution.treatments import MEASURES
from pairlens.errors import InputError, ModelError, PairlensError, ReferenceWarning, choose, whole
from pairlens.lens import Lens
from pairlens.model.encoder import Encoder
from pairlens.shapes import Array
from pairlens.study.faithfulness import measures, yardstick
from pairlens.study.faithfulness.candidates import Candidate
from pairlens.study.faithfulness.checks import Checks
from pairlens.study.faithfulness.deletions import Deletions, of_text
from pairlens.study.statistics import mean_of, score, spearman

Record = dict[str, Any]


@dataclass(frozen=True)
class Settings:
    """How to judge.

    Attributes:
        seed: of everything that is drawn.
        checks: how many pairs also get the measures that cost as much as everything else together: sanity, stability
            and cost in forward passes.
        draws: random orders of the pair-deletion curve.
        measure: "cosine" or "dot"; None for the model's own.
    """

    seed: int = 0
    checks: int = 10
    draws: int = 8
    measure: str | None = None

    def __post_init__(self) -> None:
        for name, low in (("seed", 0), ("checks", 0), ("draws", 1)):
            whole(name, getattr(self, name), low)


class Court:
    """What all pairs have in common.

    Args:
        lens: the model.
        candidates: what is judged.
        settings: how.
    """

    def __init__(self, lens: Lens, candidates: Sequence[Candidate], settings: Settings) -> None:
        if not isinstance(lens.encoder, Encoder):
            raise ModelError("the judge deletes tokens, which a black box does not have; give it the model itself.")
        self.lens = lens
        self.encoder = lens.encoder
        self.candidates = candidates
        self.settings = settings
        self.measure = choose("measure", settings.measure or lens.measure, MEASURES)
        self._checks = Checks(lens, candidates, self.measure, settings.seed)

    def about(self) -> dict[str, Any]:
        """The model, for the record."""
        return {"model": self.lens.name, "fingerprint": self.encoder.fingerprint, "dtype": self.encoder.precision}

    def hear(self, a: str, b: str, *, check: bool) -> Record:
        """Everything that is measured on one pair; {"skipped": why} for one that cannot be used."""
        try:
            texts = [self.encoder.read(text) for text in (a, b)]
        except InputError as error:
            return {"skipped": str(error)}
        if any(text.truncated for text in texts):
            return {"skipped": "longer than the model takes"}
        side_a, side_b = (Deletions(self.encoder, text, self.measure) for text in texts)
        with warnings.catch_warnings():
            # A large base is the rule under random weights, and no one looks at single pairs here.
            warnings.simplefilter("ignore", ReferenceWarning)
            truth = yardstick.measure_pair(self.lens, side_a, side_b, self.measure)
            found, values = self._explain(a, b)
            areas = self._areas(found, side_a, side_b)
            effects = self._effects(side_a, side_b)
            for name, e in found.items():
                values[name] |= _ranks(e, side_a, side_b, truth.matrix, effects) | areas[name]
            record: Record = {
                "check": check,
                "score": float(score(side_a.whole(), side_b.whole(), self.measure)),
                "units": [side_a.count, side_b.count],
                "yardstick": {"agreement": truth.agreement, "passes": truth.passes, "exact": truth.exact},
            }
            if check:
                record |= self._checks.run(side_a, side_b, found, values, truth)
        return {**record, "candidates": values}

    def _explain(self, a: str, b: str) -> tuple[dict[str, Explanation], dict[str, Record]]:
        """Every candidate's explanation with its seconds and gap, or why there is none."""
        found: dict[str, Explanation] = {}
        values: dict[str, Record] = {}
        for candidate in self.candidates:
            start = time.perf_counter()
            try:
                e = candidate.explain(self.lens, a, b, self.measure)
            except PairlensError as error:
                values[candidate.name] = {"skipped": str(error)}
                continue
            seconds = time.perf_counter() - start
            found[candidate.name] = e
            values[candidate.name] = {"seconds": seconds, "gap": (e.gap_a + e.gap_b) / 2}
        return found, values

    def _effects(self, a: Deletions, b: Deletions) -> tuple[Array, Array]:
        """What the score really loses with each unit of a and with each of b."""
        whole_a, whole_b = a.whole(), b.whole()
        full = score(whole_a, whole_b, self.measure)
        lost = [
            full - score(side.embed(~np.eye(side.count, dtype=bool)), other, self.measure)
            for side, other in ((a, whole_b), (b, whole_a))
        ]
        return lost[0], lost[1]

    def _areas(self, found: Mapping[str, Explanation], a: Deletions, b: Deletions) -> dict[str, Record]:
        """The pair-deletion curves of all candidates, in one batch of forward passes a text."""
        count = a.count * b.count
        pair = zlib.crc32(f"{a.text.text}\0{b.text.text}".encode())
        generator = np.random.default_rng([self.settings.seed, pair])
        orders = {("random", draw): generator.permutation(count) for draw in range(self.settings.draws)}
        for name, e in found.items():
            entries = of_text(e, a, b).ravel()
            orders[name, 0] = np.argsort(-entries, kind="stable")
            orders[name, 1] = np.argsort(entries, kind="stable")
            orders[name, 2] = np.argsort(-_carried(e, a, b).ravel(), kind="stable")
        walks = {key: measures.walk(order, a.count, b.count) for key, order in orders.items()}
        steps = list(itertools.chain(*walks.values()))
        scores = score(
            a.embed(np.array([step.left_a for step in steps])),
            b.embed(np.array([step.left_b for step in steps])),
            self.measure,
        )
        areas: dict[Any, float] = {}
        start = 0
        for key, own in walks.items():
            gone = np.array([step.gone for step in own])
            areas[key] = measures.fall_area(scores[start : start + len(own)], gone)
            start += len(own)
        random = float(np.mean([areas["random", draw] for draw in range(self.settings.draws)]))
        return {
            name: {
                "deletion": areas[name, 0] - random,
                "deletion_reverse": areas[name, 0] - areas[name, 1],
                "deletion_whole": areas[name, 2] - random,
                "area": areas[name, 0],
            }
            for name in found
        }


def _whole_effects(e: Explanation, a: Deletions, b: Deletions) -> tuple[Array, Array]:
    """What each text unit of a, and of b, contributes in all, by an explanation."""
    return (e.row + e.effects_a)[a.units], (e.column + e.effects_b)[b.units]


def _carried(e: Explanation, a: Deletions, b: Deletions) -> Array:
    """What the score should lose, by an explanation, with both units of a pair: their own entry counts once."""
    return np.add.outer(*_whole_effects(e, a, b)) - of_text(e, a, b)


def _ranks(e: Explanation, a: Deletions, b: Deletions, truth: Array, effects: tuple[Array, Array]) -> Record:
    """How an explanation's order of pairs, and of units, agrees with what the model says."""
    whole = _whole_effects(e, a, b)
    return {
        "shapley": spearman(of_text(e, a, b), truth),
        "leave_one_out": mean_of([spearman(*pair) for pair in zip(whole, effects, strict=True)]),
    }
