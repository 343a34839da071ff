"""How many of the strongest token pairs it takes to account for the score."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from pairlens.shapes import Array
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials
from pairlens.study.result import Result, percent
from pairlens.study.statistics import Record
from pairlens.study.views import Choice, View, papers_layer, static

ABOUT = CATALOGUE["cumulative"]
GRID = np.linspace(0.0, 1.0, 201)
"""Shares of the token pairs, from none to all."""
TOP = 0.05
BOUNDS = (0.05, 0.02)


def study(materials: Materials) -> Result:
    """Token pairs sorted by magnitude and added up, as a share of the sum of all of them."""
    views = materials.choice.standard(materials.lens)
    if materials.choice == Choice() and not materials.lens.adjusted and not static(materials.lens):
        views.insert(1, View("integrated-jacobian", papers_layer(materials.lens), "project"))
    curves: dict[View, Array] = {}
    raw: list[Record] = []
    for view in views:
        explained = [(row, e) for row, e in materials.explain(view) if e.matrix.sum() != 0]
        curves[view] = np.array([curve(e.matrix.ravel()) for _, e in explained])
        for (row, e), line in zip(explained, curves[view], strict=True):
            pair = {"pair": row.number, "view": view.label, "score": e.score, "sum": float(e.matrix.sum())}
            raw.append({**pair, "token_pairs": e.matrix.size, "top": at(line, TOP), "curve": line.tolist()})
    table = [describe(view.label, curves[view]) for view in views if len(curves[view])]
    settings = materials.describe(views, max(row["pairs"] for row in table))
    figures = {row["view"]: {name: value for name, value in row.items() if name != "view"} for row in table}
    sentences = [
        *map(_sentence, table),
        "Special tokens are counted. A share is of the sum of all pairs, which is the score less the base and the "
        "effects of single tokens; where that is close to zero, shares are huge: they raise the standard deviation "
        "and hardly change the median.",
    ]
    return Result(ABOUT, settings, table, raw, figures, sentences, partial(draw, curves, table))


def curve(values: Array) -> Array:
    """The share of their sum that the strongest values reach, for every share of them in `GRID`, (201,).

    Example:
        >>> at(curve(np.array([1.0, 4.0, -2.0, 1.0])), 0.5)
        0.5
    """
    strongest = values[np.argsort(-np.abs(values), kind="stable")]
    sums = np.concatenate([[0.0], np.cumsum(strongest)])
    counts = np.ceil(GRID * len(values) - 1e-9).astype(int)
    return sums[counts] / sums[-1]


def at(line: Array, share: float) -> float:
    """A curve's value at a share of the pairs."""
    return float(line[round(share * (len(GRID) - 1))])


def needed(spread: Array, bound: float) -> float | None:
    """The smallest share of the pairs from which on the spread stays below a bound; None if it never does.

    Args:
        spread: standard deviations over pairs of texts at the shares of `GRID`.
        bound: a share of the score.
    """
    below = np.flip(np.logical_and.accumulate(np.flip(spread < bound)))
    return float(GRID[np.argmax(below)]) if below[-1] else None


def describe(label: str, curves: Array) -> Record:
    """The row of one view.

    Args:
        label: the view's name.
        curves: one curve for every pair of texts, (pairs, 201).
    """
    tops = np.array([at(line, TOP) for line in curves])
    low, middle, high = np.percentile(tops, [25, 50, 75])
    return {
        "view": label,
        "pairs": len(curves),
        "top_mean": float(tops.mean()),
        "top_sd": float(tops.std()),
        "top_median": float(middle),
        "top_quartile_1": float(low),
        "top_quartile_3": float(high),
        **{f"needed_sd_{bound:.0%}": needed(curves.std(0), bound) for bound in BOUNDS},
    }


def _sentence(row: Record) -> str:
    need = " and ".join(
        f"below {percent(bound)} " + ("never" if share is None else f"from {percent(share)} of them on")
        for bound in BOUNDS
        for share in [row[f"needed_sd_{bound:.0%}"]]
    )
    return (
        f"{row['view']}: the strongest 5 % of the token pairs sum to {percent(row['top_mean'])} ± "
        f"{percent(row['top_sd'])} of the whole (mean ± standard deviation; median {percent(row['top_median'])}). The "
        f"standard deviation stays {need}."
    )


def draw(curves: Mapping[View, Array], table: Sequence[Record], settings: Any) -> picture.Figure:
    """The picture: a panel for every view."""
    figure, axes = picture.sheet(3.3, 1, len(table), width=max(4.5, 3.3 * len(table)), sharey=True)
    ends = [lines.mean(0) + sign * lines.std(0) for lines in curves.values() if len(lines) for sign in (-1, 1)]
    limits = max(float(np.min(ends)), -1.5) - 0.1, min(float(np.max(ends)), 3.0) + 0.1
    for axis, (view, lines), row in zip(axes[0], curves.items(), table, strict=True):
        mean, spread, middle = lines.mean(0), lines.std(0), np.median(lines, 0)
        colour = picture.CATEGORIES[0]
        axis.fill_between(GRID, mean - spread, mean + spread, color=colour, alpha=0.18, linewidth=0, label="± sd")
        axis.plot(GRID, mean, color=colour, linewidth=1.8, label="mean")
        axis.plot(GRID, middle, color=picture.CATEGORIES[1], linewidth=1.4, linestyle=(0, (4, 2)), label="median")
        picture.guide(axis, y=1)
        _marks(axis, row, colour)
        axis.set_ylim(limits[0], limits[1] + 0.42 * (limits[1] - limits[0]))
        axis.set_xlim(0, 1)
        picture.percent(axis.xaxis)
        picture.percent(axis.yaxis)
        picture.label(axis, x="share of token pairs, strongest first", title=view.label)
    picture.label(axes[0][0], y="share of what all pairs sum to")
    picture.legend_below(figure, axes[0][0])
    picture.caption(figure, ABOUT.title, settings)
    return figure


def _marks(axis: Any, row: Record, colour: str) -> None:
    """Mark the strongest pairs, and the shares from which on the standard deviation is below a bound."""
    (point,) = axis.plot([TOP], [row["top_mean"]], "o", color=colour, markersize=4.5)
    key = {f"top 5 %: {percent(row['top_mean'])} ± {percent(row['top_sd'])}": point}
    for bound, style in zip(BOUNDS, ((0, (1, 1.5)), (0, (5, 2))), strict=True):
        need = row[f"needed_sd_{bound:.0%}"]
        if need is not None:
            line = axis.axvline(need, color=picture.FAINT, linewidth=1.0, linestyle=style)
            key[f"sd < {percent(bound)} from {percent(need)} on"] = line
    picture.legend(axis, handles=list(key.values()), labels=list(key), loc="upper right", framealpha=1.0)
