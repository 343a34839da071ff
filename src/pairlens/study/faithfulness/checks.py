"""The expensive measures, taken on a few pairs: cost, stability and sanity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pairlens.attribution import Explanation
from pairlens.errors import PairlensError
from pairlens.lens import Lens
from pairlens.model import Encoder
from pairlens.study.faithfulness import cost, rewording
from pairlens.study.faithfulness.candidates import Candidate
from pairlens.study.faithfulness.deletable_text import DeletableText, text_matrix
from pairlens.study.faithfulness.ground_truth import GroundTruth, ground_truth
from pairlens.study.faithfulness.random_weights import layer_count, randomise
from pairlens.study.statistics import Record, spearman


class Checks:
    """Measures cost, stability and sanity of candidates.

    Args:
        lens: the model.
        encoder: the lens's encoder.
        candidates: the explanations to check.
        measure: "cosine" or "dot".
        seed: of the random weights.
    """

    def __init__(self, lens: Lens, encoder: Encoder, candidates: Sequence[Candidate], measure: str, seed: int) -> None:
        self.lens = lens
        self.encoder = encoder
        self.candidates = candidates
        self.measure = measure
        self.seed = seed
        self._random_lenses: dict[int, Lens] = {}

    def run(
        self,
        a: DeletableText,
        b: DeletableText,
        explanations: Mapping[str, Explanation],
        values: dict[str, Record],
        truth: GroundTruth,
    ) -> Record:
        """Add the measures of every candidate to `values`; returns the measures of the pair.

        Args:
            a: one text.
            b: the other.
            explanations: the candidates' explanations of the pair.
            values: the measures of each candidate so far.
            truth: the pair's Shapley values.
        """
        texts = [a.text.text, b.text.text]
        reworded = self._reworded(a, b)
        # The reworded pair must be explained anyway, to measure stability, so its operations are counted.
        counted = reworded or texts
        tokenized = [self.encoder.read(text) for text in counted]
        _, plain = cost.count(lambda: [self.encoder.outputs([text]) for text in tokenized])
        for candidate in self.candidates:
            if candidate.name not in explanations:
                continue
            e = explanations[candidate.name]
            self.encoder.forget()  # a reference cached by another candidate would make this one cheaper
            after, operations = cost.count(lambda c=candidate: self._explain(c, self.lens, counted))
            row = values[candidate.name]
            if after is not None:
                row["cost"] = operations / max(plain, 1)
                row["stability"] = rewording.compare(e, after) if reworded else None
            row["sanity"] = {}
            for depth in self._depths():
                random = self._explain(candidate, self._randomised(depth), texts)
                if random is not None:
                    row["sanity"][str(depth)] = spearman(text_matrix(e, a, b), text_matrix(random, a, b))
        record: Record = {"reworded": reworded}
        if truth.exact:
            # Where exact values are known, measure how good the sampled ones would have been.
            sampled = ground_truth(self.lens, a, b, self.measure, exact=0)
            record["sampled_yardstick"] = spearman(sampled.matrix, truth.matrix)
        return record

    def _explain(self, candidate: Candidate, lens: Lens, texts: Sequence[str]) -> Explanation | None:
        try:
            return candidate.explain(lens, texts[0], texts[1], self.measure)
        except PairlensError:  # an integral over random weights may not converge
            return None

    def _reworded(self, a: DeletableText, b: DeletableText) -> list[str] | None:
        """The pair with the first text reworded that can be, or None."""
        texts = [a.text.text, b.text.text]
        for place, text in enumerate((a.text, b.text)):
            edited = rewording.reword(self.encoder, text)
            if edited is not None:
                texts[place] = edited
                return texts
        return None

    def _depths(self) -> list[int]:
        """The numbers of last layers to randomise: half of all layers, and all."""
        if self.encoder.is_static(None):
            return []
        count = layer_count(self.lens)
        return sorted({max(1, count // 2), count})

    def _randomised(self, depth: int) -> Lens:
        if depth not in self._random_lenses:
            self._random_lenses[depth] = randomise(self.lens, depth, self.seed)
        return self._random_lenses[depth]
