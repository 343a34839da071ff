"""The result: why two texts are as similar as the model says."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, SupportsIndex

import numpy as np

from pairlens.attribution.contributions import deletes, freeze, regroup, summed
from pairlens.errors import choose, whole
from pairlens.shapes import Array, Mask, Matrix, PerUnitA, PerUnitB
from pairlens.text import Level, Unit, both_levels, find_unit, parts, plain_level, rows_without

if TYPE_CHECKING:
    from pairlens.attribution.forecast import Forecast

Deleted = str | SupportsIndex | Iterable[str | SupportsIndex]
"""Units of a text, each by its text or its index."""


@dataclass(frozen=True, slots=True)
class Pair:
    """One entry of the matrix: a unit of each text, what they contribute together, and how far off that may be.

    Attributes:
        a: the unit of text a, and `row` its index. `b`: of text b, and `column` its index.
        value: what the two contribute together.
        error: the entry's own error, as in `Explanation.entry_error`.
        noise: whether the value may be sampling noise: it is less than two standard errors from zero.
        settled: whether it is among the k strongest of `Explanation.top(k)` for sure: by two standard errors stronger
            than the strongest pair that is not listed.
    """

    a: Unit
    b: Unit
    value: float
    error: float
    row: int
    column: int
    noise: bool = False
    settled: bool = True

    def __repr__(self) -> str:
        error = f" ± {self.error:.3f}" if self.error else ""
        noise = ", may be noise" if self.noise else ""
        return f"Pair({self.a.text} · {self.b.text}, {self.value:+.3f}{error}{noise})"


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
        entry_error: each entry's own error, (units_a, units_b): a standard error for methods that sample, zero where
            all deletions were tried, and for methods that integrate a large overestimate.
        measured_a: the model's score without each unit of a, (units_a,); None where not every unit was deleted alone.
        measured_b: likewise for b.
        measured_pairs: the model's score without a unit of each text, (units_a, units_b), or None.
        forecast: how well the explanation predicts deletions that it has not seen; None where nothing was deleted.
        truncated_a: text a was longer than the model takes. `truncated_b`: text b was.
        unknown_a: words of a that the tokenizer does not know; to the model they are all the same. `unknown_b`: of b.
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
    measured_a: PerUnitA | None = None
    measured_b: PerUnitB | None = None
    measured_pairs: Matrix | None = None
    forecast: Forecast | None = None
    truncated_a: bool = False
    truncated_b: bool = False
    unknown_a: tuple[str, ...] = ()
    unknown_b: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze(self)

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

    @property
    def noise(self) -> Mask:
        """Which pairs may be sampling noise: less than two standard errors from zero; none where nothing is sampled."""
        return (np.abs(self.matrix) < 2 * self.entry_error) & deletes(self.settings)

    def without(self, a: Deleted = (), b: Deleted = ()) -> float:
        """What the score would be without some units, as the explanation predicts it.

        Only methods that delete units, with reference_terms="keep", are made to predict that.

        Args:
            a: the units of text a that are deleted: one or several, each by its text, such as "guitar", or by its index
                in `units_a`, which says which where a word occurs several times.
            b: likewise for text b.

        Example:
            >>> from pairlens import Lens
            >>> e = Lens().explain("A man plays a guitar.", "A man plays a flute.", level="word")
            >>> bool(e.without("guitar", "flute") > e.without("guitar"))
            True
            >>> e.without(["man", "guitar"]) == e.without([2, 5])
            True
        """
        kept_a, kept_b = _kept(self.units_a, a, "a"), _kept(self.units_b, b, "b")
        alone = self.effects_a @ kept_a + self.effects_b @ kept_b
        return float(self.base + self.gap + alone + kept_a @ self.matrix @ kept_b)

    def top(self, k: SupportsIndex = 10, *, special: bool = False) -> list[Pair]:
        """The k strongest pairs of either sign, strongest first; pairs that may be noise come after all others.

        Args:
            k: how many.
            special: list pairs of special tokens too.

        Example:
            >>> from pairlens import Lens
            >>> Lens().explain("A cat.", "A dog.", level="word").top(2)
            [Pair(cat · dog, +0.682), Pair(A · A, +0.220)]
        """
        count = whole("top's k", k, 1)
        shown = np.ones_like(self.matrix, dtype=bool)
        if not special:
            shown &= np.array([u.kind != "special" for u in self.units_a], dtype=bool)[:, None]
            shown &= np.array([u.kind != "special" for u in self.units_b], dtype=bool)[None, :]
        noise = self.noise
        order = np.lexsort((-np.abs(self.matrix).ravel(), noise.ravel(), ~shown.ravel()))[: int(shown.sum())]
        places = [divmod(int(flat), self.matrix.shape[1]) for flat in order[: count + 1]]
        return [self._pair(place, bool(noise[place]), places[count:]) for place in places[:count]]

    def _pair(self, place: tuple[int, int], noise: bool, following: Sequence[tuple[int, int]]) -> Pair:
        """One entry of the matrix; `following` is the strongest that is not listed with it, if there is one."""
        value, error = float(self.matrix[place]), float(self.entry_error[place])
        settled = not deletes(self.settings) or all(
            abs(value) - abs(self.matrix[other]) >= 2 * math.hypot(error, self.entry_error[other])
            for other in following
        )
        i, j = place
        return Pair(self.units_a[i], self.units_b[j], value, error, i, j, noise, settled)

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
        same = (units_a, units_b) == (self.units_a, self.units_b)
        plain_a, plain_b = plain_level(level_a), plain_level(level_b)
        return replace(
            self,
            matrix=sums_a @ self.matrix @ sums_b.T,
            units_a=units_a,
            units_b=units_b,
            effects_a=sums_a @ self.effects_a,
            effects_b=sums_b @ self.effects_b,
            entry_error=_bounding(self.units_a, sums_a) @ self.entry_error @ _bounding(self.units_b, sums_b).T,
            **({} if same else dict.fromkeys(("measured_a", "measured_b", "measured_pairs", "forecast"))),
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
        sides = ("text", "units", "tokens", "effects", "gap", "measured", "truncated", "unknown")
        swapped = {f"{name}_{x}": getattr(self, f"{name}_{y}") for name in sides for x, y in (("a", "b"), ("b", "a"))}
        measured = None if self.measured_pairs is None else self.measured_pairs.T
        matrices = {"matrix": self.matrix.T, "entry_error": self.entry_error.T, "measured_pairs": measured}
        return replace(self, **matrices, settings=settings, **swapped)

    def to_dict(self) -> dict[str, Any]:
        """Everything as plain dicts, lists, numbers and texts: what a saved .json file holds."""
        from pairlens.io import documents

        return documents.plain(self)

    def to_pandas(self) -> Any:
        """The pairs as a pandas DataFrame, one row each: units, their characters and kinds, value and error.

        Example:
            >>> from pairlens import Lens
            >>> pairs = Lens().explain("A cat.", "A dog.", level="word").to_pandas()
            >>> list(pairs.columns)
            ['a', 'b', 'value', 'error', 'a_start', 'a_end', 'b_start', 'b_end', 'a_kind', 'b_kind']
        """
        from pairlens.io import documents

        return documents.table(self)

    def save(self, path: str | Path) -> Path:
        """Write to a file: .json, .npz, .csv or .parquet, all lossless, or a picture.

        .csv and .parquet are the table of `to_pandas`, one pair a row, with everything else in a last column `pairlens`
        of the first row, or in the metadata.
        .html is the interactive picture; .png, .svg and .pdf are the heat map that `plot` draws.
        """
        from pairlens.io import documents

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
            The figure and its axes; nothing is shown, and no setting of matplotlib's is changed. In a notebook,
            `plot()[0]` as the last line of a cell shows it.
        """
        kind = choose("kind of plot", kind, ("heatmap", "links"))
        from pairlens.render import plot

        return (plot.heatmap if kind == "heatmap" else plot.links)(self, **options)

    @staticmethod
    def load(path: str | Path) -> Explanation:
        """Read what `save` wrote."""
        from pairlens.io import documents

        return documents.load(Explanation, path)

    def __repr__(self) -> str:
        from pairlens.render.text import summary

        return summary(self)

    def _repr_html_(self) -> str:
        from pairlens.render.notebook import notebook

        return notebook(self)


def _bounding(units: Sequence[Unit], sums: Array) -> Array:
    """What bounds the errors of sums, (new units, units): the errors of finer units add up.

    What an opened sentence does beyond its words is the whole less the words, whose errors are independent. So the
    error of the whole is no larger than that row's.
    """
    bounding = sums.copy()
    for index, unit in enumerate(units):
        if unit.kind == "sentence" and len(sums) < len(units):
            bounding[:, parts(units, index)] = 0.0
    return bounding


def _kept(units: Sequence[Unit], deleted: Deleted, side: str) -> Array:
    """Which rows of a text stay without some units, (units,), as 0 and 1."""
    several = [deleted] if isinstance(deleted, str) or not isinstance(deleted, Iterable) else deleted
    stay = np.ones(len(units))
    stay[rows_without(units, [find_unit(units, one, f"text {side}") for one in several])] = 0.0
    return stay
