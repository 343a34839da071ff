"""Why a query is closer to one text than to another: the difference of two explanations."""

from __future__ import annotations

from dataclasses import dataclass, replace

from pairlens.attribution.explanation import Explanation, Pair
from pairlens.shapes import Array
from pairlens.text import Unit


@dataclass(frozen=True, eq=False)
class Contrast:
    """Why a query is closer to one text than to another: the difference of two explanations.

    difference = score_a - score_b, and what the units of the query contribute to it: `effects` (units,) sums each
    unit's part in either explanation, so that difference = effects.sum() + base + gap.

    Attributes:
        a: the explanation of (query, a). `b`: of (query, b).
    """

    a: Explanation
    b: Explanation

    @property
    def difference(self) -> float:
        """How much closer the query is to a than to b."""
        return self.a.score - self.b.score

    @property
    def units(self) -> tuple[Unit, ...]:
        """The query's units."""
        return self.a.units_a

    @property
    def effects(self) -> Array:
        """What each unit of the query contributes to the difference, (units,)."""
        return (self.a.row + self.a.effects_a) - (self.b.row + self.b.effects_a)

    @property
    def base(self) -> float:
        """What does not belong to a unit of the query: the references, and the texts' own effects."""
        return (self.a.base + float(self.a.effects_b.sum())) - (self.b.base + float(self.b.effects_b.sum()))

    @property
    def gap(self) -> float:
        """The integration's own error of the sum, signed."""
        return self.a.gap - self.b.gap

    def top(self, k: int = 10, *, special: bool = False) -> list[tuple[str, Pair]]:
        """The k strongest pairs of both explanations, each with the text it is with, "a" or "b".

        Values are contributions to the difference: positive ones speak for a, whichever text the pair is with.
        """
        with_a = [("a", pair) for pair in self.a.top(k, special=special)]
        with_b = [("b", replace(pair, value=-pair.value)) for pair in self.b.top(k, special=special)]
        return sorted(with_a + with_b, key=lambda item: -abs(item[1].value))[:k]

    def __repr__(self) -> str:
        from pairlens.render.text import contrast_summary

        return contrast_summary(self)
