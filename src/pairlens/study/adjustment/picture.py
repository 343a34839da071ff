"""The picture of the table: correlations of each base and objective, adjusted beside not adjusted."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from pairlens.study.adjustment.trainings import SCORES
from pairlens.study.files import require_matplotlib
from pairlens.study.picture import CATEGORIES, MARKERS
from pairlens.study.result import short_name
from pairlens.study.statistics import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

STYLES = {True: (CATEGORIES[0], MARKERS[0], "adjusted"), False: (CATEGORIES[1], MARKERS[1], "not adjusted")}
INK = "#333333"
SIZE = 8.0
"""Size of the smallest text, in points."""


def draw(rows: Sequence[Record]) -> Figure:
    """The picture: one panel for each measure, one line for each base and objective."""
    figure_class = require_matplotlib()
    lines = list(dict.fromkeys((row["base"], row["objective"]) for row in rows))
    figure: Figure = figure_class(figsize=(8, 1.5 + 0.42 * len(lines)), layout="constrained")
    panels = figure.subplots(1, len(SCORES), sharey=True)
    for axes, measure in zip(panels, SCORES, strict=True):
        _panel(axes, rows, lines, measure)
    panels[0].set_yticks(
        range(len(lines)), [f"{short_name(base)}\ntrained with {objective}" for base, objective in lines]
    )
    panels[0].set_ylim(len(lines) - 0.5, -0.5)
    handles, labels = panels[0].get_legend_handles_labels()
    unique = dict(zip(labels, handles, strict=True))
    style: Any = {"loc": "outside upper center", "ncols": 4, "frameon": False, "fontsize": SIZE, "labelcolor": INK}
    figure.legend(unique.values(), unique.keys(), **style)
    return figure


def _panel(axes: Axes, rows: Sequence[Record], lines: Sequence[tuple[str, str]], measure: str) -> None:
    for row in rows:
        colour, marker, name = STYLES[row["adjusted"]]
        place = lines.index((row["base"], row["objective"])) + (-0.14 if row["adjusted"] else 0.14)
        style: Any = {"color": colour, "markersize": 6}
        bars: Any = {"xerr": row[f"{measure}_sd"], "elinewidth": 1.2, "capsize": 2.5}
        axes.errorbar(row[measure], place, fmt=marker, label=name, zorder=3, **bars, **style)
        theirs = row[f"paper_{measure}"]
        if theirs is not None:
            axes.plot(theirs, place, marker, markerfacecolor="white", label=f"{name}, paper", zorder=2, **style)
    axes.set_xlabel(f"Spearman × 100 by {'cosine' if measure == 'cosine' else 'dot product'}", fontsize=SIZE, color=INK)
    axes.spines[["top", "right", "left"]].set_visible(False)
    axes.tick_params(labelsize=SIZE, colors=INK, length=0)
    axes.grid(axis="x", color="#e6e6e6", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.margins(x=0.12)
