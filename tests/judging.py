"""Pairs, deletable texts and candidates with known explanations, for the tests of the judge."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from pairlens import Lens
from pairlens.attribution import Explanation
from pairlens.study.faithfulness import Candidate
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.study.faithfulness.text_at_layer import layered_encoder

PAIRS = [
    ("The coffee here is not good.", "This coffee is bad."),
    ("The tea was cold.", "The coffee was not hot."),
    ("The shop is closed.", "Is the museum open today?"),
]
FAST_METHODS = ["output", "occlusion", "shapley", "bertscore", "random"]

MakeMatrix = Callable[[Lens, DeletableText, DeletableText], np.ndarray]


def deletable_texts(lens: Lens, *texts: str) -> list[DeletableText]:
    """Texts whose units can be deleted."""
    encoder = layered_encoder(lens)
    return [DeletableText(encoder, encoder.read(text), "cosine") for text in texts]


@dataclass(frozen=True, kw_only=True)
class GivenMatrix(Candidate):
    """A candidate whose matrix over the text units of a pair is what a function returns."""

    make_matrix: MakeMatrix

    def explain(self, lens: Lens, a: str, b: str, measure: str) -> Explanation:
        """The explanation of a pair at token level."""
        e = lens.explain(a, b, method="output", measure=measure)
        text_a, text_b = deletable_texts(lens, a, b)
        matrix = np.zeros_like(e.matrix)
        matrix[np.ix_(text_a.units, text_b.units)] = self.make_matrix(lens, text_a, text_b)
        return replace(e, matrix=matrix)


def given_matrix(name: str, make_matrix: MakeMatrix) -> GivenMatrix:
    """A candidate of this name whose matrices the function returns."""
    return GivenMatrix(name, "random", make_matrix=make_matrix)
