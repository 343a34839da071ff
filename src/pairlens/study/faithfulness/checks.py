"""The expensive measures, taken on a few pairs: cost, stability and sanity."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Mapping, Sequence

from pairlens.attribution import Contributions, Explanation
from pairlens.errors import PairlensError
from pairlens.lens import Lens
from pairlens.model import Encoder
from pairlens.study.faithfulness import cost, rewording
from pairlens.study.faithfulness.candidates import Candidate
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.study.faithfulness.ground_truth import GroundTruth, can_be_sampled, ground_truth
from pairlens.study.faithfulness.random_weights import layer_count, randomise
from pairlens.study.faithfulness.score_model import ScoreModel
from pairlens.study.statistics import Record, spearman


class Checks:
    """Measures cost, stability and sanity of candidates.

    Args:
        lens: the model.
        encoder: the lens's encoder.
        candidates: the explanations to check.
        measure: "cosine" or "dot".
        level: "word" or "token".
        seed: of the random weights.
    """

    def __init__(
        self, lens: Lens, encoder: Encoder, candidates: Sequence[Candidate], measure: str, level: str, seed: int
    ) -> None:
        self.lens = lens
        self.encoder = encoder
        self.candidates = candidates
        self.measure = measure
        self.level = level
        self.seed = seed

    def run(
        self,
        a: DeletableText,
        b: DeletableText,
        models: Mapping[str, ScoreModel],
        values: dict[str, Record],
        truth: GroundTruth,
    ) -> Record:
        """Add the measures of every candidate to `values`; returns the measures of the pair.

        Args:
            a: one text.
            b: the other.
            models: the candidates' explanations of the pair.
            values: the measures of each candidate so far.
            truth: the pair's Shapley values.
        """
        texts = [a.text.text, b.text.text]
        reworded = self._reworded(a, b)
        # The reworded pair must be explained anyway, to measure stability, so its operations are counted.
        counted = reworded or texts
        tokenized = [self.encoder.read(text) for text in counted]
        _, plain = cost.count(lambda: [self.encoder.outputs([text]) for text in tokenized])
        for name, (after, operations) in self._explain(self.lens, counted, models).items():
            values[name]["cost"] = operations / max(plain, 1)
            values[name]["stability"] = rewording.compare(models[name].explanation, after) if reworded else None
        if self._random_lens is not None:
            for name, (random, _) in self._explain(self._random_lens, texts, models).items():
                values[name]["sanity"] = spearman(models[name].matrix, ScoreModel(random, a, b).matrix)
        record: Record = {"reworded": reworded}
        if truth.exact and can_be_sampled(a, b):
            # Where exact values are known, measure how good the sampled ones would have been.
            sampled = ground_truth(self.lens, a, b, self.measure, exact=0)
            record["sampled_yardstick"] = spearman(sampled.matrix, truth.matrix)
        return record

    def _explain(
        self, lens: Lens, texts: Sequence[str], models: Mapping[str, ScoreModel]
    ) -> dict[str, tuple[Explanation, int]]:
        """The candidates' explanations of other texts or of another model, and the operations that each took."""
        explained: dict[str, tuple[Explanation, int]] = {}
        shared: dict[Hashable, tuple[list[Contributions], int]] = {}
        options = (lens, texts[0], texts[1], self.measure, self.level)
        for candidate in self.candidates:
            if candidate.name not in models:
                continue
            key = candidate.decomposition_key(self.measure)
            try:
                if key not in shared:
                    self.encoder.forget()  # a reference cached by another candidate would make this one cheaper
                    shared[key] = cost.count(lambda c=candidate: c.decompose(*options))
                contributions, operations = shared[key]
                e, more = cost.count(lambda c=candidate, part=contributions: c.compare(*options, part))
            except PairlensError:  # an integral over random weights may not converge
                continue
            explained[candidate.name] = e, operations + more
        return explained

    def _reworded(self, a: DeletableText, b: DeletableText) -> list[str] | None:
        """The pair with the first text reworded that can be, or None."""
        texts = [a.text.text, b.text.text]
        for place, text in enumerate((a.text, b.text)):
            edited = rewording.reword(self.encoder, text)
            if edited is not None:
                texts[place] = edited
                return texts
        return None

    @functools.cached_property
    def _random_lens(self) -> Lens | None:
        """A lens on the model with random weights in all layers; None where it has no layers."""
        if self.encoder.is_static(None):
            return None
        return randomise(self.lens, layer_count(self.lens), self.seed)
