"""The result: why two texts are as similar as the model says."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from pairlens.attribution.contributions import freeze, regroup, summed
from pairlens.errors import choose, whole
from pairlens.io import documents
from pairlens.shapes import Array, Matrix, PerUnitA, PerUnitB
from pairlens.text.units import Level, Unit, both_levels, plain_level


@dataclass(frozen=True, slots=True)
class Pair:
    """One entry of the matrix: a unit of each text, what they contribute together, and how far off that may be."""

    a: Unit
    b: Unit
    value: float
    error: float
    row: int
    column: int


@dataclass(frozen=True, eq=False)
class Explanation:
    """A similarity score, split into signed contributions of pairs of units.

    score = base + effects_a.sum() + effects_b.sum() + matrix.sum() + gap, always.

    Attributes:
        text_a: the first text. `text_b`: the second.
        score: the model's own similarity of the two.
        matrix: what each unit of a and each unit of b contribute together, (units_a, units_b), float64. Special
            tokens are among the units.
        units_a: what the rows belong to: text, span, kind. `units_b`: the columns.
        tokens_a: the model's tokens of text a. `tokens_b`: of text b.
        base: what the references contribute.
        effects_a: what units of a contribute with the other's reference, (units_a,); zeros but for "keep".
        effects_b: likewise, (units_b,).
        gap: the integration's own error of the sum, signed.
        gap_a: the relative error of text a's decomposition, measured in all dimensions. `gap_b`: of text b's.
        entry_error: an estimate of each entry's own error, (units_a, units_b).
        truncated_a: text a was longer than the model takes. `truncated_b`: text b was.
        settings: what made it: model, method, layer, reference, reference_terms, measure, level, rule, roles, nodes.
    """

    text_a: str
    text_b: str
    score: float
    matrix: Matrix
    units_a: tuple[Unit, ...]
    units_b: tuple[Unit, ...]
    tokens_a: tuple[str, ...]
    tokens_b: tuple[str, ...]
    base: float
    effects_a: PerUnitA
    effects_b: PerUnitB
    gap: float
    gap_a: float
    gap_b: float
    entry_error: Matrix
    truncated_a: bool = False
    truncated_b: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze(self)

    if not TYPE_CHECKING:  # a type checker would take misspelt names for fields

        def __getattr__(self, name: str) -> Any:
            """A field of a `lazy` explanation that was not made yet, and with it all the others."""
            rest = vars(self).get("_rest")
            if rest is not None:
                make, about = rest
                for field, value in make(self, *about).items():
                    vars(self).setdefault(field, value)  # another thread may have been here meanwhile
                vars(self).pop("_rest", None)
            return object.__getattribute__(self, name)

    def __dir__(self) -> list[str]:
        """All names, those of fields that were not made yet among them."""
        return sorted({*super().__dir__(), *(own.name for own in fields(self))} - {"_rest"})

    def __getstate__(self) -> dict[str, Any]:
        """What to pickle or copy: every field."""
        return {own.name: getattr(self, own.name) for own in fields(self)}

    @property
    def truncated(self) -> bool:
        """Whether either text was longer than the model takes."""
        return self.truncated_a or self.truncated_b

    @property
    def row(self) -> Array:
        """What each unit of a contributes with all of b: the sums of the matrix's rows, (units_a,)."""
        return self.matrix.sum(1)

    @property
    def column(self) -> Array:
        """What each unit of b contributes with all of a: the sums of the matrix's columns, (units_b,)."""
        return self.matrix.sum(0)

    def top(self, k: SupportsIndex = 10, *, special: bool = True) -> list[Pair]:
        """The k strongest pairs of either sign, strongest first; `special=False` leaves special tokens out."""
        count = whole("top's k", k, 1)
        shown = np.ones_like(self.matrix, dtype=bool)
        if not special:
            shown &= np.array([u.kind != "special" for u in self.units_a], dtype=bool)[:, None]
            shown &= np.array([u.kind != "special" for u in self.units_b], dtype=bool)[None, :]
        order = np.argsort(np.where(shown, -np.abs(self.matrix), np.inf), axis=None, kind="stable")
        places = [divmod(int(flat), self.matrix.shape[1]) for flat in order[: min(count, int(shown.sum()))]]
        return [
            Pair(self.units_a[i], self.units_b[j], float(self.matrix[i, j]), float(self.entry_error[i, j]), i, j)
            for i, j in places
        ]

    def at(self, level: Level | tuple[Level, Level]) -> Explanation:
        """The same explanation at a coarser level ("word", "sentence", spans): entries that belong together add up.

        A pair of levels treats the two texts differently: `at(("word", "sentence"))`. Errors add up to a bound; for the
        standard error of a sum, regroup the two `Contributions` and compare them.
        """
        level_a, level_b = both_levels(level)
        old_a, old_b = (
            old if isinstance(old, str) else [(start, end) for start, end in old]
            for old in both_levels(self.settings.get("level", "token"))
        )
        units_a, sums_a = regroup(self.text_a, self.units_a, old_a, level_a)
        units_b, sums_b = regroup(self.text_b, self.units_b, old_b, level_b)
        plain_a, plain_b = plain_level(level_a), plain_level(level_b)
        return replace(
            self,
            matrix=sums_a @ self.matrix @ sums_b.T,
            units_a=units_a,
            units_b=units_b,
            effects_a=sums_a @ self.effects_a,
            effects_b=sums_b @ self.effects_b,
            entry_error=sums_a @ self.entry_error @ sums_b.T,
            settings={
                **self.settings,
                "level": plain_a if plain_a == plain_b else [plain_a, plain_b],
                **(
                    summed({**self.settings, "level": old_a}, sums_a)
                    or summed({**self.settings, "level": old_b}, sums_b)
                ),
            },
        )

    def swap(self) -> Explanation:
        """The explanation of (b, a)."""
        # Settings that differ between the texts are pairs, and so are some others.
        pairs = {name: v[::-1] for name, v in self.settings.items() if isinstance(v, list) and name != "level"}
        level_a, level_b = both_levels(self.settings.get("level", "token"))
        settings = {**self.settings, **pairs, "level": level_a if level_a == level_b else [level_b, level_a]}
        sides = ("text", "units", "tokens", "effects", "gap", "truncated")
        swapped = {f"{name}_{x}": getattr(self, f"{name}_{y}") for name in sides for x, y in (("a", "b"), ("b", "a"))}
        return replace(self, matrix=self.matrix.T, entry_error=self.entry_error.T, settings=settings, **swapped)

    def save(self, path: str | Path) -> Path:
        """Write to a file: .json, .npz, .csv or .parquet, all lossless, or a picture.

        .html is the interactive picture; .png, .svg and .pdf are the heat map that `plot` draws.
        """
        suffix = documents.check(path, picture=True).suffix.lower()
        if suffix == documents.PICTURE:
            from pairlens.render import html

            return html.save(self, path)
        if suffix in documents.PLOTS:
            from pairlens.render import plot

            return plot.save(self.plot()[0], path)
        return documents.save(self, path)

    def plot(self, kind: str = "heatmap", **options: Any) -> tuple[Any, Any]:
        """Draw it with matplotlib, for a paper.

        Args:
            kind: "heatmap", the matrix, or "links", both texts with curves between their units.
            options: those of `pairlens.render.plot.heatmap` or `links`, such as `width=6.9` or `ax=`.

        Returns:
            The figure and its axes; nothing is shown, and no setting of matplotlib's is changed.
        """
        kind = choose("kind of plot", kind, ("heatmap", "links"))
        from pairlens.render import plot

        return (plot.heatmap if kind == "heatmap" else plot.links)(self, **options)

    @staticmethod
    def load(path: str | Path) -> Explanation:
        """Read what `save` wrote."""
        return documents.load(Explanation, path)

    def __repr__(self) -> str:
        from pairlens.render.text import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from pairlens.render.notebook import notebook

        return notebook(self)


