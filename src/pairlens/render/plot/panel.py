"""One panel of a figure with matrices: coloured cells, numbers, sums and labels. Sizes are in points."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.collections import PatchCollection
from matplotlib.patches import Rectangle

from pairlens.render.axis import Axis, Cells
from pairlens.render.colours import LIGHT, ink_on, shade
from pairlens.render.deletion import Without
from pairlens.render.plot.canvas import LINE, NUMBER, Pen
from pairlens.render.plot.labels import EMPTY, GAP, Labels, above, beside
from pairlens.render.plot.scale import COLOURS, Scale, plain
from pairlens.render.text import points

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
        strip: whether the effects are shown, as a column beside the cells and a row below them.
        totals: the labels of the rows and columns after those, of numbers only: sums, and scores without a unit.
        numbers: whether the values are written into the cells.
        width: of a cell. `height`: of a cell.
        rows: the labels of the rows. `columns`: of the columns.
    """

    cells: Cells
    strip: bool
    totals: tuple[str, ...]
    numbers: bool
    width: float = 1.0
    height: float = 1.0
    rows: Labels = EMPTY
    columns: Labels = EMPTY

    @property
    def more(self) -> tuple[str, ...]:
        """The labels of the rows and columns after those of the cells."""
        return ("effects",) * self.strip + self.totals

    def starts(self, count: int) -> np.ndarray:
        """Where each column or row begins, in cells: `count` of the matrix, then those of `more`, with gaps between."""
        gaps = np.zeros(count + len(self.more))
        gaps[count:] += GAP
        gaps[count + self.strip :] += GAP * self.strip
        return np.arange(len(gaps)) + gaps

    @property
    def extent(self) -> tuple[float, float]:
        """The width and the height in cells, with the gaps."""
        count_a, count_b = self.cells.values.shape
        return float(self.starts(count_b)[-1]) + 1, float(self.starts(count_a)[-1]) + 1

    @property
    def size(self) -> tuple[float, float]:
        """The width and the height without the labels."""
        return self.extent[0] * self.width, self.extent[1] * self.height

    def texts(self, decimals: int) -> dict[tuple[int, int], str]:
        """The number of every row and column, those after the cells included."""
        grid = self.cells.values
        (count_a, count_b), effects = grid.shape, self.cells.effects
        if self.strip:
            grid = np.pad(grid, (0, 1), constant_values=math.nan)
            grid[:-1, -1], grid[-1, :-1] = effects
        if "sum" in self.totals:
            sums = np.nansum(grid, axis=1, keepdims=True)
            grid = np.block([[grid, sums], [np.nansum(grid, axis=0), sums.sum()]])
        texts = {place: plain(value, decimals) for place, value in np.ndenumerate(grid) if not math.isnan(value)}
        if "without" in self.totals:
            last_a, last_b = (count + len(self.more) - 1 for count in (count_a, count_b))
            without_a, without_b = self.cells.without
            texts |= {(i, last_b): points(w, self.cells.e.score) for i, w in enumerate(without_a) if w}
            texts |= {(last_a, j): points(w, self.cells.e.score) for j, w in enumerate(without_b) if w}
        return texts

    @property
    def shape(self) -> tuple[int, int]:
        """How many rows and columns there are, those after the cells included."""
        count_a, count_b = self.cells.values.shape
        return count_a + len(self.more), count_b + len(self.more)

    @property
    def coloured(self) -> dict[tuple[int, int], float]:
        """The values that have a colour: the cells and, in a strip, the effects; 0 for pairs that may be noise."""
        values, (effects_a, effects_b) = self.cells.settled, self.cells.effects
        places = {place: float(value) for place, value in np.ndenumerate(values)}
        if self.strip:
            places |= {(i, values.shape[1]): float(value) for i, value in enumerate(effects_a)}
            places |= {(values.shape[0], j): float(value) for j, value in enumerate(effects_b)}
        return places

    def fits(self, pen: Pen, decimals: int) -> bool:
        """Whether every number fits into its cell."""
        if self.height < NUMBER * LINE:
            return False
        return max(pen.width(text, NUMBER) for text in set(self.texts(decimals).values())) + 1.5 <= self.width


