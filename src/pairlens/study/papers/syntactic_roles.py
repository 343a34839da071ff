"""Which syntactic roles contribute together with which, normalised by how often they meet."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.language.relations import Words, gather, mismatch_sentence, relation
from pairlens.study.materials import Materials
from pairlens.study.result import Result, signed
from pairlens.study.statistics import Record, distinct, where

ABOUT = CATALOGUE["syntactic-roles"]
FEWEST = 20
"""Relations with fewer pairs of words are not mentioned in sentences."""
SHOWN = 12


def study(materials: Materials) -> Result:
    """The mean contribution of a pair of words by their dependency relations, and their share of all against chance."""
    gathered, settings = gather(materials, lambda word: word.deprel, "dependency relations")
    table = [{"view": view.label, **row} for view, pairs in gathered.items() for row in describe(pairs)]
    raw = [
        {"pair": words.pair, "view": view.label, "relation": name, **sums}
        for view, pairs in gathered.items()
        for words in pairs
        for name, sums in by_relation([words]).items()
    ]
    figures = {view.label: _figures(where(table, view=view.label)) for view in gathered}
    return Result(ABOUT, settings, table, raw, figures, _sentences(table, settings), partial(draw, table))


def by_relation(pairs: Sequence[Words]) -> dict[str, Record]:
    """The number of pairs of words of each relation, and their sums with and without signs."""
    sums: dict[str, Record] = {}
    for words in pairs:
        for name, value in zip(words.relations, words.values.tolist(), strict=True):
            total = sums.setdefault(name, {"word_pairs": 0, "sum": 0.0, "absolute": 0.0})
            total["word_pairs"] += 1
            total["sum"] += value
            total["absolute"] += abs(value)
    return sums


def describe(pairs: Sequence[Words]) -> list[Record]:
    """One row a relation, the largest mean contribution first.

    `mean` is per pair of words; `lift` is the relation's share of all contributions without signs, divided by its share
    of all pairs of words: 1 is what chance gives.
    """
    sums = by_relation(pairs)
    count, absolute = (sum(total[name] for total in sums.values()) for name in ("word_pairs", "absolute"))
    rows = [
        {
            "relation": name,
            "word_pairs": total["word_pairs"],
            "mean": total["sum"] / total["word_pairs"],
            "mean_absolute": total["absolute"] / total["word_pairs"],
            "share": total["absolute"] / absolute if absolute else 0.0,
            "frequency": total["word_pairs"] / count,
            "lift": total["absolute"] / absolute * count / total["word_pairs"] if absolute else 0.0,
        }
        for name, total in sums.items()
    ]
    return sorted(rows, key=lambda row: (-row["mean"], row["relation"]))


def _often(rows: Sequence[Record]) -> list[Record]:
    return [row for row in rows if row["word_pairs"] >= FEWEST]


def _figures(rows: Sequence[Record]) -> Record:
    often = _often(rows)
    return {
        "highest": {row["relation"]: row["mean"] for row in often[:8]},
        "lift": {row["relation"]: row["lift"] for row in sorted(often, key=lambda row: -row["lift"])[:8]},
    }


def _sentences(table: Sequence[Record], settings: Record) -> list[str]:
    sentences = []
    for label in distinct(table, "view"):
        rows = _often(where(table, view=label))
        if not rows:
            continue
        best = ", ".join(f"{row['relation']} ({signed(row['mean'], 4)}, {row['lift']:.1f} times)" for row in rows[:3])
        lowest = rows[-1]
        sentences.append(
            f"{label}: the relations with the highest mean contribution of a pair of words are {best}; the lowest is "
            f"{lowest['relation']} ({signed(lowest['mean'], 4)})."
        )
    return [
        *sentences,
        "In brackets are the mean, and how many times their share of all contributions, whatever the sign, is what "
        f"their number gives by chance. Relations with fewer than {FEWEST} pairs of words are left out here.",
        mismatch_sentence(settings),
    ]


def draw(table: Sequence[Record], settings: Any) -> picture.Figure:
    """The picture: for every view the mean contribution of the most frequent roles with each other."""
    from pairlens.render.plot.scale import COLOURS

    labels = distinct(table, "view")
    figure, axes = picture.sheet(4.4, 1, len(labels), width=max(5.5, 4.9 * len(labels)))
    roles = _roles(where(table, view=labels[0]))
    fewest = min(FEWEST, 5 * settings["pairs"] // 10 + 1)
    for axis, label in zip(axes[0], labels, strict=True):
        means = {row["relation"]: row["mean"] for row in where(table, view=label) if row["word_pairs"] >= fewest}
        grid = np.array([[means.get(relation(one, other), np.nan) for other in roles] for one in roles])
        limit = float(np.nanmax(np.abs(grid))) if np.isfinite(grid).any() else 1.0
        shown = axis.imshow(grid, cmap=COLOURS, vmin=-limit, vmax=limit)
        axis.set_xticks(range(len(roles)), roles, rotation=60, ha="right", rotation_mode="anchor")
        axis.set_yticks(range(len(roles)), roles)
        axis.tick_params(length=0)
        axis.grid(visible=False)
        axis.set_facecolor("#e4e4e4")
        bar = figure.colorbar(shown, ax=axis, shrink=0.75, pad=0.02)
        bar.ax.tick_params(labelsize=picture.SIZE - 0.5, colors=picture.INK, length=2)
        bar.set_label("mean contribution of a pair of words", fontsize=picture.SIZE, color=picture.INK)
        picture.label(axis, title=label)
    picture.caption(figure, ABOUT.title, settings, "grey: too few pairs of words")
    return figure


def _roles(rows: Sequence[Record]) -> list[str]:
    """The most frequent roles, those with the highest mean contribution first."""
    counts: Counter[str] = Counter()
    sums: defaultdict[str, float] = defaultdict(float)
    for row in rows:
        for role in set(row["relation"].split("–")):
            counts[role] += row["word_pairs"]
            sums[role] += row["mean"] * row["word_pairs"]
    often = sorted((role for role in counts if role), key=lambda role: (-counts[role], role))[:SHOWN]
    return sorted(often, key=lambda role: (-sums[role] / counts[role], role))
