"""The pairs whose score is furthest from what people say, over and under, each explained."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.shapes import Array
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials
from pairlens.study.papers.layers import LONGEST
from pairlens.study.result import Lacking, Result, Row, percent, signed
from pairlens.study.statistics import spearman
from pairlens.text import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["failures"]
SHOWN = 3
"""Pairs of either kind."""
LEAST = 0.005
"""How far a score is off that two digits show."""
FAR = 0.25
"""How far a score is off that counts as too high or too low."""


def study(materials: Materials) -> Result:
    """The pairs with the largest difference between the score and the label, both from 0 to 1."""
    rows = [row for row in materials.rows if row.score is not None]
    if not rows:
        raise Lacking("the data have no scores by people. They are the third column, or one named score or label.")
    labels = scaled(np.array([float(row.score or 0) for row in rows]))
    scores = materials.score([(row.a, row.b) for row in rows])
    # A dot product has no scale of its own: it gets the one that fits the labels best.
    fit = float(labels @ scores / (scores @ scores)) if materials.measure == "dot" else 1.0
    off = scores * fit - labels
    view = materials.choice.standard(materials.lens)[0]
    short = np.array([max(len(words(row.a)), len(words(row.b))) <= LONGEST for row in rows])
    order = np.argsort(off, kind="stable")
    over, under = ([int(i) for i in side if np.isfinite(off[i]) and short[i]] for side in (order[::-1], order))
    chosen = [i for i in over[:SHOWN] if off[i] > LEAST] + [i for i in under[:SHOWN] if off[i] < -LEAST]
    found = {row.number: e.at("word") for row, e in materials.explain(view, [rows[i] for i in chosen])}
    table = [
        _record(rows[i], scores[i], labels[i], off[i], found[rows[i].number]) for i in chosen if rows[i].number in found
    ]
    if not table:
        raise Lacking(f"no pair of texts of at most {LONGEST} words is off, or none of them could be explained.")
    raw = [
        {"pair": row.number, "a": row.a, "b": row.b, "score": float(s), "label": float(y), "off": float(d)}
        for row, s, y, d in zip(rows, scores, labels, off, strict=True)
    ]
    figures = describe(scores * fit, labels, np.array([overlap(row.a, row.b) for row in rows]))
    settings = materials.describe([view], len(rows), scale=fit)
    return Result(
        ABOUT,
        table,
        raw,
        figures=figures,
        sentences=_sentences(figures, table),
        settings=settings,
        draw=lambda: draw({row["pair"]: found[row["pair"]] for row in table}, table, settings),
    )


def scaled(labels: Array) -> Array:
    """Labels from 0 to 1: divided by 5 where any is above 1, and by the largest where any is above 5.

    Example:
        >>> scaled(np.array([0.0, 2.5, 5.0]))
        array([0. , 0.5, 1. ])
        >>> scaled(np.array([50.0, 100.0]))
        array([0.5, 1. ])
    """
    most = float(labels.max())
    return labels / (1 if most <= 1 else max(5.0, most))


def overlap(a: str, b: str) -> float:
    """The share of two texts' words, whatever their case, that both have; punctuation is left out.

    Example:
        >>> overlap("Good tea!", "good coffee")
        0.3333333333333333
    """
    one, other = (
        {text[i:j].lower() for i, j in words(text) if any(char.isalnum() for char in text[i:j])} for text in (a, b)
    )
    return len(one & other) / max(1, len(one | other))


def describe(scores: Array, labels: Array, overlaps: Array) -> Row:
    """How far scores are from labels over all pairs, and how many words the pairs share whose score is far off."""
    known = np.isfinite(scores)
    off, overlaps = (scores - labels)[known], overlaps[known]
    groups = {"over": off > FAR, "under": off < -FAR, "all": np.ones(len(off), dtype=bool)}
    return {
        "spearman": spearman(scores[known], labels[known]),
        "mean_off": float(off.mean()),
        "mean_absolute": float(np.abs(off).mean()),
        "over": float(groups["over"].mean()),
        "under": float(groups["under"].mean()),
        "overlap": {name: float(overlaps[own].mean()) if own.any() else None for name, own in groups.items()},
    }


def _record(row: Any, score: float, label: float, off: float, e: Explanation) -> Row:
    top = e.top(3, special=False)
    return {
        "pair": row.number,
        "kind": "over" if off > 0 else "under",
        "a": row.a,
        "b": row.b,
        "score": float(score),
        "label": float(label),
        "off": float(off),
        "strongest": ", ".join(f"{pair.a.text} / {pair.b.text} {signed(pair.value)}" for pair in top),
    }


def _sentences(figures: Row, table: Sequence[Row]) -> list[str]:
    agree = figures["spearman"]
    said = [] if agree is None else [f"Over all pairs the Spearman correlation with the labels is {agree:.3f}."]
    said.append(
        f"Scores are {figures['mean_absolute']:.2f} off on average, {percent(figures['over'])} of them by more than "
        f"{FAR} too high and {percent(figures['under'])} by more than {FAR} too low."
    )
    shared = figures["overlap"]
    if shared["over"] is not None and shared["under"] is not None:
        said.append(
            f"Two texts have {percent(shared['all'])} of their words in common on average, {percent(shared['over'])} "
            f"where the score is too high and {percent(shared['under'])} where it is too low."
        )
    said += [
        f"{row['kind'].capitalize()}estimated, pair {row['pair']}: “{row['a']}” and “{row['b']}” have "
        f"{row['score']:.2f}, and people say {row['label']:.2f}. Strongest: {row['strongest']}."
        for row in table
    ]
    return [*said, f"Only pairs of at most {LONGEST} words a text are shown; the others are counted."]


def draw(found: dict[int, Explanation], table: Sequence[Row], settings: Any) -> Figure:
    """The picture: the overestimated pairs above, the underestimated below."""
    from pairlens.render import plot

    names = {
        f"{'over' if row['kind'] == 'over' else 'under'}: people {row['label']:.2f}, pair {row['pair']}": found[
            row["pair"]
        ]
        for row in table
    }
    model = str(settings["model"]).rstrip("/").rsplit("/", 1)[-1]
    title = f"{ABOUT.title}: {model}, the extremes of {settings['pairs']:,} pairs"
    return plot.grid(names, width=10.5, columns=min(SHOWN, len(table)), title=title)[0]
