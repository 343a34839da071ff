"""Evaluate all candidates on one pair: compare what they say with the model's score after deletions."""

from __future__ import annotations

import time
import warnings
import zlib
from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from pairlens.attribution import MEASURES, Contributions, Explanation
from pairlens.errors import InputError, ModelError, PairlensError, ReferenceWarning, choose, whole
from pairlens.lens import Lens
from pairlens.model import Encoder
from pairlens.shapes import Array, Matrix, PerUnitA, PerUnitB
from pairlens.study.faithfulness.candidates import Candidate
from pairlens.study.faithfulness.checks import Checks
from pairlens.study.faithfulness.curves import PairCurves
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.study.faithfulness.ground_truth import ground_truth
from pairlens.study.faithfulness.measures import claimed_ratio, top_agreement
from pairlens.study.faithfulness.random_deletions import draw_deletions, prediction_measures
from pairlens.study.faithfulness.score_model import ScoreModel
from pairlens.study.statistics import Record, mean_of, pearson, score, spearman

LEVELS = ("word", "token")
LONGEST_CHECKED = 15
"""Pairs with a longer text, in units, are not checked: a few of them would take most of the time."""


@dataclass(frozen=True)
class JudgeSettings:
    """How candidates are evaluated.

    Attributes:
        seed: of all random draws.
        checks: the number of pairs that also get the expensive measures: sanity, stability and cost in forward passes.
            They take twice as long as all explanations together, so only pairs of at most 15 units a text get them.
        draws: random orders of the pair-deletion curve.
        measure: "cosine" or "dot"; None for the model's own.
        level: "word" or "token", what is deleted and explained.
    """

    seed: int = 0
    checks: int = 30
    draws: int = 8
    measure: str | None = None
    level: str = "word"

    def __post_init__(self) -> None:
        for name, low in (("seed", 0), ("checks", 0), ("draws", 1)):
            whole(name, getattr(self, name), low)
        choose("level", self.level, LEVELS)


class Explained(NamedTuple):
    """A candidate's explanation of a pair.

    Attributes:
        explanation: the explanation.
        tried: the subsets of each text's deletable units that were tried, (tried, count); None where none was.
    """

    explanation: Explanation
    tried: tuple[Array | None, Array | None]


