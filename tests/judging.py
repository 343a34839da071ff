"""Pairs, deletable texts and candidates with known explanations, for the tests of the judge."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairlens import Lens
from pairlens.attribution import Contributions, Explanation
from pairlens.study.faithfulness import Candidate
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.study.faithfulness.text_at_layer import layered_encoder
from pairlens.subsets import Fit
from pairlens.text import Unit

PAIRS = [
    ("The coffee here is not good.", "This coffee is bad."),
    ("The tea was cold.", "The coffee was not hot."),
    ("The shop is closed.", "Is the museum open today?"),
]
FAST_METHODS = ["banzhaf", "output", "occlusion", "shapley", "bertscore", "random"]

MakeMatrix = Callable[[Lens, DeletableText, DeletableText], np.ndarray]


def deletable_texts(lens: Lens, *texts: str, level: str = "token") -> list[DeletableText]:
    """Texts whose units can be deleted."""
    encoder = layered_encoder(lens)
    return [DeletableText(encoder, encoder.read(text), "cosine", level) for text in texts]


@dataclass(frozen=True, kw_only=True)
class GivenMatrix(Candidate):
    """A candidate whose matrix over the deletable units of a pair is what a function returns."""

    make_matrix: MakeMatrix

    def compare(
        self, lens: Lens, a: str, b: str, measure: str, level: str, contributions: Sequence[Contributions]
    ) -> Explanation:
        """The explanation of a pair."""
        e = lens.explain(a, b, method="output", measure=measure, level=level)
        text_a, text_b = deletable_texts(lens, a, b, level=level)
        matrix = np.zeros_like(e.matrix)
        matrix[np.ix_(text_a.players, text_b.players)] = self.make_matrix(lens, text_a, text_b)
        return replace(e, matrix=matrix, base=0.0, gap=e.score - float(matrix.sum()))


def given_matrix(name: str, make_matrix: MakeMatrix) -> GivenMatrix:
    """A candidate of this name whose matrices the function returns."""
    return GivenMatrix(name, "random", make_matrix=make_matrix)


class MadeUpText:
    """A text whose embeddings are a known function of the units that are left; it stands for a `DeletableText`.

    Args:
        count: the number of units; a special token precedes them.
        function: from subsets, (subsets, count) booleans, to embeddings, (subsets, dim).
    """

    def __init__(self, count: int, function: Callable[[np.ndarray], np.ndarray]) -> None:
        self.count = count
        self.embed = function
        self.players = np.arange(1, count + 1)
        self.units = (Unit("[CLS]", 0, 0, "special"), *(Unit("x", 2 * i, 2 * i + 1) for i in range(count)))


def made_up_text(count: int, function: Callable[[np.ndarray], np.ndarray]) -> Any:
    """A `MadeUpText`, for functions that take a `DeletableText`."""
    return MadeUpText(count, function)


def random_text(count: int, seed: int, *, pairs: bool = False) -> Any:
    """A text whose embedding is linear in its units, and with `pairs` also in all pairs of its units."""
    random = np.random.default_rng(seed)
    constant, singles, interactions = (random.normal(size=(*shape, 4)) for shape in ((), (count,), (count, count)))

    def embed(subsets: np.ndarray) -> np.ndarray:
        kept = subsets.astype(float)
        linear = constant + kept @ singles
        return linear + 0.3 * np.einsum("ns,nt,std->nd", kept, kept, np.triu(interactions.T, 1).T) if pairs else linear

    return made_up_text(count, embed)


def explanation_of_fits(texts: Sequence[Any], fits: Sequence[Fit]) -> Explanation:
    """The explanation of two made-up texts from linear models of their embeddings, compared by dot product."""
    units, values = [], []
    for text, fit in zip(texts, fits, strict=True):
        compounds = [Unit.compound("x " * text.count, [text.units[1 + i] for i in group]) for group in fit.compounds]
        units.append((*text.units, *compounds))
        values.append(np.concatenate([np.zeros((1, fit.values.shape[1])), fit.values]))
    one, other = (fit.reference for fit in fits)
    matrix = values[0] @ values[1].T
    whole = [fit.reference + fit.values.sum(0) for fit in fits]
    return Explanation(
        text_a="",
        text_b="",
        score=float(whole[0] @ whole[1]),
        matrix=matrix,
        units_a=units[0],
        units_b=units[1],
        tokens_a=(),
        tokens_b=(),
        base=float(one @ other),
        effects_a=values[0] @ other,
        effects_b=values[1] @ one,
        gap=0.0,
        gap_a=0.0,
        gap_b=0.0,
        entry_error=np.zeros_like(matrix),
    )
