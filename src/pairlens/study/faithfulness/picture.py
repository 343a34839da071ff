"""The judge's picture: faithfulness against cost with the Pareto front, and two other measures beside it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.study.files import require_matplotlib
from pairlens.study.statistics import Record

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure
    from matplotlib.transforms import Bbox

# Okabe and Ito's colours, which colour-blind readers can tell apart, and markers that differ in black and white.
STYLES = {
    "shapley": ("#0072B2", "o"),
    "fade": ("#D55E00", "D"),
    "integrated-jacobian": ("#009E73", "s"),
    "output": ("#CC79A7", "v"),
    "occlusion": ("#E69F00", "^"),
}
RIVAL = ("#777777", "X")
INK = "#333333"
SIZE = 7.0
"""Font size of the smallest text, in points."""


def draw(rows: Sequence[Record], model: str, pairs: int) -> Figure:
    """Draw the judge's table.

    Args:
        rows: the table, best first.
        model: the model's name.
        pairs: the number of judged pairs.
    """
    figure_class = require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    figure: Figure = figure_class(figsize=(10, 4.9), layout=ConstrainedLayoutEngine(w_pad=0.08, h_pad=0.06))
    FigureCanvasAgg(figure)  # measures the sizes of labels
    left, middle, right = figure.subplots(1, 3, width_ratios=[1.55, 0.62, 0.5])
    shown = [row for row in rows if row["shapley"] is not None]
    costed = [row for row in shown if row["cost"] is not None]
    for axes in (left, middle, right):
        axes.spines[["top", "right"]].set_visible(False)
        axes.tick_params(labelsize=SIZE, colors=INK)
        axes.grid(color="#eeeeee", linewidth=0.8)
        axes.set_axisbelow(True)
    _bars(middle, shown, "leave_one_out", "agreement with leaving\none unit out (Spearman)", names=True)
    _bars(right, shown, "deletion", "area of the score's fall,\nmore than at random", names=False)
    _against_cost(left, costed)
    name = model.rstrip("/").rsplit("/", 1)[-1]
    figure.suptitle(f"Which explanation is true? {name}, {pairs} pairs, 95 % intervals", fontsize=SIZE + 3, color=INK)
    if costed:
        figure.draw_without_rendering()  # places the axes
        figure.set_layout_engine("none")
        place_labels(left, costed)
    return figure


def style(row: Record) -> tuple[str, str]:
    """Colour and marker of a family."""
    return RIVAL if row["rival"] else STYLES.get(row["family"], ("#000000", "P"))


def label(row: Record) -> str:
    """A candidate's name, short enough for a picture."""
    return row["candidate"].replace("integrated-jacobian", "jacobian").replace("/", " ")


def front(rows: Sequence[Record]) -> list[Record]:
    """The Pareto front: candidates that no other beats in both cost and faithfulness, the cheapest first.

    Example:
        >>> rows = [{"cost": 1, "shapley": 0.2}, {"cost": 2, "shapley": 0.1}, {"cost": 3, "shapley": 0.9}]
        >>> [row["cost"] for row in front(rows)]
        [1, 3]
    """
    best: list[Record] = []
    for row in sorted(rows, key=lambda row: (row["cost"], -row["shapley"])):
        if not best or row["shapley"] > best[-1]["shapley"]:
            best.append(row)
    return best


def _against_cost(axes: Axes, rows: Sequence[Record]) -> None:
    axes.set_xscale("log")
    axes.set_xlabel("cost of a text (forward-pass equivalents)", fontsize=SIZE + 1, color=INK)
    axes.set_ylabel("agreement with Shapley values of deletions (Spearman)", fontsize=SIZE + 1, color=INK)
    if not rows:
        axes.text(0.5, 0.5, "no pair was checked,\nso no cost is known", ha="center", transform=axes.transAxes)
        return
    best = front(rows)
    axes.step(
        [row["cost"] for row in best],
        [row["shapley"] for row in best],
        where="post",
        color="#bbbbbb",
        linewidth=1.2,
        linestyle=(0, (4, 2)),
        zorder=1,
        label="Pareto front",
    )
    axes.axhline(0, color="#cccccc", linewidth=0.8, zorder=0)
    families: dict[str, None] = {}
    for row in rows:
        colour, marker = style(row)
        name = "rivals" if row["rival"] else row["family"]
        axes.errorbar(
            row["cost"],
            row["shapley"],
            yerr=_ends(row, "shapley"),
            xerr=_ends(row, "cost"),
            fmt=marker,
            color=colour,
            markersize=5,
            markeredgecolor="white",
            markeredgewidth=0.5,
            elinewidth=0.9,
            label=None if name in families else name,
            zorder=3,
        )
        families[name] = None
    low, high = min(row["cost"] for row in rows), max(row["cost"] for row in rows)
    axes.set_xlim(low / 1.9, high * 2.6)  # room for labels
    axes.legend(fontsize=SIZE, frameon=False, loc="best", labelcolor=INK, handletextpad=0.4)


