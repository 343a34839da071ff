"""The panel that every figure of matrices is made of: coloured cells, numbers, sums and labels. Sizes are in points."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.errors import InputError
from pairlens.render.axis import Axis, table
from pairlens.render.colours import LIGHT, ink_on, shade
from pairlens.render.plot.figure import LINE, NUMBER, Pen
from pairlens.render.plot.labels import GAP, Labels, above, beside
from pairlens.render.plot.scale import COLOURS, Scale, plain

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from pairlens.attribution.explanation import Explanation

CELL = (54.0, 13.0)
"""The widest and the highest cell."""
TALLEST = 360.0
"""How high the cells of a matrix may be together, unless there are hundreds of rows."""
_VECTORS = 2500  # cells that are drawn one by one; more are one image


@dataclass(frozen=True)
class Panel:
    """A matrix as it is going to be drawn.

    Attributes:
        down: what the rows are. `across`: what the columns are.
        values: the coloured cells.
        totals: rows and columns of sums and effects after them, as numbers only.
        grid: the values with the totals.
        numbers: the values are written into the cells.
        width: of a cell. `height`: likewise.
        rows: the labels of the rows. `columns`: of the columns.
    """

    down: Axis
    across: Axis
    values: np.ndarray
    totals: tuple[str, ...]
    grid: np.ndarray
    numbers: bool
    width: float
    height: float
    rows: Labels
    columns: Labels

    @property
    def extent(self) -> tuple[float, float]:
        """How many cells wide and high it is, the space before the totals counted."""
        more = len(self.totals) + GAP if self.totals else 0.0
        return self.values.shape[1] + more, self.values.shape[0] + more

    @property
    def size(self) -> tuple[float, float]:
        """How wide and how high it is without its labels."""
        return self.extent[0] * self.width, self.extent[1] * self.height


def fitted(
    e: Explanation,
    down: Axis,
    across: Axis,
    room: float,
    pen: Pen,
    colours: Scale,
    numbers: bool | None,
    *,
    sums: bool = True,
    tallest: float = TALLEST,
) -> Panel:
    """The panel that is, with its labels, at most so wide."""
    left = min(max(pen.width(label) for label in (*down.labels, "effects" * sums)), 0.3 * room) + 4
    panel = plan(e, down, across, room - left, pen, colours, numbers, sums=sums, tallest=tallest, left=left)
    # Turned labels reach over the last column; the cells make room for them.
    room -= left + panel.columns.overhang
    return plan(e, down, across, room, pen, colours, numbers, sums=sums, tallest=tallest, left=left)


def plan(
    e: Explanation,
    down: Axis,
    across: Axis,
    room: float,
    pen: Pen,
    colours: Scale,
    numbers: bool | None,
    *,
    sums: bool = True,
    high: float | None = None,
    tallest: float = TALLEST,
    left: float = 90.0,
) -> Panel:
    """What is shown, and how large.

    Args:
        e: the explanation.
        down, across: its axes.
        room: how wide the cells and the sums may be together.
        pen: measures texts.
        colours: the scale, which also says how numbers are written.
        numbers: write them into the cells; None: where they fit.
        sums: in the margins, beside numbers.
        high: how high the cells and the sums are together; by default as they need to be.
        tallest: how high the cells may be together then.
        left: how wide the labels of rows may be.
    """
    if not down.labels or not across.labels:
        raise InputError(f"there is nothing to draw: the texts have {len(e.units_a)} and {len(e.units_b)} units.")
    grid = table(e, down, across)
    count_a, count_b = len(down.labels), len(across.labels)
    values = grid[:count_a, :count_b]

    def sized(totals: tuple[str, ...], written: bool) -> Panel:
        shown = grid[: count_a + len(totals), : count_b + len(totals)]
        panel = Panel(down, across, values, totals, shown, written, 1.0, 1.0, Labels(), Labels())
        wide = room / panel.extent[0] if high else min(room / panel.extent[0], CELL[0])
        return replace(panel, width=wide, height=high / panel.extent[1] if high else _height(count_a, tallest))

    def fits(panel: Panel) -> bool:
        texts = {plain(value, colours.decimals) for value in panel.grid.flat if not math.isnan(value)}
        longest = max(pen.width(text, NUMBER) for text in texts)
        return longest + 2.5 <= panel.width and panel.height >= NUMBER * LINE

    totals = ("sum", "effects")[: len(grid) - count_a] if sums else ()
    panels = [sized(totals, True), sized((), True)] if numbers is not False else []
    panel = next((panel for panel in panels if numbers or fits(panel)), sized((), False))
    return replace(
        panel,
        rows=beside((*down.labels, *panel.totals), np.abs(values).sum(1), panel.height, left, pen),
        columns=above((*across.labels, *panel.totals), np.abs(values).sum(0), panel.width, pen),
    )


def _height(rows: int, tallest: float) -> float:
    return min(CELL[1], max(tallest / rows, 2.0))


def paint(ax: Axes, panel: Panel, colours: Scale, *, rows: bool = True, columns: bool = True) -> None:
    """Draw a panel into axes of its size; without the labels of its rows or columns where others have them."""
    count_a, count_b = panel.values.shape
    small = min(panel.width, panel.height) < 9
    ax.pcolormesh(
        np.arange(count_b + 1),
        np.arange(count_a + 1),
        panel.values,
        cmap=COLOURS,
        norm=colours.norm,
        edgecolors="face" if small else LIGHT.paper,
        linewidth=0.1 if small else 0.6,
        rasterized=panel.values.size > _VECTORS,
    )
    ax.set(xlim=(0, panel.extent[0]), ylim=(panel.extent[1], 0))
    ax.grid(visible=False)
    ax.set_facecolor("none")
    ax.spines[:].set_visible(False)
    for folded, line in ((panel.down, ax.axhline), (panel.across, ax.axvline)):
        if folded.single < len(folded.labels):
            line(folded.single, color=LIGHT.paper, linewidth=2.0)
    _label(ax, panel, rows, columns)
    for (i, j), value in np.ndenumerate(panel.grid if panel.numbers else np.empty((0, 0))):
        if math.isnan(value):
            continue
        inside = i < count_a and j < count_b
        text = plain(value, colours.decimals)
        colour = ink_on(shade(value / colours.limit)) if inside else LIGHT.ink
        x, y = (k + 0.5 + GAP * (k >= count) for k, count in ((j, count_b), (i, count_a)))
        ax.text(x, y, text, fontsize=NUMBER, color=colour, ha="center", va="center_baseline")


def _label(ax: Axes, panel: Panel, rows: bool, columns: bool) -> None:
    turned = {0: ("center", "bottom"), 45: ("left", "baseline"), 90: ("left", "center")}[panel.columns.angle]
    style: Any = {"rotation": panel.columns.angle, "rotation_mode": "anchor", "ha": turned[0], "va": turned[1]}
    texts_a, texts_b = (
        [text * shown for text in side.texts] for shown, side in ((rows, panel.rows), (columns, panel.columns))
    )
    ax.set_yticks(panel.rows.places, texts_a, fontsize=panel.rows.size, va="center_baseline")
    ax.set_xticks(panel.columns.places, texts_b, fontsize=panel.columns.size, **style)
    # Where only some units have a label, a mark says which.
    marks = [
        1.5 * (len(side.places) < count)
        for side, count in zip((panel.rows, panel.columns), panel.grid.shape, strict=True)
    ]
    ax.tick_params(axis="y", length=marks[0], width=0.4, pad=1.5, colors=LIGHT.ink)
    ax.tick_params(axis="x", length=marks[1], width=0.4, pad=1.5, colors=LIGHT.ink, top=True, bottom=False)
    ax.tick_params(axis="x", labeltop=True, labelbottom=False)
    ax.tick_params(which="minor", length=0)
