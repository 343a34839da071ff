"""The style that the pictures of all studies share: sheets, colours, and a caption with the model and the pairs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.render.colours import LIGHT
from pairlens.study.files import require_matplotlib
from pairlens.study.result import short_name

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which colour-blind readers can tell apart; lines and markers differ too.
CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
INK, FAINT, GRID, GUIDE = LIGHT.ink, LIGHT.faint, "#e8e8e8", "#888888"
SIZE = 7.5
"""Size of the smallest text, in points."""
WIDTH = 9.0
"""Width of a sheet, in inches."""
LEGEND: dict[str, Any] = {
    "fontsize": SIZE,
    "labelcolor": INK,
    "handlelength": 1.8,
    "framealpha": 0.92,
    "edgecolor": "none",
    "facecolor": LIGHT.paper,
}


def sheet(height: float, rows: int = 1, columns: int = 1, *, width: float = WIDTH, **more: Any) -> tuple[Figure, Any]:
    """A figure and its axes, (rows, columns), in the studies' style; matplotlib's global settings stay as they are.

    Args:
        height: inches, without the title.
        rows: rows of axes.
        columns: columns of axes.
        width: inches.
        more: arguments of matplotlib's `subplots`.
    """
    figure_class = require_matplotlib()
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    engine = ConstrainedLayoutEngine(w_pad=0.06, h_pad=0.06)
    figure: Figure = figure_class(figsize=(width, height + 0.5), layout=engine, facecolor=LIGHT.paper)
    FigureCanvasAgg(figure)
    axes = figure.subplots(rows, columns, squeeze=False, **more)
    for one in axes.flat:
        clean(one)
    return figure, axes


def clean(axes: Axes) -> None:
    """Give axes the studies' style."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color("#b0b0b0")
    axes.tick_params(labelsize=SIZE, colors=INK, length=3, width=0.7)
    axes.tick_params(which="minor", length=1.5, width=0.5, colors="#b0b0b0")
    axes.grid(color=GRID, linewidth=0.7)
    axes.set_axisbelow(True)


def caption(figure: Figure, title: str, settings: Any, note: str = "") -> None:
    """Write the title of a figure and, below it, the model and the number of pairs."""
    pairs = settings["pairs"]
    parts = [short_name(settings["model"]), f"{pairs:,} {'pair' if pairs == 1 else 'pairs'}", *([note] if note else [])]
    figure.suptitle(f"{title}\n", fontsize=SIZE + 3.5, color=INK, x=0.01, ha="left", fontweight="bold")
    below_title = 1 - (SIZE + 3.5) * 1.75 / 72 / float(figure.get_size_inches()[1])
    figure.text(0.01, below_title, ", ".join(parts), fontsize=SIZE + 1, color=FAINT, ha="left", va="top")


def label(axes: Axes, *, x: str = "", y: str = "", title: str = "") -> None:
    """Write the names of the axes, with units, and the title above them."""
    if x:
        axes.set_xlabel(x, fontsize=SIZE + 0.5, color=INK)
    if y:
        axes.set_ylabel(y, fontsize=SIZE + 0.5, color=INK)
    if title:
        axes.set_title(title, fontsize=SIZE + 1, color=INK, loc="left")


def legend(axes: Axes, **more: Any) -> None:
    """Draw a legend in the studies' style."""
    axes.legend(**{**LEGEND, **more})


def legend_below(figure: Figure, axes: Axes, **more: Any) -> None:
    """Draw one legend for all axes of a figure, below them."""
    handles, names = axes.get_legend_handles_labels()
    style: dict[str, Any] = {**LEGEND, "loc": "outside lower center", "ncols": len(names), **more}
    figure.legend(handles, names, **style)


def series(place: int) -> dict[str, Any]:
    """The colour and the marker of one of several series."""
    return {"color": CATEGORIES[place], "marker": MARKERS[place]}


def guide(axes: Axes, *, y: float = 0.0) -> None:
    """Draw a thin horizontal line behind the data."""
    axes.axhline(y, color=GUIDE, linewidth=0.8, zorder=0)


def bars(axes: Axes, place: int, values: Sequence[float], height: float, **more: Any) -> list[float]:
    """Draw one series of horizontal bars, one in every row, and return their heights.

    Args:
        axes: where.
        place: which of the four series of a row this is.
        values: the bars' lengths, the top row first.
        height: the thickness of a bar, of a row of 1.
        more: arguments of matplotlib's `barh`.
    """
    heights = [-(row + (place - 1.5) * 0.2) for row in range(len(values))]
    axes.barh(heights, values, height=height, color=more.pop("color", CATEGORIES[place]), **more)
    return heights


def bar_names(axes: Axes, names: Sequence[str]) -> None:
    """Name the rows of `bars`, the top row first, and write their lengths in per cent."""
    axes.set_yticks([-row for row in range(len(names))], names)
    axes.tick_params(axis="y", length=0)
    axes.grid(axis="y", visible=False)
    percent(axes.xaxis)


def layer_name(layer: int | None, layers: int) -> str:
    """A layer's number; the last one is marked as the output."""
    return f"{layer} (output)" if layer == layers else str(layer)


def depths(layers: Sequence[int]) -> list[Any]:
    """A colour for every layer, from light at the input to dark at the output: ordered in grey print too."""
    from matplotlib import colormaps

    places = np.linspace(0.85, 0.0, len(layers)) if len(layers) > 1 else [0.3]
    return [colormaps["viridis"](place) for place in places]


def percent(axis: Any, decimals: int = 0) -> None:
    """Write an axis's ticks in per cent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, decimals=decimals, symbol="\N{NO-BREAK SPACE}%"))
