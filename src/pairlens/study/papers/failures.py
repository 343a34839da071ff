"""The pairs whose score is furthest from what people say, over and under, each explained."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.shapes import Array
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials, longer
from pairlens.study.papers.layers import LONGEST
from pairlens.study.result import Lacking, Result, percent, short_name, signed
from pairlens.study.statistics import Record, mean_of, spearman
from pairlens.text import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["failures"]
SHOWN = 3
"""Overestimated pairs, and underestimated ones, in the picture."""
LEAST = 0.005
"""The smallest difference between score and label that two digits show."""
FAR = 0.25
"""A score that differs more from its label counts as too high or too low."""


def study(materials: Materials) -> Result:
    """The pairs with the largest difference between the score and the label, both from 0 to 1."""
    rows, labels = materials.labelled()
    if not rows:
        raise Lacking("the data have no scores by people. They are the third column, or one named score or label.")
    scores = materials.score([(row.a, row.b) for row in rows])
    # A dot product has no scale of its own: scale it to fit the labels by least squares.
    fit = float(labels @ scores / (scores @ scores)) if materials.measure == "dot" else 1.0
    off = scores * fit - labels
    raw = [
        {"pair": row.number, "a": row.a, "b": row.b, "score": float(s), "label": float(y), "off": float(d)}
        for row, s, y, d in zip(rows, scores, labels, off, strict=True)
    ]
    order = [int(i) for i in np.argsort(off, kind="stable") if np.isfinite(off[i]) and longer(rows[i]) <= LONGEST]
    chosen = [i for i in order[::-1][:SHOWN] if off[i] > LEAST] + [i for i in order[:SHOWN] if off[i] < -LEAST]
    view = materials.choice.standard(materials.lens)[0]
    explained = {row.number: e.at("word") for row, e in materials.explain(view, [rows[i] for i in chosen])}
    table = [_record(raw[i], explained[rows[i].number]) for i in chosen if rows[i].number in explained]
    if not table:
        raise Lacking(f"no pair of texts of at most {LONGEST} words is off, or none of them could be explained.")
    figures = describe(scores * fit, labels, np.array([overlap(row.a, row.b) for row in rows]))
    settings = materials.describe([view], len(rows), scale=fit)
    return Result(ABOUT, settings, table, raw, figures, _sentences(figures, table), partial(draw, explained, table))


def overlap(a: str, b: str) -> float:
    """The share of two texts' words that both have, without case and punctuation.

    Example:
        >>> overlap("Good tea!", "good coffee")
        0.3333333333333333
    """
    one, other = (
        {text[i:j].lower() for i, j in words(text) if any(char.isalnum() for char in text[i:j])} for text in (a, b)
    )
    return len(one & other) / max(1, len(one | other))


def describe(scores: Array, labels: Array, overlaps: Array) -> Record:
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
        "overlap": {name: mean_of(overlaps[members]) for name, members in groups.items()},
    }


def _record(row: Record, e: Explanation) -> Record:
    top = e.top(3)
    return {
        "pair": row["pair"],
        "kind": "over" if row["off"] > 0 else "under",
        **row,
        "strongest": ", ".join(f"{pair.a.text} / {pair.b.text} {signed(pair.value)}" for pair in top),
    }


def _sentences(figures: Record, table: Sequence[Record]) -> list[str]:
    agree = figures["spearman"]
    sentences = [] if agree is None else [f"Over all pairs the Spearman correlation with the labels is {agree:.3f}."]
    sentences.append(
        f"Scores are {figures['mean_absolute']:.2f} off on average, {percent(figures['over'])} of them by more than "
        f"{FAR} too high and {percent(figures['under'])} by more than {FAR} too low."
    )
    shared = figures["overlap"]
    if shared["over"] is not None and shared["under"] is not None:
        sentences.append(
            f"Two texts have {percent(shared['all'])} of their words in common on average, {percent(shared['over'])} "
            f"where the score is too high and {percent(shared['under'])} where it is too low."
        )
    sentences += [
        f"{row['kind'].capitalize()}estimated, pair {row['pair']}: “{row['a']}” and “{row['b']}” have "
        f"{row['score']:.2f}, and people say {row['label']:.2f}. Strongest: {row['strongest']}."
        for row in table
    ]
    return [*sentences, f"Only pairs of at most {LONGEST} words a text are shown; the others are counted."]


def draw(explained: dict[int, Explanation], table: Sequence[Record], settings: Any) -> Figure:
    """The picture: the overestimated pairs above, the underestimated below."""
    from pairlens.render import plot

    named = {f"{row['kind']}: people {row['label']:.2f}, pair {row['pair']}": explained[row["pair"]] for row in table}
    title = f"{ABOUT.title}: {short_name(settings['model'])}, the extremes of {settings['pairs']:,} pairs"
    return plot.grid(named, width=10.5, columns=min(SHOWN, len(table)), title=title)[0]
