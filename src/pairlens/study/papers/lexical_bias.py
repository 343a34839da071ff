"""Whether pairs of the same word contribute more than words of the same meaning, at equal scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.shapes import Array
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.language.annotations import Side, by_word, report
from pairlens.study.language.english import FUNCTION, FUNCTION_TAGS, is_cue
from pairlens.study.language.wordnet import UPOS, WordNet
from pairlens.study.materials import Materials
from pairlens.study.papers.failures import scaled
from pairlens.study.result import Result, Row, percent, signed
from pairlens.study.statistics import spearman

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["lexical-bias"]
CLASSES = ("same content word", "same function word", "synonyms", "other words")
PLURAL = dict(
    zip(CLASSES, ("the same content words", "the same function words", "synonyms", "other words"), strict=True)
)
BINS = 5
FEWEST = 10
"""Pairs of words that a point of the picture stands for at least."""
Lexeme = tuple[str, frozenset[str], str, bool]
"""A word as written, the dictionary forms it may have, its part of speech for WordNet or "", whether it is content."""


def study(materials: Materials) -> Result:
    """Contributions of pairs of words by whether they are the same, by fifths of the score."""
    views = materials.choice.standard(materials.lens)
    mismatches: Counter[str] = Counter()
    classify = classifier(materials.wordnet)
    raw: list[Row] = []
    pairs: list[Row] = []
    for view in views:
        mismatches.clear()
        for row, e in materials.explain(view):
            found = _words(e, materials, mismatches)
            if found is not None:
                own = list(_pairs(*found, classify))
                pairs.append({"view": view, "pair": row.number, "score": e.score, "label": row.score, **_sums(own, e)})
                raw += [{"view": view.label, "pair": row.number, "score": e.score, **cell} for cell in own]
    table = describe(raw, pairs)
    figures = {
        view.label: {
            **explained([own for own in pairs if own["view"] == view]),
            "highest_fifth": {
                row["kind"]: row["mean"] for row in table if row["view"] == view.label and row["fifth"] == BINS
            },
        }
        for view in views
    }
    lacking = [] if materials.wordnet else ["WordNet, so that synonyms are among the other words"]
    lacking += (
        [] if materials.annotations or materials.wordnet else ["lemmas, so that words are the same if written so"]
    )
    settings = materials.describe(
        views,
        len(pairs) // len(views),
        lacking=lacking,
        mismatches=report(mismatches) if materials.annotations else None,
    )
    return Result(
        ABOUT,
        table,
        raw,
        figures=figures,
        sentences=_sentences(table, figures, lacking),
        settings=settings,
        draw=lambda: draw(table, figures, settings),
    )


def _words(
    e: Explanation, materials: Materials, mismatches: Counter[str]
) -> tuple[list[Lexeme], list[Lexeme], Array] | None:
    """The words of both texts and the matrix of their contributions: a parser's, or else pairlens' own."""
    if materials.annotations is not None:
        found = by_word(e, materials.annotations, mismatches)
        if found is None:
            return None
        a, b, matrix = found
        return _parsed(e.text_a, a), _parsed(e.text_b, b), matrix
    e = e.at("word")
    kept = [[i for i, unit in enumerate(units) if unit.kind == "text"] for units in (e.units_a, e.units_b)]
    forms = ([units[i].text for i in own] for own, units in zip(kept, (e.units_a, e.units_b), strict=True))
    a, b = ([_lexeme(form, materials.wordnet) for form in own] for own in forms)
    return a, b, e.matrix[np.ix_(*kept)]


def _parsed(text: str, side: Side) -> list[Lexeme]:
    return [
        (
            text[word.start : word.end],
            frozenset([word.lemma]),
            UPOS.get(word.upos, ""),
            word.upos not in FUNCTION_TAGS if word.upos else word.lemma not in FUNCTION,
        )
        for word in side.words
    ]


def _lexeme(form: str, wordnet: WordNet | None) -> Lexeme:
    plain = form.lower()
    lemmas = wordnet.lemmas(plain) if wordnet is not None else set()
    return form, frozenset(lemmas or {plain}), "", plain not in FUNCTION and not is_cue(plain)


def classifier(wordnet: WordNet | None) -> Callable[[Lexeme, Lexeme], str | None]:
    """A function that says how two words are related, by `CLASSES`; None for punctuation."""

    @cache
    def synonyms(one: frozenset[str], other: frozenset[str], part: str) -> bool:
        if wordnet is None:
            return False
        return any(wordnet.synonyms(a, b, part or None) for a in one for b in other)

    def classify(one: Lexeme, other: Lexeme) -> str | None:
        if not all(any(char.isalnum() for char in word[0]) for word in (one, other)):
            return None
        if one[1] & other[1]:
            return CLASSES[0] if one[3] and other[3] else CLASSES[1]
        part = one[2] if one[2] == other[2] else ""
        same_part = one[2] == other[2]
        if one[3] and other[3] and same_part and synonyms(one[1], other[1], part):
            return CLASSES[2]
        return CLASSES[3]

    return classify


def _pairs(
    a: Sequence[Lexeme], b: Sequence[Lexeme], matrix: Array, classify: Callable[[Lexeme, Lexeme], str | None]
) -> Iterator[Row]:
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            kind = classify(one, other)
            if kind is not None:
                yield {"kind": kind, "a": one[0], "b": other[0], "value": float(matrix[i, j])}


def _sums(cells: Sequence[Row], e: Explanation) -> Row:
    """What each class sums to in one pair of texts, what all tokens sum to, and how many words are the same."""
    sums = {kind: sum(cell["value"] for cell in cells if cell["kind"] == kind) for kind in CLASSES}
    content = {cell["a"].lower() for cell in cells} | {cell["b"].lower() for cell in cells}
    same = {cell["a"].lower() for cell in cells if cell["kind"] == CLASSES[0]}
    return {"sums": sums, "total": float(e.matrix.sum()), "overlap": len(same) / max(1, len(content))}


def edges(scores: Array, count: int = BINS) -> Array:
    """The scores that part pairs into groups of equal size, (count + 1,).

    Example:
        >>> edges(np.array([0.0, 0.1, 0.2, 0.3, 0.4, 0.5]), 2)
        array([0.  , 0.25, 0.5 ])
    """
    return np.quantile(scores, np.linspace(0, 1, count + 1))


def describe(raw: Sequence[Row], pairs: Sequence[Row]) -> list[Row]:
    """One row for every view, fifth of the score and class."""
    table: list[Row] = []
    for view in dict.fromkeys(own["view"] for own in pairs):
        bounds = edges(np.array([own["score"] for own in pairs if own["view"] == view]))
        groups: dict[tuple[int, str], list[float]] = {}
        for cell in raw:
            if cell["view"] == view.label:
                place = int(np.clip(np.searchsorted(bounds, cell["score"], "right") - 1, 0, BINS - 1))
                groups.setdefault((place, cell["kind"]), []).append(cell["value"])
        for place in range(BINS):
            for kind in CLASSES:
                values = np.array(groups.get((place, kind), []))
                known = len(values) > 0
                table.append(
                    {
                        "view": view.label,
                        "fifth": place + 1,
                        "score_low": float(bounds[place]),
                        "score_high": float(bounds[place + 1]),
                        "kind": kind,
                        "word_pairs": len(values),
                        "mean": float(values.mean()) if known else None,
                        "error": float(values.std() / np.sqrt(len(values))) if known else None,
                    }
                )
    return table


def explained(pairs: Sequence[Row]) -> Row:
    """How much of the whole each class explains, over all pairs together and as the mean over pairs."""
    total = sum(own["total"] for own in pairs)
    shares = {}
    for kind in CLASSES:
        each = np.array([own["sums"][kind] / own["total"] for own in pairs if own["total"]])
        shares[kind] = {
            "of_all": sum(own["sums"][kind] for own in pairs) / total if total else None,
            "mean": float(each.mean()) if len(each) else None,
            "sd": float(each.std()) if len(each) else None,
            "median": float(np.median(each)) if len(each) else None,
        }
    labelled = [own for own in pairs if own["label"] is not None]
    bias = None
    if labelled:
        off = np.array([own["score"] for own in labelled]) - scaled(np.array([own["label"] for own in labelled]))
        bias = spearman(np.array([own["overlap"] for own in labelled]), off)
    return {"shares": shares, "overlap_against_error": bias}


def _sentences(table: Sequence[Row], figures: Row, lacking: Sequence[str]) -> list[str]:
    said = []
    found = occurring(table)
    for view, own in figures.items():
        rows = [row for row in table if row["view"] == view and row["mean"] is not None]
        top = {row["kind"]: row for row in rows if row["fifth"] == BINS}
        shares = ", ".join(
            f"{percent(share['of_all'])} {PLURAL[kind]}"
            for kind, share in own["shares"].items()
            if share["of_all"] is not None and kind in found
        )
        said.append(
            f"{view}: shares of what all pairs sum to are {shares}; the rest are punctuation and special tokens."
        )
        if CLASSES[0] in top and CLASSES[2] in top:
            said.append(
                f"{view}: in the fifth of the pairs with the highest scores, a pair of the same content word "
                f"contributes {signed(top[CLASSES[0]]['mean'])}, a pair of synonyms "
                f"{signed(top[CLASSES[2]]['mean'])}, other words {signed(top[CLASSES[3]]['mean'], 4)}."
            )
    bias = next(iter(figures.values()))["overlap_against_error"]
    if bias is not None:
        said.append(
            "Between the share of equal content words and how far scores are above people's, Spearman is "
            f"{signed(bias, 2)}."
        )
    return [*said, *(f"Lacking: {what}." for what in lacking)]


def occurring(table: Sequence[Row]) -> dict[str, int]:
    """The classes that any pair of words belongs to, each with its place, which has a colour."""
    own = {row["kind"] for row in table if row["word_pairs"]}
    return {kind: place for place, kind in enumerate(CLASSES) if kind in own}


def draw(table: Sequence[Row], figures: Row, settings: Any) -> Figure:
    """The picture: mean contributions by fifths of the score, and how much of the whole each class explains."""
    views = list(figures)
    figure, axes = picture.sheet(3.5, 1, len(views) + 1, width=3.5 * (len(views) + 1))
    kinds = occurring(table)
    for axis, view in zip(axes[0], views, strict=False):
        for kind, place in kinds.items():
            own = [row for row in table if row["view"] == view and row["kind"] == kind]
            rows = [row for row in own if row["word_pairs"] >= FEWEST]
            axis.errorbar(
                [(row["score_low"] + row["score_high"]) / 2 for row in rows],
                [row["mean"] for row in rows],
                yerr=[1.96 * row["error"] for row in rows],
                color=picture.CATEGORIES[place],
                marker=picture.MARKERS[place],
                markersize=4.5,
                linewidth=1.3,
                elinewidth=0.8,
                label=kind,
            )
        axis.axhline(0, color="#888888", linewidth=0.8, zorder=0)
        picture.label(axis, x="score (middle of each fifth of the pairs)", title=view)
    picture.label(axes[0][0], y="mean contribution of a pair of words")
    picture.legend_below(figure, axes[0][0])
    _shares(axes[0][-1], figures, views, kinds)
    picture.caption(figure, ABOUT.title, settings, "error bars: 95 % intervals of the mean")
    return figure


def _shares(axis: Any, figures: Row, views: Sequence[str], kinds: dict[str, int]) -> None:
    for kind, place in kinds.items():
        values = [figures[view]["shares"][kind]["of_all"] or 0.0 for view in views]
        heights = [-(line + (place - 1.5) * 0.2) for line in range(len(views))]
        axis.barh(heights, values, height=0.18, color=picture.CATEGORIES[place], label=kind)
        for height, value in zip(heights, values, strict=True):
            side, text = ("left", f" {percent(value)}") if value >= 0 else ("right", f"{percent(value)} ")
            style: Any = {"va": "center", "ha": side, "fontsize": picture.SIZE - 0.5, "color": picture.INK}
            axis.text(value, height, text, **style)
    axis.set_yticks([-line for line in range(len(views))], [view.replace(", ", "\n") for view in views])
    axis.tick_params(axis="y", length=0)
    axis.grid(axis="y", visible=False)
    axis.axvline(0, color="#888888", linewidth=0.8)
    axis.margins(x=0.22)
    axis.locator_params(axis="x", nbins=5)
    picture.percent(axis.xaxis)
    picture.label(axis, x="share of the sum over all pairs", title="what explains the scores")
