"""Whether pairs of the same word contribute more than words of the same meaning, at equal scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from functools import cache, partial
from itertools import product
from typing import Any, NamedTuple

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.shapes import Array
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.language.annotations import AnnotatedWord, by_word, report
from pairlens.study.language.english import FUNCTION, FUNCTION_TAGS, is_cue
from pairlens.study.language.wordnet import UPOS, WordNet
from pairlens.study.materials import Materials, scaled, text_tokens, unit_texts
from pairlens.study.result import Result, percent, signed
from pairlens.study.statistics import Record, columns, group_by, spearman, spread, where

ABOUT = CATALOGUE["lexical-bias"]
PLURAL = {
    "same content word": "the same content words",
    "same function word": "the same function words",
    "synonyms": "synonyms",
    "other words": "other words",
}
CLASSES = tuple(PLURAL)
SAME, FUNCTIONAL, SYNONYMS, OTHER = CLASSES
BINS = 5
FEWEST = 10
"""Points of the picture with fewer pairs of words are left out."""


class Lexeme(NamedTuple):
    """A word of a text.

    Attributes:
        form: the word as written.
        lemmas: the dictionary forms it may have.
        part: its part of speech for WordNet, or "".
        content: whether it is a content word.
    """

    form: str
    lemmas: frozenset[str]
    part: str
    content: bool


Classify = Callable[[Lexeme, Lexeme], str | None]


def study(materials: Materials) -> Result:
    """Contributions of pairs of words by whether they are the same, by fifths of the score."""
    views = materials.choice.standard(materials.lens)
    mismatches: Counter[str] = Counter()
    classify = classifier(materials.wordnet)
    raw: list[Record] = []
    pairs: list[Record] = []
    for view in views:
        mismatches.clear()
        for row, e in materials.explain(view):
            words = _words(e, materials, mismatches)
            if words is not None:
                cells = list(_pairs(*words, classify))
                known = {"view": view.label, "pair": row.number, "score": e.score}
                pairs.append({**known, "label": row.score, **_sums(cells, e)})
                raw += [{**known, **cell} for cell in cells]
    table = describe(raw, pairs)
    figures = {
        view.label: {
            **explained(where(pairs, view=view.label)),
            "highest_fifth": {row["kind"]: row["mean"] for row in where(table, view=view.label, fifth=BINS)},
        }
        for view in views
    }
    lacking = [] if materials.wordnet else ["WordNet, so that synonyms are among the other words"]
    if not materials.annotations and not materials.wordnet:
        lacking.append("lemmas, so that words are the same if written so")
    counts = report(mismatches) if materials.annotations else None
    settings = materials.describe(views, len(pairs) // len(views), lacking=lacking, mismatches=counts)
    sentences = _sentences(table, figures, lacking)
    return Result(ABOUT, settings, table, raw, figures, sentences, partial(draw, table, figures))


def _words(
    e: Explanation, materials: Materials, mismatches: Counter[str]
) -> tuple[list[Lexeme], list[Lexeme], Array] | None:
    """The words of both texts and the matrix of their contributions: the annotations' words, or else pairlens' own."""
    if materials.annotations is not None:
        matched = by_word(e, materials.annotations, mismatches)
        if matched is None:
            return None
        words_a, words_b, matrix = matched
        return _parsed(e.text_a, words_a), _parsed(e.text_b, words_b), matrix
    e = e.at("word")
    a, b = ([_lexeme(word, materials.wordnet) for word in words] for words in unit_texts(e))
    return a, b, text_tokens(e)


def _parsed(text: str, words: Sequence[AnnotatedWord]) -> list[Lexeme]:
    return [
        Lexeme(
            text[word.start : word.end],
            frozenset([word.lemma]),
            UPOS.get(word.upos, ""),
            word.upos not in FUNCTION_TAGS if word.upos else word.lemma not in FUNCTION,
        )
        for word in words
    ]


def _lexeme(form: str, wordnet: WordNet | None) -> Lexeme:
    plain = form.lower()
    lemmas = wordnet.lemmas(plain) if wordnet is not None else set()
    return Lexeme(form, frozenset(lemmas or {plain}), "", plain not in FUNCTION and not is_cue(plain))


def classifier(wordnet: WordNet | None) -> Classify:
    """A function that returns the relation of two words, one of `CLASSES`; None for punctuation."""

    @cache
    def synonyms(one: frozenset[str], other: frozenset[str], part: str) -> bool:
        if wordnet is None:
            return False
        return any(wordnet.synonyms(a, b, part or None) for a in one for b in other)

    def classify(one: Lexeme, other: Lexeme) -> str | None:
        if not all(any(char.isalnum() for char in word.form) for word in (one, other)):
            return None
        content = one.content and other.content
        if one.lemmas & other.lemmas:
            return SAME if content else FUNCTIONAL
        if content and one.part == other.part and synonyms(one.lemmas, other.lemmas, one.part):
            return SYNONYMS
        return OTHER

    return classify


def _pairs(a: Sequence[Lexeme], b: Sequence[Lexeme], matrix: Array, classify: Classify) -> Iterator[Record]:
    for i, one in enumerate(a):
        for j, other in enumerate(b):
            kind = classify(one, other)
            if kind is not None:
                yield {"kind": kind, "a": one.form, "b": other.form, "value": float(matrix[i, j])}


def _sums(cells: Sequence[Record], e: Explanation) -> Record:
    """The sum of each class in one pair of texts, the sum of all tokens, and the share of words that are the same."""
    sums = {kind: sum(cell["value"] for cell in where(cells, kind=kind)) for kind in CLASSES}
    content = {cell[side].lower() for cell in cells for side in ("a", "b")}
    same = {cell["a"].lower() for cell in where(cells, kind=SAME)}
    return {"sums": sums, "total": float(e.matrix.sum()), "overlap": len(same) / max(1, len(content))}


def describe(raw: Sequence[Record], pairs: Sequence[Record]) -> list[Record]:
    """One row for every view, fifth of the score and class."""
    table: list[Record] = []
    for (view,), members in group_by(pairs, "view").items():
        bounds = np.quantile(columns(members, "score")[0], np.linspace(0, 1, BINS + 1))
        cells = where(raw, view=view)
        fifths = np.clip(np.searchsorted(bounds, columns(cells, "score")[0], "right"), 1, BINS).tolist()
        placed = ({**cell, "fifth": fifth} for cell, fifth in zip(cells, fifths, strict=True))
        groups = group_by(placed, "fifth", "kind")
        for fifth, kind in product(range(1, BINS + 1), CLASSES):
            values = [cell["value"] for cell in groups.get((fifth, kind), ())]
            mean, sd, _ = spread(values).values()
            low, high = bounds[fifth - 1 : fifth + 1].tolist()
            row = {"view": view, "fifth": fifth, "score_low": low, "score_high": high, "kind": kind}
            error = float(sd / np.sqrt(len(values))) if values else None
            table.append({**row, "word_pairs": len(values), "mean": mean, "error": error})
    return table


def explained(pairs: Sequence[Record]) -> Record:
    """The share of the whole that each class explains, of all pairs together and as the mean over pairs."""
    total = sum(pair["total"] for pair in pairs)
    shares = {
        kind: {
            "of_all": sum(pair["sums"][kind] for pair in pairs) / total if total else None,
            **spread(pair["sums"][kind] / pair["total"] for pair in pairs if pair["total"]),
        }
        for kind in CLASSES
    }
    labelled = [pair for pair in pairs if pair["label"] is not None]
    scores, labels, overlaps = (
        np.array([pair[name] for pair in labelled], dtype=float) for name in ("score", "label", "overlap")
    )
    return {"shares": shares, "overlap_against_error": spearman(overlaps, scores - scaled(labels))}


def _sentences(table: Sequence[Record], figures: Record, lacking: Sequence[str]) -> list[str]:
    sentences = []
    kinds = occurring(table)
    for view, numbers in figures.items():
        shares = ", ".join(
            f"{percent(share['of_all'])} {PLURAL[kind]}"
            for kind, share in numbers["shares"].items()
            if share["of_all"] is not None and kind in kinds
        )
        sentences.append(
            f"{view}: shares of what all pairs sum to are {shares}; the rest are punctuation and special tokens."
        )
        top = {kind: mean for kind, mean in numbers["highest_fifth"].items() if mean is not None}
        if SAME in top and SYNONYMS in top:
            sentences.append(
                f"{view}: in the fifth of the pairs with the highest scores, a pair of the same content word "
                f"contributes {signed(top[SAME])}, a pair of synonyms {signed(top[SYNONYMS])}, other words "
                f"{signed(top[OTHER], 4)}."
            )
    bias = next(iter(figures.values()))["overlap_against_error"]
    if bias is not None:
        sentences.append(
            "Between the share of equal content words and how far scores are above people's, Spearman is "
            f"{signed(bias, 2)}."
        )
    return [*sentences, *(f"Lacking: {what}." for what in lacking)]


def occurring(table: Sequence[Record]) -> dict[str, int]:
    """The classes that any pair of words belongs to, with their places, which give their colours."""
    kinds = {row["kind"] for row in table if row["word_pairs"]}
    return {kind: place for place, kind in enumerate(CLASSES) if kind in kinds}


def draw(table: Sequence[Record], figures: Record, settings: Any) -> picture.Figure:
    """The picture: mean contributions by fifths of the score, and how much of the whole each class explains."""
    views = list(figures)
    figure, axes = picture.sheet(3.5, 1, len(views) + 1, width=3.5 * (len(views) + 1))
    kinds = occurring(table)
    style: Any = {"markersize": 4.5, "linewidth": 1.3, "elinewidth": 0.8}
    for axis, view in zip(axes[0], views, strict=False):
        for kind, place in kinds.items():
            rows = [row for row in where(table, view=view, kind=kind) if row["word_pairs"] >= FEWEST]
            low, high, mean, error = columns(rows, "score_low", "score_high", "mean", "error")
            axis.errorbar((low + high) / 2, mean, yerr=1.96 * error, label=kind, **style, **picture.series(place))
        picture.guide(axis)
        picture.label(axis, x="score (middle of each fifth of the pairs)", title=view)
    picture.label(axes[0][0], y="mean contribution of a pair of words")
    picture.legend_below(figure, axes[0][0])
    _shares(axes[0][-1], figures, views, kinds)
    picture.caption(figure, ABOUT.title, settings, "error bars: 95 % intervals of the mean")
    return figure


def _shares(axis: Any, figures: Record, views: Sequence[str], kinds: dict[str, int]) -> None:
    """Draw the share of each class in each view, with its number."""
    for kind, place in kinds.items():
        values = [figures[view]["shares"][kind]["of_all"] or 0.0 for view in views]
        heights = picture.bars(axis, place, values, 0.18, label=kind)
        for height, value in zip(heights, values, strict=True):
            side, text = ("left", f" {percent(value)}") if value >= 0 else ("right", f"{percent(value)} ")
            style: Any = {"va": "center", "ha": side, "fontsize": picture.SIZE - 0.5, "color": picture.INK}
            axis.text(value, height, text, **style)
    picture.bar_names(axis, [view.replace(", ", "\n") for view in views])
    axis.axvline(0, color=picture.GUIDE, linewidth=0.8)
    axis.margins(x=0.22)
    axis.locator_params(axis="x", nbins=5)
    picture.label(axis, x="share of the sum over all pairs", title="what explains the scores")
