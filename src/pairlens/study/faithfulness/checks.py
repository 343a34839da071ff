"""The measures that cost as much as all others together, taken on a few pairs: cost, stability, sanity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pairlens.attribution.explanation import Explanation
from pairlens.errors import PairlensError
from pairlens.lens import Lens
from pairlens.model.encoder import Encoder
from pairlens.study import statistics
from pairlens.study.faithfulness import cost, rewording, yardstick
from pairlens.study.faithfulness.candidates import Candidate
from pairlens.study.faithfulness.deletions import Deletions, of_text
from pairlens.study.faithfulness.randomised import layer_count, randomise

Record = dict[str, Any]


class Checks:
    """What all pairs have in common.

    Args:
        lens: the model.
        candidates: what is judged.
        measure: "cosine" or "dot".
        seed: of the random weights.
    """

    def __init__(self, lens: Lens, candidates: Sequence[Candidate], measure: str, seed: int) -> None:
        assert isinstance(lens.encoder, Encoder)
        self.lens = lens
        self.encoder = lens.encoder
        self.candidates = candidates
        self.measure = measure
        self.seed = seed
        self._random: dict[int, Lens] = {}

    def run(
        self,
        a: Deletions,
        b: Deletions,
        found: Mapping[str, Explanation],
        values: dict[str, Record],
        truth: yardstick.Yardstick,
    ) -> Record:
        """Put what is measured of every candidate into `values`; returns what belongs to the pair.

        Args:
            a: one text. `b`: the other.
            found: the candidates' explanations.
            values: what is known of each candidate so far.
            truth: the yardstick.
        """
        texts = [a.text.text, b.text.text]
        reworded = self._reworded(a, b)
        # What is explained to see its stability is explained anyway: count its operations there.
        counted = reworded or texts
        reads = [self.encoder.read(text) for text in counted]
        plain = cost.count(lambda: [self.encoder.outputs([read]) for read in reads])[1]
        for candidate in self.candidates:
            if candidate.name not in found:
                continue
            e = found[candidate.name]
            self.encoder.forget()  # no candidate costs less because another was asked before
            after, spent = cost.count(lambda c=candidate: self._try(c, self.lens, counted))
            own: Record = {"sanity": {}}
            if after is not None:
                own["cost"] = spent / max(plain, 1)
                own["stability"] = rewording.compare(e, after) if reworded else None
            for depth in self._depths():
                random = self._try(candidate, self._randomised(depth), texts)
                if random is not None:
                    own["sanity"][str(depth)] = statistics.spearman(of_text(e, a, b), of_text(random, a, b))
            values[candidate.name] |= own
        record: Record = {"reworded": reworded}
        if truth.exact:
            # Where the truth is known, how good would the sampled yardstick have been?
            sampled = yardstick.measure_pair(self.lens, a, b, self.measure, exact=0)
            record["sampled_yardstick"] = statistics.spearman(sampled.matrix, truth.matrix)
        return record

    def _try(self, candidate: Candidate, lens: Lens, texts: Sequence[str]) -> Explanation | None:
        try:
            return candidate.explain(lens, texts[0], texts[1], self.measure)
        except PairlensError:  # an integral over random weights may not converge
            return None

    def _reworded(self, a: Deletions, b: Deletions) -> list[str] | None:
        """The pair with one text written slightly otherwise."""
        texts = [a.text.text, b.text.text]
        for place, side in enumerate((a, b)):
            other = rewording.reword(self.encoder, side.text)
            if other is not None:
                texts[place] = other
                return texts
        return None

    def _depths(self) -> list[int]:
        """How many of the last layers to draw anew: half of them, and all."""
        if self.encoder.route().static:
            return []
        count = layer_count(self.lens)
        return sorted({max(1, count // 2), count})

    def _randomised(self, depth: int) -> Lens:
        if depth not in self._random:
            self._random[depth] = randomise(self.lens, depth, self.seed)
        return self._random[depth]
