"""One panel of a figure with matrices: coloured cells, numbers, sums and labels. Sizes are in points."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from pairlens.render.axis import Cells, Grid
from pairlens.render.colours import LIGHT, ink_on, shade
from pairlens.render.plot.canvas import LINE, NUMBER, Pen
from pairlens.render.plot.labels import EMPTY, GAP, Labels, above, beside
from pairlens.render.plot.scale import COLOURS, Scale, plain

CELL = (54.0, 13.0)
"""The largest width and the largest height of a cell."""
TALLEST = 360.0
"""The largest height of all cells of a matrix together, unless it has hundreds of rows."""
_VECTORS = 2500  # matrices with more cells are drawn as one image


@dataclass(frozen=True)
class Panel:
    """The layout of a matrix.

    Attributes:
        cells: the coloured cells.
        totals: the labels of the rows and columns after the cells: sums and effects, as numbers only.
        numbers: whether the values are written into the cells.
        width: of a cell. `height`: of a cell.
        rows: the labels of the rows. `columns`: of the columns.
    """

    cells: Cells
    totals: tuple[str, ...]
    numbers: bool
    width: float = 1.0
    height: float = 1.0
    rows: Labels = EMPTY
    columns: Labels = EMPTY

    @property
    def grid(self) -> Grid:
        """The values with the totals that are shown."""
        count_a, count_b = self.cells.values.shape
        return self.cells.table[: count_a + len(self.totals), : count_b + len(self.totals)]

    @property
    def extent(self) -> tuple[float, float]:
        """The width and the height in cells, with the space before the totals."""
        more = len(self.totals) + GAP if self.totals else 0.0
        return self.cells.values.shape[1] + more, self.cells.values.shape[0] + more

    @property
    def size(self) -> tuple[float, float]:
        """The width and the height without the labels."""
        return self.extent[0] * self.width, self.extent[1] * self.height

    def fits(self, pen: Pen, decimals: int) -> bool:
        """Whether every number fits into its cell."""
        if self.height < NUMBER * LINE:
            return False
        texts = {plain(value, decimals) for value in self.grid.flat if not math.isnan(value)}
        return max(pen.width(text, NUMBER) for text in texts) + 2.5 <= self.width


@dataclass(frozen=True)
class Plan:
    """What the panels of a figure have in common.

    Attributes:
        pen: measures texts.
        colours: the scale, which also says how numbers are written.
        numbers: write numbers into the cells; None: if they fit.
        sums: add the sums in the margins, if there are numbers.
        tallest: the largest height of the cells of a panel together, unless its height is given.
    """

    pen: Pen
    colours: Scale
    numbers: bool | None
    sums: bool = True
    tallest: float = TALLEST

    def fit(self, cells: Cells, room: float) -> Panel:
        """The layout that is at most `room` wide, labels included."""
        labels = (*cells.down.labels, "effects" * self.sums)
        left = min(max(self.pen.width(label) for label in labels), 0.3 * room) + 4
        panel = self.lay_out(cells, room - left, left=left)
        # Turned labels extend beyond the last column, so the cells get less room.
        return self.lay_out(cells, room - (left + panel.columns.overhang), left=left)

    def lay_out(self, cells: Cells, room: float, *, high: float | None = None, left: float = 90.0) -> Panel:
        """The layout of the cells, with numbers and sums where they fit.

        Args:
            cells: the cells to draw.
            room: the largest width of the cells and the sums together.
            high: the height of the cells and the sums together; by default what they need.
            left: the largest width of the row labels.
        """
        values, pen = cells.values, self.pen

        def sized(totals: tuple[str, ...], written: bool) -> Panel:
            panel = Panel(cells, totals, written)
            wide = room / panel.extent[0]
            if high:
                return replace(panel, width=wide, height=high / panel.extent[1])
            return replace(panel, width=min(wide, CELL[0]), height=min(CELL[1], max(self.tallest / len(values), 2.0)))

        totals = cells.totals if self.sums else ()
        panels = [sized(totals, True), sized((), True)] if self.numbers is not False else []
        fitting = (panel for panel in panels if self.numbers or panel.fits(pen, self.colours.decimals))
        panel = next(fitting, sized((), False))
        return replace(
            panel,
            rows=beside((*cells.down.labels, *panel.totals), np.abs(values).sum(1), panel.height, left, pen),
            columns=above((*cells.across.labels, *panel.totals), np.abs(values).sum(0), panel.width, pen),
        )


def paint(ax: Axes, panel: Panel, colours: Scale, *, rows: bool = True, columns: bool = True) -> None:
    """Draw a panel into axes of its size, with the labels of its rows and columns unless they are switched off."""
    cells, values = panel.cells, panel.cells.values
    count_a, count_b = values.shape
    small = min(panel.width, panel.height) < 9
    ax.pcolormesh(
        np.arange(count_b + 1),
        np.arange(count_a + 1),
        values,
        cmap=COLOURS,
        norm=colours.norm,
        edgecolors="face" if small else LIGHT.paper,
        linewidth=0.1 if small else 0.6,
        rasterized=values.size > _VECTORS,
    )
    ax.set(xlim=(0, panel.extent[0]), ylim=(panel.extent[1], 0))
    ax.grid(visible=False)
    ax.set_facecolor("none")
    ax.spines[:].set_visible(False)
    for axis, draw_line in ((cells.down, ax.axhline), (cells.across, ax.axvline)):
        if axis.single < len(axis.labels):
            draw_line(axis.single, color=LIGHT.paper, linewidth=2.0)
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
        [text * shown for text in labels.texts] for shown, labels in ((rows, panel.rows), (columns, panel.columns))
    )
    ax.set_yticks(panel.rows.places, texts_a, fontsize=panel.rows.size, va="center_baseline")
    ax.set_xticks(panel.columns.places, texts_b, fontsize=panel.columns.size, **style)
    # If only some units have a label, a tick shows which.
    ticks = [
        1.5 * (len(labels.places) < count)
        for labels, count in zip((panel.rows, panel.columns), panel.grid.shape, strict=True)
    ]
    ax.tick_params(axis="y", length=ticks[0], width=0.4, pad=1.5, colors=LIGHT.ink)
    ax.tick_params(axis="x", length=ticks[1], width=0.4, pad=1.5, colors=LIGHT.ink, top=True, bottom=False)
    ax.tick_params(axis="x", labeltop=True, labelbottom=False)
    ax.tick_params(which="minor", length=0)
