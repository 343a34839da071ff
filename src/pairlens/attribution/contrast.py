"""Why a query is closer to one text than to another: the difference of two explanations."""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from pairlens.attribution.explanation import Explanation, Pair
from pairlens.errors import InputError
from pairlens.shapes import Array
from pairlens.text import Unit, both_levels


@dataclass(frozen=True, eq=False)
class Contrast:
    """Why a query is closer to one text than to another: the difference of two explanations.

    difference = score_a - score_b, and what the units of the query contribute to it: `effects` (units,) sums each
    unit's part in either explanation, so that difference = effects.sum() + base + gap.

    Where the explanations show different words of a long query, both are taken by its sentences.

    Attributes:
        a: the explanation of (query, a). `b`: of (query, b).
    """

    a: Explanation
    b: Explanation

    def __post_init__(self) -> None:
        if self.a.text_a != self.b.text_a:
            raise InputError(
                f"a contrast compares two explanations of one query, and these have {self.a.text_a!r:.40} and "
                f"{self.b.text_a!r:.40}."
            )
        if self.a.units_a != self.b.units_a:  # a long query, of which each explanation opens other sentences
            vars(self).update(a=_by_sentences(self.a), b=_by_sentences(self.b))

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

    def to_dict(self) -> dict[str, Any]:
        """Both explanations as plain dicts, lists, numbers and texts: what a saved .json file holds."""
        from pairlens.io import documents

        return documents.plain(self)

    def to_pandas(self) -> Any:
        """The query's units as a pandas DataFrame, one row each: what it adds to the difference, and to each score.

        Example:
            >>> from pairlens import Lens
            >>> c = Lens().contrast("Good coffee?", "The coffee is great.", "The train is late.")
            >>> c.to_pandas()[["unit", "value"]].iloc[2].tolist()[0]
            'coffee'
        """
        from pairlens.io import require

        return require("pandas", "study").DataFrame(
            {
                "unit": [unit.text for unit in self.units],
                "value": self.effects,
                "with_a": self.a.row + self.a.effects_a,
                "with_b": self.b.row + self.b.effects_a,
                "start": [unit.start for unit in self.units],
                "end": [unit.end for unit in self.units],
                "kind": [unit.kind for unit in self.units],
            }
        )

    def save(self, path: str | Path) -> Path:
        """Write to a file: .json, which `load` reads, or a picture.

        .html is the interactive picture of both explanations side by side; .png, .svg and .pdf are what `plot` draws.
        """
        from pairlens.io import documents

        suffix = documents.check(path, formats=(".json",), picture=True).suffix.lower()
        if suffix == documents.PICTURE:
            from pairlens.render import contrast, html

            return html.save(contrast.views(self), path, title=contrast.title(self), arrange="side")
        if suffix in documents.PLOTS:
            from pairlens.render import plot

            return plot.save(self.plot()[0], path)
        return documents.save(self, path)

    @staticmethod
    def load(path: str | Path) -> Contrast:
        """Read what `save` wrote."""
        from pairlens.io import documents

        return documents.load(Contrast, path)

    def plot(self, **options: Any) -> tuple[Any, Any]:
        """Draw both heat maps with matplotlib, on one colour scale; options are those of `pairlens.render.plot.grid`.

        Returns:
            The figure and its two axes; nothing is shown, and no setting of matplotlib's is changed. In a notebook,
            `plot()[0]` as the last line of a cell shows it.
        """
        from pairlens.render import contrast, plot

        chosen: dict[str, Any] = {"columns": 2, "title": contrast.title(self), **options}
        return plot.grid(contrast.views(self), **chosen)

    def __repr__(self) -> str:
        from pairlens.render.contrast import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from pairlens.render.contrast import notebook

        return notebook(self)


def _by_sentences(e: Explanation) -> Explanation:
    """The explanation with its first text at the level of sentences."""
    return e.at(("sentence", both_levels(e.settings.get("level", "token"))[1]))