@dataclass(frozen=True)
class Plan:
    """What the panels of a figure have in common.

    Attributes:
        pen: measures texts.
        colours: the scale, which also says how numbers are written.
        numbers: write numbers into the cells; None: if they fit.
        sums: add the sums and the scores without a unit in the margins, if there are numbers.
        strip: show the effects; by default if the explanation has any.
        tallest: the largest height of the cells of a panel together, unless its height is given.
    """

    pen: Pen
    colours: Scale
    numbers: bool | None
    sums: bool = True
    strip: bool | None = None
    tallest: float = TALLEST

    def fit(self, cells: Cells, room: float) -> Panel:
        """The layout that is at most `room` wide, labels included."""
        labels = (*numbered(cells.down, cells.without[0], cells.e.score), "effects" * cells.has_effects)
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

        strip = cells.has_effects if self.strip is None else self.strip

        def sized(totals: tuple[str, ...], written: bool) -> Panel:
            panel = Panel(cells, strip, totals, written)
            wide = room / panel.extent[0]
            if high:
                return replace(panel, width=wide, height=high / panel.extent[1])
            return replace(panel, width=min(wide, CELL[0]), height=min(CELL[1], max(self.tallest / len(values), 2.0)))

        known = ("without",) * any(map(any, cells.without))
        choices = [("sum", *known), known, ()] if self.sums else [()]
        panels = [sized(totals, True) for totals in choices] if self.numbers is not False else []
        fitting = (panel for panel in panels if self.numbers or panel.fits(pen, self.colours.decimals))
        panel = next(fitting, sized((), False))
        # Where the scores without a unit have no place of their own, they stand in the labels.
        labelled = bool(known) and self.sums and "without" not in panel.totals
        rows, columns = (
            (*(numbered(axis, without, cells.e.score) if labelled else axis.labels), *panel.more)
            for axis, without in zip((cells.down, cells.across), cells.without, strict=True)
        )
        strength_a, strength_b = np.abs(values).sum(1), np.abs(values).sum(0)
        return replace(
            panel,
            rows=beside(rows, strength_a, panel.starts(len(strength_a)) + 0.5, panel.height, left, pen),
            columns=above(columns, strength_b, panel.starts(len(strength_b)) + 0.5, panel.width, pen),
        )


def numbered(axis: Axis, without: Sequence[Without | None], score: float) -> list[str]:
    """The labels of an axis, each with the score without its unit where that is known."""
    return [f"{label}  {points(w, score)}" if w else label for label, w in zip(axis.labels, without, strict=True)]


def paint(ax: Axes, panel: Panel, colours: Scale, *, rows: bool = True, columns: bool = True) -> None:
    """Draw a panel into axes of its size, with the labels of its rows and columns unless they are switched off."""
    cells, values = panel.cells, panel.cells.values
    count_a, count_b = values.shape
    small = min(panel.width, panel.height) < 9
    ax.pcolormesh(
        np.arange(count_b + 1),
        np.arange(count_a + 1),
        cells.settled,
        cmap=COLOURS,
        norm=colours.norm,
        edgecolors="face" if small else LIGHT.paper,
        linewidth=0.1 if small else 0.6,
        rasterized=values.size > _VECTORS,
    )
    if panel.strip:
        ax.add_collection(_strips(panel, colours, small))
    ax.set(xlim=(0, panel.extent[0]), ylim=(panel.extent[1], 0))
    ax.grid(visible=False)
    ax.set_facecolor("none")
    ax.spines[:].set_visible(False)
    for axis, draw_line in ((cells.down, ax.axhline), (cells.across, ax.axvline)):
        if axis.single < len(axis.labels):
            draw_line(axis.single, color=LIGHT.paper, linewidth=2.0)
    _label(ax, panel, rows, columns)
    shades = panel.coloured
    lefts, tops = panel.starts(count_b) + 0.5, panel.starts(count_a) + 0.5
    for (i, j), text in panel.texts(colours.decimals).items() if panel.numbers else ():
        noise = i < count_a and j < count_b and cells.noise[i, j]
        colour = ink_on(shade(shades[i, j] / colours.limit)) if (i, j) in shades else LIGHT.ink
        ax.text(
            lefts[j],
            tops[i],
            text,
            fontsize=NUMBER,
            color=LIGHT.faint if noise else colour,
            ha="center",
            va="center_baseline",
        )


def _strips(panel: Panel, colours: Scale, small: bool) -> PatchCollection:
    """The effects: a column beside the cells and a row below them, in the same colours."""
    count_a, count_b = panel.cells.values.shape
    lefts, tops = panel.starts(count_b), panel.starts(count_a)
    strip = {(i, j): value for (i, j), value in panel.coloured.items() if i == count_a or j == count_b}
    edge: Any = {"edgecolor": "face", "linewidth": 0.1} if small else {"edgecolor": LIGHT.paper, "linewidth": 0.6}
    patches = PatchCollection([Rectangle((lefts[j], tops[i]), 1, 1) for i, j in strip], cmap=COLOURS, **edge)
    patches.set_norm(colours.norm)
    patches.set_array(np.array(list(strip.values())))
    return patches


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
        for labels, count in zip((panel.rows, panel.columns), panel.shape, strict=True)
    ]
    ax.tick_params(axis="y", length=ticks[0], width=0.4, pad=1.5, colors=LIGHT.ink)
    ax.tick_params(axis="x", length=ticks[1], width=0.4, pad=1.5, colors=LIGHT.ink, top=True, bottom=False)
    ax.tick_params(axis="x", labeltop=True, labelbottom=False)
    ax.tick_params(which="minor", length=0)
