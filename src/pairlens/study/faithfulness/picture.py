"""The judge's picture: faithfulness against cost with the Pareto front, and two other measures beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.shapes import Array
from pairlens.study.files import require_matplotlib
from pairlens.study.result import short_name
from pairlens.study.statistics import Record, columns

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart, and markers that differ in black and white.
STYLES = {
    "shapley": ("#0072B2", "o"),
    "fade": ("#D55E00", "D"),
    "integrated-jacobian": ("#009E73", "s"),
    "output": ("#CC79A7", "v"),
    "occlusion": ("#E69F00", "^"),
}
RIVAL = ("#777777", "X")
POINT: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.5, "elinewidth": 0.9}
FRONT: dict[str, Any] = {"color": "#bbbbbb", "linewidth": 1.2, "linestyle": (0, (4, 2))}
ZERO: dict[str, Any] = {"color": "#cccccc", "linewidth": 0.8, "zorder": 0}
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
    title = f"Which explanation is true? {short_name(model)}, {pairs} pairs, 95 % intervals"
    figure.suptitle(title, fontsize=SIZE + 3, color=INK)
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
    axes.step(*columns(front(rows), "cost", "shapley"), where="post", zorder=1, label="Pareto front", **FRONT)
    axes.axhline(0, **ZERO)
    named: set[str] = set()
    for row in rows:
        name = "rivals" if row["rival"] else row["family"]
        ends: Any = {"yerr": _ends(row, "shapley"), "xerr": _ends(row, "cost")}
        _point(axes, row["cost"], row["shapley"], row, **ends, label=None if name in named else name, zorder=3)
        named.add(name)
    costs = columns(rows, "cost")[0]
    axes.set_xlim(costs.min() / 1.9, costs.max() * 2.6)  # room for labels
    axes.legend(fontsize=SIZE, frameon=False, loc="best", labelcolor=INK, handletextpad=0.4)


def _bars(axes: Axes, rows: Sequence[Record], measure: str, title: str, *, names: bool) -> None:
    """Draw one measure: a line per candidate with the mean and its interval, the best by `shapley` on top."""
    for place, row in enumerate(rows):
        if row[measure] is not None:
            _point(axes, row[measure], -place, row, xerr=_ends(row, measure), markersize=4.5)
    axes.axvline(0, **ZERO)
    axes.set_yticks([-place for place in range(len(rows))], [label(row) if names else "" for row in rows])
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(-len(rows) + 0.4, 0.6)
    axes.locator_params(axis="x", nbins=4)
    axes.set_xlabel(title, fontsize=SIZE + 1, color=INK)


def _point(axes: Axes, x: float, y: float, row: Record, *, markersize: float = 5, **more: Any) -> None:
    """Draw a candidate's point with its intervals, in the style of its family."""
    colour, marker = style(row)
    axes.errorbar(x, y, fmt=marker, color=colour, markersize=markersize, **POINT, **more)


def _ends(row: Record, measure: str) -> list[list[float]]:
    """The distances of an interval's ends from its mean, as matplotlib's error bars take them."""
    value = row[measure]
    # The mean may lie outside of the interval by a rounding error.
    return [[max(0.0, value - row[f"{measure}_low"])], [max(0.0, row[f"{measure}_high"] - value)]]


def place_labels(axes: Axes, rows: Sequence[Record]) -> None:
    """Put every point's name as near to the point as possible without covering another name, point or interval.

    Boxes are rows of (left, low, right, high), in pixels.
    """
    figure: Any = axes.figure
    renderer = figure.canvas.get_renderer()
    scale = figure.dpi / 72
    taken = _occupied(axes, rows, scale)
    legend = axes.get_legend()
    if legend is not None:
        taken = np.vstack([taken, legend.get_window_extent(renderer).extents])
    inside = np.array([axes.get_window_extent(renderer).extents])
    # Crowded points first: the others find room anyway.
    points = _pixels(axes, rows)
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
        box = _extent(text, renderer)
        size = box[2:] - box[:2]
        best, least = (0.0, 0.0), np.inf
        for offset in _offsets(*size / scale):
            moved = box + np.tile(offset, 2) * scale
            cost = _overlaps(moved, taken).sum() + 10 * (size.prod() - _overlaps(moved, inside)[0])
            if cost < least - 1e-9:
                best, least = offset, cost
            if least <= 1e-9:
                break
        text.set_position(best)
        taken = np.vstack([taken, box + np.tile(best, 2) * scale])
        # A line connects the label with its point where they are not adjacent.
        far = (np.abs(best) - size / scale / 2).max() > 9
        if text.arrow_patch is not None:
            text.arrow_patch.set_visible(far)


def _extent(text: Any, renderer: Any) -> Array:
    """The box of a label alone, without its line."""
    from matplotlib.text import Text

    text.update_positions(renderer)
    return np.array(Text.get_window_extent(text, renderer).extents)


def _offsets(width: float, height: float) -> list[tuple[float, float]]:
    """Possible positions of a label relative to its point, the nearest first, in typographic points."""
    return [
        (np.cos(angle) * (width / 2 + reach), np.sin(angle) * (height / 2 + reach))
        for reach in range(5, 50, 5)
        for angle in np.linspace(0, 2 * np.pi, 24, endpoint=False)
    ]


def _pixels(axes: Axes, rows: Sequence[Record], end: str = "") -> Array:
    """The points of some candidates, or an end of their intervals, "_low" or "_high": (rows, 2)."""
    return axes.transData.transform(np.transpose(columns(rows, f"cost{end}", f"shapley{end}")))


def _occupied(axes: Axes, rows: Sequence[Record], scale: float) -> Array:
    """The boxes of all points, of their intervals, and of the Pareto front's line."""
    (x, y), (left, low), (right, high) = (_pixels(axes, rows, end).T for end in ("", "_low", "_high"))
    stair_x, stair_y = _pixels(axes, front(rows)).T
    half, thin, line = 3.5 * scale, 1.0 * scale, 0.8 * scale
    boxes = [
        (x - half, y - half, x + half, y + half),
        (x - thin, low, x + thin, high),
        (left, y - thin, right, y + thin),
        (stair_x[:-1], stair_y[:-1] - line, stair_x[1:], stair_y[:-1] + line),
        (stair_x[1:] - line, stair_y[:-1], stair_x[1:] + line, stair_y[1:]),
    ]
    return np.concatenate([np.transpose(sides) for sides in boxes])


def _overlaps(box: Array, others: Array) -> Array:
    """The area that a box shares with each of some others, (others,)."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    return np.maximum(high - low, 0).prod(1)