class PairEvaluator:
    """Evaluates candidates on pairs of texts, one pair at a time.

    Args:
        lens: the model.
        candidates: the explanations to compare.
        settings: how to evaluate them.
    """

    def __init__(self, lens: Lens, candidates: Sequence[Candidate], settings: JudgeSettings) -> None:
        if not isinstance(lens.encoder, Encoder):
            raise ModelError("the judge deletes tokens, which a black box does not have; give it the model itself.")
        self.lens = lens
        self.encoder = lens.encoder
        self.candidates = candidates
        self.settings = settings
        self.measure = choose("measure", settings.measure or lens.measure, MEASURES)
        self._checks = Checks(lens, self.encoder, candidates, self.measure, settings.level, settings.seed)

    def describe_model(self) -> Record:
        """The model's entries of a result's settings."""
        return {"model": self.lens.name, "fingerprint": self.encoder.fingerprint, "dtype": self.encoder.precision}

    def evaluate(self, a: str, b: str, *, check: bool) -> Record:
        """All measures of all candidates on one pair; {"skipped": reason} for a pair that cannot be used.

        Args:
            a: one text.
            b: the other.
            check: whether to take the expensive measures too, if neither text is long.
        """
        try:
            texts = [self.encoder.read(text) for text in (a, b)]
        except InputError as error:
            return {"skipped": str(error)}
        if any(text.truncated for text in texts):
            return {"skipped": "longer than the model takes"}
        text_a, text_b = (DeletableText(self.encoder, text, self.measure, self.settings.level) for text in texts)
        with warnings.catch_warnings():
            # Under random weights a large base is normal.
            warnings.simplefilter("ignore", ReferenceWarning)
            truth = ground_truth(self.lens, text_a, text_b, self.measure)
            explained, values = self._explain(text_a, text_b)
            models = {name: ScoreModel(one.explanation, text_a, text_b) for name, one in explained.items()}
            self._measure(text_a, text_b, explained, models, truth.matrix, values)
            record: Record = {
                "check": check and max(text_a.count, text_b.count) <= LONGEST_CHECKED,
                "score": whole_score(text_a, text_b, self.measure),
                "units": [text_a.count, text_b.count],
                "yardstick": {"agreement": truth.agreement, "passes": truth.passes, "exact": truth.exact},
            }
            if record["check"]:
                record |= self._checks.run(text_a, text_b, models, values, truth)
        return {**record, "candidates": values}

    def _explain(self, a: DeletableText, b: DeletableText) -> tuple[dict[str, Explained], dict[str, Record]]:
        """Every candidate's explanation, and its seconds, passes and gap, or the reason why there is none."""
        explained: dict[str, Explained] = {}
        values: dict[str, Record] = {}
        shared: dict[Hashable, tuple[list[Contributions], float]] = {}
        options = (self.lens, a.text.text, b.text.text, self.measure, self.settings.level)
        for candidate in self.candidates:
            key = candidate.decomposition_key(self.measure)
            try:
                if key not in shared:
                    start = time.perf_counter()
                    contributions = candidate.decompose(*options)
                    shared[key] = contributions, time.perf_counter() - start
                contributions, seconds = shared[key]
                start = time.perf_counter()
                e = candidate.compare(*options, contributions)
            except PairlensError as error:
                values[candidate.name] = {"skipped": str(error)}
                continue
            tried = _tried(contributions, a, b)
            explained[candidate.name] = Explained(e, tried)
            passes = mean_of(len(subsets) for subsets in tried if subsets is not None)
            seconds += time.perf_counter() - start
            values[candidate.name] = {"seconds": seconds, "passes": passes, "gap": (e.gap_a + e.gap_b) / 2}
        return explained, values

    def _measure(
        self,
        a: DeletableText,
        b: DeletableText,
        explained: Mapping[str, Explained],
        models: Mapping[str, ScoreModel],
        truth: Matrix,
        values: dict[str, Record],
    ) -> None:
        """Add the measures of every explanation to `values`."""
        pair = zlib.crc32(f"{a.text.text}\0{b.text.text}".encode())
        deletions = draw_deletions(a, b, self.measure, np.random.default_rng([self.settings.seed, pair, 0]))
        curves = PairCurves(
            a, b, self.measure, np.random.default_rng([self.settings.seed, pair, 1]), self.settings.draws
        )
        deleted, inserted = curves.deletion(models), curves.insertion(models)
        losses = leave_one_out_losses(a, b, self.measure)
        for name, model in models.items():
            values[name] |= prediction_measures(model, deletions, explained[name].tried)
            values[name] |= {
                "leave_one_out": mean_of(spearman(*pair) for pair in zip(model.losses, losses, strict=True)),
                "claimed": claimed_ratio(model.losses, losses),
                **deleted[name],
                **inserted[name],
                "shapley": spearman(model.matrix, truth),
                "shapley_pearson": pearson(model.matrix, truth),
                "shapley_top": top_agreement(model.matrix, truth),
            }


def whole_score(a: DeletableText, b: DeletableText, measure: str) -> float:
    """The model's score of the two whole texts."""
    return float(score(a.whole()[None], b.whole()[None], measure)[0])


def leave_one_out_losses(a: DeletableText, b: DeletableText, measure: str) -> tuple[PerUnitA, PerUnitB]:
    """What the model's score loses with each unit of a, and with each of b."""
    full = whole_score(a, b, measure)
    return full - score(a.without_each(), b.whole(), measure), full - score(b.without_each(), a.whole(), measure)


def _tried(
    contributions: Sequence[Contributions], a: DeletableText, b: DeletableText
) -> tuple[Array | None, Array | None]:
    """The subsets of the deletable units of both texts that a candidate has tried; None each where none was."""
    if not contributions:
        return None, None
    tried_a, tried_b = (
        None if c.tried is None else c.tried[:, text.players] for c, text in zip(contributions, (a, b), strict=True)
    )
    return tried_a, tried_b