def lazy(known: dict[str, Any], rest: Callable[..., dict[str, Any]], *about: Any) -> Explanation:
    """An explanation of which some fields are known; `rest` makes the others when one of them is looked at.

    Among all pairs of many texts most are looked at for their score or their matrix.

    Args:
        known: the fields that are known; taken over as it is. Fields with a default must be among them, as the default
            would be found.
        rest: makes the other fields of the explanation it is given. Arrays must be read-only.
        about: what else `rest` is given.
    """
    known["_rest"] = rest, about
    explanation = object.__new__(Explanation)
    object.__setattr__(explanation, "__dict__", known)
    return explanation


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

    def top(self, k: int = 10, *, special: bool = True) -> list[tuple[str, Pair]]:
        """The k strongest pairs of both explanations, each with the text it is with, "a" or "b".

        Values are contributions to the difference: positive ones speak for a, whichever text the pair is with.
        """
        with_a = [("a", pair) for pair in self.a.top(k, special=special)]
        with_b = [("b", replace(pair, value=-pair.value)) for pair in self.b.top(k, special=special)]
        return sorted(with_a + with_b, key=lambda item: -abs(item[1].value))[:k]

    def __repr__(self) -> str:
        from pairlens.render.text import contrast_summary

        return contrast_summary(self)
