"""Small multiples: one pair over layers, or several pairs, all on one colour scale. Sizes are in points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError, whole
from pairlens.render.axis import Cells, axis, fold, strengths
from pairlens.render.colours import LIGHT
from pairlens.render.plot import canvas
from pairlens.render.plot.canvas import LABEL, LINE, MARGIN, NUMBER, TITLE, Pen
from pairlens.render.plot.panel import Panel, Plan, paint
from pairlens.render.plot.scale import BAR, draw_bar, plain, scale
from pairlens.render.text import clean

Explanations = Mapping[Any, Explanation] | Sequence[Explanation]
_GAP = 12.0  # between panels
_HEAD = LABEL * LINE + 2  # the height of a panel's title
_TALLEST = 160.0  # the largest height of all cells of a panel together
_CELL, _WIDTH = 19.0, 150.0  # a panel is legible if its cells, or the panel itself, are at least this wide


@dataclass(frozen=True)
class Tile:
    """One explanation of a figure: its title, a caption beside the title, and its cells."""

    title: str
    caption: str
    cells: Cells


def layers(
    explanations: Explanations,
    *,
    width: float = 6.9,
    columns: int | None = None,
    numbers: bool | None = None,
    special: bool = False,
    limit: float | None = None,
    title: str | None = None,
) -> tuple[Figure, list[Axes]]:
    """Draw one pair at several layers, or with several methods: a heat map each, with the same units and colours.

    Args:
        explanations: of one pair of texts with the same units, in order; the keys of a mapping are their titles, and a
            whole number is a layer.
        width: of the figure, in inches; 3.3 is one column of a paper, 6.9 two.
        columns: how many heat maps go side by side; by default as many as stay legible.
        numbers: write the values into the cells; by default if they fit into the cells of all heat maps.
        special: show every special token; otherwise they are summed up in one row and one column.
        limit: the value that has the strongest colour; by default that of the strongest pair of all.
        title: a line above the heat maps.

    Example:
        >>> from pairlens import Lens
        >>> lens = Lens()
        >>> explained = {n: lens.explain("A cat.", "A kitten.", level="word", layer=n) for n in (0, 3, 6)}
        >>> figure, axes = layers(explained)
        >>> len(axes)
        3
    """
    named = _named(explanations)
    first = named[0][1]
    for name, e in named:
        if (e.units_a, e.units_b) != (first.units_a, first.units_b):
            raise InputError(f"layers shows one pair of texts with the same units, and {name!r} has others. Use grid.")
    strength_a, strength_b = (np.sum(both, axis=0) for both in zip(*(strengths(e) for _, e in named), strict=True))
    down = axis(first.units_a, strength_a, special=special)
    across = axis(first.units_b, strength_b, special=special)
    sums = [f"pairs {plain(float(e.matrix.sum()), 3)}" for _, e in named]
    captions = sums if len(set(sums)) > 1 else [""] * len(sums)
    tiles = [Tile(name, caption, Cells(e, down, across)) for (name, e), caption in zip(named, captions, strict=True)]
    return _compose(tiles, width, columns, numbers, limit, title, shared=True)


def grid(
    explanations: Explanations,
    *,
    width: float = 6.9,
    columns: int | None = None,
    numbers: bool | None = None,
    special: bool = False,
    limit: float | None = None,
    title: str | None = None,
) -> tuple[Figure, list[Axes]]:
    """Draw several pairs of texts: a heat map each, on one colour scale.

    Args:
        explanations: in order; the keys of a mapping are their titles.
        width, columns, numbers, special, limit, title: as for `layers`.

    Example:
        >>> from pairlens import Lens
        >>> lens = Lens()
        >>> pairs = [("A cat.", "A kitten."), ("A cat.", "No cat.")]
        >>> figure, axes = grid([lens.explain(a, b, level="word") for a, b in pairs], columns=2)
        >>> len(axes)
        2
    """
    named = _named(explanations, bare=True)
    tiles = [Tile(name, f"score {plain(e.score, 3)}", fold(e, special=special)) for name, e in named]
    return _compose(tiles, width, columns, numbers, limit, title, shared=False)


def _named(explanations: Explanations, *, bare: bool = False) -> list[tuple[str, Explanation]]:
    """The explanations with their titles. Without a mapping, these come from the settings, or are empty if `bare`."""
    if isinstance(explanations, Mapping):
        named = [(f"layer {key}" if isinstance(key, int) else clean(str(key)), e) for key, e in explanations.items()]
    else:
        named = [("" if bare else _layer_or_method(e), e) for e in explanations]
    if not named:
        raise InputError("there is nothing to draw: give at least one explanation.")
    return named


def _layer_or_method(e: Explanation) -> str:
    layer = e.settings.get("layer")
    return clean(str(e.settings.get("method", ""))) if layer is None else f"layer {layer}"


def _compose(
    tiles: Sequence[Tile],
    width: float,
    columns: int | None,
    numbers: bool | None,
    limit: float | None,
    title: str | None,
    *,
    shared: bool,
) -> tuple[Figure, list[Axes]]:
    """Draw the panels in rows; with `shared` axes only the first column and the first row have labels."""
    with canvas.drawing([*(text for tile in tiles for text in (*tile.cells.labels, tile.title)), title or ""]) as pen:
        colours = scale([tile.cells for tile in tiles], limit)
        strip = any(tile.cells.has_effects for tile in tiles) if shared else None
        plan = Plan(pen, colours, numbers, sums=False, strip=strip, tallest=_TALLEST)
        room = canvas.inches(width) - 2 * MARGIN
        left = min(max(pen.width(label) for label in tiles[0].cells.down.labels), 0.2 * room) + 4 if shared else 0.0
        count = whole("columns", columns, 1) if columns is not None else _columns(tiles, room - left, pen, shared)
        panels = _panels(tiles, room - left, count, left, plan, shared)
        over = max(panel.columns.overhang for panel in panels) if shared else 0.0
        pitch = (room - left - over + max(over, _GAP)) / count
        rows = [range(start, min(start + count, len(tiles))) for start in range(0, len(tiles), count)]
        tops, high = _heights(panels, rows, MARGIN + (TITLE * LINE + 3 if title else 0.0), shared)
        figure = canvas.sheet(canvas.inches(width), high + BAR + MARGIN)
        axes: list[Axes] = []
        for row, top in zip(rows, tops, strict=True):
            for column, i in enumerate(row):
                x = MARGIN + left + column * pitch + (0.0 if shared else panels[i].rows.depth)
                above = max(panels[j].columns.depth for j in row) if row[0] == 0 or not shared else 0.0
                axes.append(canvas.place(figure, x, top + _HEAD + above, *panels[i].size))
                paint(axes[-1], panels[i], colours, rows=not shared or not column, columns=not shared or row[0] == 0)
                _write_head(figure, tiles[i], x, top, panels[i].size[0], pen)
        long = min(220.0, room - 24)
        draw_bar(figure, colours, cax=canvas.place(figure, (canvas.inches(width) - long) / 2, high + 8, long, 4))
        canvas.write_title(figure, title, room, pen)
    return figure, axes


def _columns(tiles: Sequence[Tile], room: float, pen: Pen, shared: bool) -> int:
    """How many panels go side by side: as many as stay legible, or fewer if that fills the rows evenly."""
    wanted = 0.0
    for tile in tiles:
        beside = 0.0 if shared else max(pen.width(label) for label in tile.cells.down.labels) + 4
        wanted = max(wanted, min(_CELL * len(tile.cells.across.labels), _WIDTH) + beside)
    most = max(1, min(len(tiles), int((room + _GAP) / (wanted + _GAP))))
    return math.ceil(len(tiles) / math.ceil(len(tiles) / most))


def _panels(tiles: Sequence[Tile], room: float, count: int, left: float, plan: Plan, shared: bool) -> list[Panel]:
    """The layouts of all panels, either all with numbers or all without."""

    def panel(tile: Tile, plan: Plan) -> Panel:
        across = (room - _GAP * (count - 1)) / count
        if not shared:
            return plan.fit(tile.cells, across)
        # Turned labels extend beyond the last column: into the gap, or at the right end into the margin.
        over = plan.lay_out(tile.cells, across).columns.overhang
        return plan.lay_out(tile.cells, (room - over - max(over, _GAP) * (count - 1)) / count, left=left)

    panels = [panel(tile, plan) for tile in tiles]
    if len({p.numbers for p in panels}) > 1:
        panels = [panel(tile, replace(plan, numbers=False)) for tile in tiles]
    return panels


def _heights(panels: Sequence[Panel], rows: Sequence[range], start: float, shared: bool) -> tuple[list[float], float]:
    """The top of each row of panels, and the bottom of the last one."""
    tops = []
    for number, row in enumerate(rows):
        tops.append(start)
        labels = max(panels[i].columns.depth for i in row) if number == 0 or not shared else 0.0
        start += _HEAD + labels + max(panels[i].size[1] for i in row) + _GAP
    return tops, start - _GAP


def _write_head(figure: Figure, tile: Tile, x: float, top: float, room: float, pen: Pen) -> None:
    """Write a panel's title, and its caption beside the title if there is room."""
    title = pen.shorten(tile.title, room, weight="bold")
    canvas.write(figure, x, top, title, LABEL, weight="bold")
    across = pen.width(title, weight="bold") + 5 if title else 0.0
    if across + pen.width(tile.caption, NUMBER) <= room + _GAP:
        canvas.write(figure, x + across, top + 0.8, tile.caption, NUMBER, color=LIGHT.faint)
