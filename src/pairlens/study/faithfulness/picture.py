"""The judge's picture: how well explanations predict deletions, against what they cost, with the Pareto front."""

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
    "banzhaf": ("#0072B2", "o"),
    "shapley": ("#56B4E9", "p"),
    "fade": ("#D55E00", "D"),
    "integrated-jacobian": ("#009E73", "s"),
    "output": ("#CC79A7", "v"),
    "occlusion": ("#E69F00", "^"),
}
OTHER = ("#000000", "P")
RIVAL = ("#777777", "X")
FLOOR = -0.45
"""Points below this R² are drawn at the lower edge, with their value."""
POINT: dict[str, Any] = {"markeredgecolor": "white", "markeredgewidth": 0.5, "elinewidth": 0.9}
FRONT: dict[str, Any] = {"color": "#bbbbbb", "linewidth": 1.2, "linestyle": (0, (4, 2))}
ZERO: dict[str, Any] = {"color": "#cccccc", "linewidth": 0.8, "zorder": 0}
INK = "#333333"
SIZE = 7.5
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

    figure: Figure = figure_class(figsize=(9.5, 6.2), layout="constrained")
    FigureCanvasAgg(figure)  # measures the sizes of labels
    axes = figure.subplots()
    shown = [row for row in rows if row["r2_75"] is not None and row["cost"] is not None]
    axes.spines[["top", "right"]].set_visible(False)
    axes.tick_params(labelsize=SIZE, colors=INK)
    axes.grid(color="#eeeeee", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.set_xscale("log")
    axes.set_xlabel("cost of a text, in forward passes", fontsize=SIZE + 1.5, color=INK)
    axes.set_ylabel("R² of predicted deletions that keep 3 of 4 units", fontsize=SIZE + 1.5, color=INK)
    title = f"Which explanation predicts deletions? {short_name(model)}, {pairs} pairs, 95 % intervals"
    axes.set_title(title, fontsize=SIZE + 3, color=INK)
    if not shown:
        axes.text(0.5, 0.5, "no pair was checked,\nso no cost is known", ha="center", transform=axes.transAxes)
        return figure
    _draw_points(axes, shown)
    figure.draw_without_rendering()  # places the axes
    figure.set_layout_engine("none")
    place_labels(axes, shown)
    return figure


def style(row: Record) -> tuple[str, str]:
    """Colour and marker of a family."""
    return RIVAL if row["rival"] else STYLES.get(row["family"], OTHER)


def group_name(row: Record) -> str:
    """What the legend calls a candidate's group."""
    if row["rival"]:
        return "rivals"
    return row["family"] if row["family"] in STYLES else "other values"


def label(row: Record) -> str:
    """A candidate's name, short enough for a picture, with its value where that is below the picture."""
    name = row["candidate"].replace("integrated-jacobian", "jacobian").replace("/", " ")
    return name if row["r2_75"] >= FLOOR else f"{name} (−{-row['r2_75']:.1f})"


def front(rows: Sequence[Record]) -> list[Record]:
    """The Pareto front: candidates that no other beats in both cost and prediction, the cheapest first.

    Example:
        >>> rows = [{"cost": 1, "r2_75": 0.2}, {"cost": 2, "r2_75": 0.1}, {"cost": 3, "r2_75": 0.9}]
        >>> [row["cost"] for row in front(rows)]
        [1, 3]
    """
    best: list[Record] = []
    for row in sorted(rows, key=lambda row: (row["cost"], -row["r2_75"])):
        if not best or row["r2_75"] > best[-1]["r2_75"]:
            best.append(row)
    return best


def _draw_points(axes: Axes, rows: Sequence[Record]) -> None:
    """Draw the candidates with their intervals, the front, and the legend."""
    best = front([row for row in rows if row["r2_75"] >= FLOOR])
    if best:
        axes.step(*columns(best, "cost", "r2_75"), where="post", zorder=1, label="Pareto front", **FRONT)
    axes.axhline(0, **ZERO)
    named: set[str] = set()
    for row in rows:
        name, (colour, marker) = group_name(row), style(row)
        inside = row["r2_75"] >= FLOOR
        ends: Any = {"yerr": _ends(row, "r2_75")} if inside else {}
        value = max(row["r2_75"], FLOOR)
        legend = None if name in named else name
        axes.errorbar(
            row["cost"], value, fmt=marker, color=colour, markersize=5, zorder=3, label=legend, **ends, **POINT
        )
        named.add(name)
    costs = columns(rows, "cost")[0]
    axes.set_xlim(costs.min() / 1.9, costs.max() * 2.2)  # room for labels
    axes.set_ylim(FLOOR - 0.13, 1.02)
    axes.axhspan(FLOOR - 0.13, FLOOR + 0.07, color="#f4f4f4", zorder=0)
    axes.text(0.995, 0.005, "below, R² in brackets", transform=axes.transAxes, ha="right", fontsize=SIZE - 1, color=INK)
    axes.set_xticks(_ticks(*axes.get_xlim()), minor=False)
    axes.xaxis.set_major_formatter("{x:g}")
    axes.legend(fontsize=SIZE, frameon=False, loc="upper left", labelcolor=INK, handletextpad=0.4)


def _ticks(low: float, high: float) -> list[float]:
    """1, 2, 5, 10 and so on between two costs."""
    return [digit * 10.0**power for power in range(-1, 6) for digit in (1, 2, 5) if low <= digit * 10.0**power <= high]


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
            (row["cost"], max(row["r2_75"], FLOOR)),
            (0, 0),
            textcoords="offset points",
            fontsize=SIZE - 1,
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
    costs, values = columns(rows, "cost", f"r2_75{end}")
    return axes.transData.transform(np.transpose([costs, np.maximum(values, FLOOR)]))


def _occupied(axes: Axes, rows: Sequence[Record], scale: float) -> Array:
    """The boxes of all points, of their intervals, and of the Pareto front's line."""
    (x, y), (_, low), (_, high) = (_pixels(axes, rows, end).T for end in ("", "_low", "_high"))
    half, thin, line = 3.5 * scale, 1.0 * scale, 0.8 * scale
    boxes = [(x - half, y - half, x + half, y + half), (x - thin, low, x + thin, high)]
    best = front([row for row in rows if row["r2_75"] >= FLOOR])
    if best:
        stair_x, stair_y = _pixels(axes, best).T
        boxes += [
            (stair_x[:-1], stair_y[:-1] - line, stair_x[1:], stair_y[:-1] + line),
            (stair_x[1:] - line, stair_y[:-1], stair_x[1:] + line, stair_y[1:]),
        ]
    return np.concatenate([np.transpose(sides) for sides in boxes])


def _overlaps(box: Array, others: Array) -> Array:
    """The area that a box shares with each of some others, (others,)."""
    low, high = np.maximum(box[:2], others[:, :2]), np.minimum(box[2:], others[:, 2:])
    return np.maximum(high - low, 0).prod(1)