def _bars(axes: Axes, rows: Sequence[Record], measure: str, title: str, *, names: bool) -> None:
    """Draw one measure: a line per candidate with the mean and its interval, the best by `shapley` on top."""
    for place, row in enumerate(rows):
        if row[measure] is None:
            continue
        colour, marker = style(row)
        axes.errorbar(
            row[measure],
            -place,
            xerr=_ends(row, measure),
            fmt=marker,
            color=colour,
            markersize=4.5,
            markeredgecolor="white",
            markeredgewidth=0.5,
            elinewidth=0.9,
        )
    axes.axvline(0, color="#cccccc", linewidth=0.8, zorder=0)
    axes.set_yticks([-place for place in range(len(rows))], [label(row) if names else "" for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel(title, fontsize=SIZE + 1, color=INK)


def _ends(row: Record, measure: str) -> list[list[float]]:
    """The distances of an interval's ends from its mean, as matplotlib's error bars take them."""
    value = row[measure]
    # The mean may lie outside of the interval by a rounding error.
    return [[max(0.0, value - row[f"{measure}_low"])], [max(0.0, row[f"{measure}_high"] - value)]]


def place_labels(axes: Axes, rows: Sequence[Record]) -> None:
    """Put every point's name as near to the point as possible without covering another name, point or interval."""
    figure: Any = axes.figure
    renderer = figure.canvas.get_renderer()
    scale = figure.dpi / 72
    taken: list[Bbox] = [*itertools.chain(*(_occupied(axes, row, scale) for row in rows)), *_stairs(axes, rows, scale)]
    legend = axes.get_legend()
    if legend is not None:
        taken.append(legend.get_window_extent(renderer))
    inside = axes.get_window_extent(renderer)
    # Crowded points first: the others find room anyway.
    points = axes.transData.transform([(row["cost"], row["shapley"]) for row in rows])
    crowd = [np.sort(np.hypot(*(points - point).T))[:4].sum() for point in points]
    for index in np.argsort(crowd):
        row = rows[index]
        text = axes.annotate(
            label(row),
            (row["cost"], row["shapley"]),
            (0, 0),
            textcoords="offset points",
            fontsize=SIZE - 0.5,
            color="#555555" if row["rival"] else style(row)[0],
            ha="center",
            va="center",
            arrowprops={"arrowstyle": "-", "color": "#bbbbbb", "linewidth": 0.6, "shrinkA": 0, "shrinkB": 3},
            zorder=4,
        )
        size = _extent(text, renderer)
        best, least = (0.0, 0.0), np.inf
        for offset in _offsets(size.width / scale, size.height / scale):
            moved = size.translated(offset[0] * scale, offset[1] * scale)
            cost = sum(_overlap(moved, other) for other in taken) + 10 * (_area(moved) - _overlap(moved, inside))
            if cost < least - 1e-9:
                best, least = offset, cost
            if least <= 1e-9:
                break
        text.set_position(best)
        taken.append(size.translated(best[0] * scale, best[1] * scale))
        # A line connects the label with its point where they are not adjacent.
        far = max(abs(best[0]) - size.width / scale / 2, abs(best[1]) - size.height / scale / 2) > 9
        if text.arrow_patch is not None:
            text.arrow_patch.set_visible(far)


def _extent(text: Any, renderer: Any) -> Bbox:
    """The box of a label alone, without its line."""
    from matplotlib.text import Text

    text.update_positions(renderer)
    return Text.get_window_extent(text, renderer)


def _offsets(width: float, height: float) -> list[tuple[float, float]]:
    """Possible positions of a label relative to its point, the nearest first, in typographic points."""
    places = []
    for ring in range(9):
        for angle in np.linspace(0, 2 * np.pi, 24, endpoint=False):
            reach = 5 + 5 * ring
            places.append((np.cos(angle) * (width / 2 + reach), np.sin(angle) * (height / 2 + reach)))
    return places


def _occupied(axes: Axes, row: Record, scale: float) -> list[Bbox]:
    """The boxes of a point and of its two intervals."""
    from matplotlib.transforms import Bbox

    x, y = axes.transData.transform((row["cost"], row["shapley"]))
    left, low = axes.transData.transform((row["cost_low"], row["shapley_low"]))
    right, high = axes.transData.transform((row["cost_high"], row["shapley_high"]))
    half, thin = 3.5 * scale, 1.0 * scale
    return [
        Bbox.from_extents(x - half, y - half, x + half, y + half),
        Bbox.from_extents(x - thin, low, x + thin, high),
        Bbox.from_extents(left, y - thin, right, y + thin),
    ]


def _stairs(axes: Axes, rows: Sequence[Record], scale: float) -> list[Bbox]:
    """The boxes of the Pareto front's line."""
    from matplotlib.transforms import Bbox

    points = axes.transData.transform([(row["cost"], row["shapley"]) for row in front(rows)])
    thin = 0.8 * scale
    boxes = []
    for (x, y), (right, top) in itertools.pairwise(points):
        boxes.append(Bbox.from_extents(x, y - thin, right, y + thin))
        boxes.append(Bbox.from_extents(right - thin, y, right + thin, top))
    return boxes


def _area(box: Bbox) -> float:
    return max(0.0, box.width) * max(0.0, box.height)


def _overlap(one: Bbox, other: Bbox) -> float:
    width = min(one.x1, other.x1) - max(one.x0, other.x0)
    height = min(one.y1, other.y1) - max(one.y0, other.y0)
    return max(0.0, width) * max(0.0, height)
