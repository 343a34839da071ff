"""What the pictures of all studies have in common: sheets, colours, and a caption that says what they are made of."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.render.colours import LIGHT
from pairlens.study.files import require_matplotlib

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

# Okabe and Ito's colours, which the colour-blind can tell apart; lines and markers differ too.
CATEGORIES = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#777777")
MARKERS = ("o", "s", "D", "^", "v", "P", "X")
INK, FAINT, GRID = LIGHT.ink, LIGHT.faint, "#e8e8e8"
SIZE = 7.5
"""Points of the smallest text."""
WIDTH = 9.0
"""Inches."""
LEGEND: dict[str, Any] = {
    "fontsize": SIZE,
    "labelcolor": INK,
    "handlelength": 1.8,
    "framealpha": 0.92,
    "edgecolor": "none",
    "facecolor": LIGHT.paper,
}


def sheet(height: float, rows: int = 1, columns: int = 1, *, width: float = WIDTH, **more: Any) -> tuple[Figure, Any]:
    """A figure and its axes, (rows, columns), in the studies' style; nothing outside of them changes.

    Args:
        height: inches, without the title.
        rows: of axes.
        columns: of axes.
        width: inches.
        more: for matplotlib's `subplots`.
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
    """Title a figure: what it shows and, below, of which model and how many pairs."""
    model = str(settings["model"]).rstrip("/").rsplit("/", 1)[-1]
    pairs = settings["pairs"]
    parts = [model, f"{pairs:,} {'pair' if pairs == 1 else 'pairs'}", *([note] if note else [])]
    figure.suptitle(f"{title}\n", fontsize=SIZE + 3.5, color=INK, x=0.01, ha="left", fontweight="bold")
    figure.text(0.01, _below_title(figure), ", ".join(parts), fontsize=SIZE + 1, color=FAINT, ha="left", va="top")


def label(axes: Axes, *, x: str = "", y: str = "", title: str = "") -> None:
    """Name what axes show, with units."""
    if x:
        axes.set_xlabel(x, fontsize=SIZE + 0.5, color=INK)
    if y:
        axes.set_ylabel(y, fontsize=SIZE + 0.5, color=INK)
    if title:
        axes.set_title(title, fontsize=SIZE + 1, color=INK, loc="left")


def legend(axes: Axes, **more: Any) -> None:
    """A legend in the studies' style."""
    axes.legend(**{**LEGEND, **more})


def legend_below(figure: Figure, axes: Axes, **more: Any) -> None:
    """One legend for all axes of a figure, below them."""
    handles, names = axes.get_legend_handles_labels()
    style: dict[str, Any] = {**LEGEND, "loc": "outside lower center", "ncols": len(names), **more}
    figure.legend(handles, names, **style)


def depths(layers: Sequence[int]) -> list[Any]:
    """A colour for every layer, light at the input and dark at the output, so that they are in order in grey too."""
    from matplotlib import colormaps

    places = np.linspace(0.85, 0.0, len(layers)) if len(layers) > 1 else [0.3]
    return [colormaps["viridis"](place) for place in places]


def percent(axis: Any, decimals: int = 0) -> None:
    """Write an axis's ticks in per cent."""
    from matplotlib.ticker import PercentFormatter

    axis.set_major_formatter(PercentFormatter(1.0, decimals=decimals, symbol="\N{NO-BREAK SPACE}%"))


def _below_title(figure: Figure) -> float:
    height = float(figure.get_size_inches()[1])
    return 1 - (SIZE + 3.5) * 1.75 / 72 / height
