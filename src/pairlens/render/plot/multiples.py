"""Small multiples: one pair over layers, or several pairs, all on one colour scale. Sizes are in points."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from pairlens.errors import InputError, whole
from pairlens.render.axis import Axis, axis, strengths
from pairlens.render.colours import LIGHT
from pairlens.render.plot.figure import LABEL, LINE, MARGIN, NUMBER, TITLE, Pen, drawing, inches, place, sheet, write
from pairlens.render.plot.panel import Panel, fitted, paint, plan
from pairlens.render.plot.scale import BAR, Scale, bar, plain, scale
from pairlens.render.text import clean

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pairlens.attribution.explanation import Explanation

    Explanations = Mapping[Any, Explanation] | Sequence[Explanation]

_GAP = 12.0  # between panels
_HEAD = LABEL * LINE + 2  # a panel's title
_TALLEST = 160.0  # how high the cells of a panel may be together
_CELL, _WIDTH = 19.0, 150.0  # as many panels go side by side as leave their cells so wide, or themselves


@dataclass(frozen=True)
class Tile:
    """An explanation in its place among others: its title, what stands beside that, and its axes."""

    title: str
    caption: str
    e: Explanation
    down: Axis
    across: Axis


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
    """One pair over several layers, or methods: a heat map each, with the same rows, columns and colours.

    Args:
        explanations: of one pair of texts with the same units, in order; a mapping's keys name them, and a whole number
            is a layer.
        width: of the figure, in inches; 3.3 is one column of a paper, 6.9 two.
        columns: how many heat maps go side by side; by default as many as stay legible.
        numbers: write the values into the cells; by default where they fit into all of them.
        special: show every special token; otherwise they are added up in one row and one column.
        limit: the value that has the strongest colour; by default that of the strongest pair of all.
        title: a line above.

    Example:
        >>> from pairlens import Lens
        >>> lens = Lens()
        >>> found = {n: lens.explain("A cat.", "A kitten.", level="word", layer=n) for n in (0, 3, 6)}
        >>> figure, axes = layers(found)
        >>> len(axes)
        3
    """
    named = _named(explanations)
    first = named[0][1]
    for name, e in named:
        if (e.units_a, e.units_b) != (first.units_a, first.units_b):
            raise InputError(f"layers shows one pair of texts with the same units, and {name!r} has others. Use grid.")
    strength_a, strength_b = (sum(both) for both in zip(*(strengths(e) for _, e in named), strict=True))
    down = axis(first.units_a, strength_a, special=special)  # pyright: ignore[reportArgumentType]
    across = axis(first.units_b, strength_b, special=special)  # pyright: ignore[reportArgumentType]
    sums = [f"pairs {plain(float(e.matrix.sum()), 3)}" for _, e in named]
    captions = sums if len(set(sums)) > 1 else [""] * len(sums)
    tiles = [Tile(name, caption, e, down, across) for (name, e), caption in zip(named, captions, strict=True)]
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
    """Several pairs of texts: a heat map each, on one colour scale.

    Args:
        explanations: in order; a mapping's keys are the titles.
        width, columns, numbers, special, limit, title: as for `layers`.

    Example:
        >>> from pairlens import Lens
        >>> lens = Lens()
        >>> pairs = [("A cat.", "A kitten."), ("A cat.", "No cat.")]
        >>> figure, axes = grid([lens.explain(a, b, level="word") for a, b in pairs], columns=2)
        >>> len(axes)
        2
    """
    tiles = []
    for name, e in _named(explanations, bare=True):
        sides = zip((e.units_a, e.units_b), strengths(e), strict=True)
        down, across = (axis(units, strength, special=special) for units, strength in sides)
        tiles.append(Tile(name, f"score {plain(e.score, 3)}", e, down, across))
    return _compose(tiles, width, columns, numbers, limit, title, shared=False)


def _named(explanations: Explanations, *, bare: bool = False) -> list[tuple[str, Explanation]]:
    """The explanations with their names; `bare`: those that have none stay without."""
    if isinstance(explanations, Mapping):
        found = [(f"layer {key}" if isinstance(key, int) else clean(str(key)), e) for key, e in explanations.items()]
    else:
        found = [("" if bare else _settings(e), e) for e in explanations]
    if not found:
        raise InputError("there is nothing to draw: give at least one explanation.")
    return found


def _settings(e: Explanation) -> str:
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
    """The panels in rows; with `shared` axes only the outer ones have labels."""
    labels = [label for tile in tiles for label in (*tile.down.labels, *tile.across.labels, tile.title)]
    with drawing([*labels, title or ""]) as pen:
        cells = [tile.down.sums @ tile.e.matrix @ tile.across.sums.T for tile in tiles]
        units = [c[: t.down.single, : t.across.single] for c, t in zip(cells, tiles, strict=True)]
        colours = scale(tiles[0].e, units, cells, limit)
        room = inches(width) - 2 * MARGIN
        left = min(max(pen.width(label) for label in tiles[0].down.labels), 0.2 * room) + 4 if shared else 0.0
        count = whole("columns", columns, 1) if columns is not None else _columns(tiles, room - left, pen, shared)
        panels = _panels(tiles, room - left, count, left, pen, colours, numbers, shared)
        over = max(panel.columns.overhang for panel in panels) if shared else 0.0
        pitch = (room - left - over + max(over, _GAP)) / count
        rows = [range(start, min(start + count, len(tiles))) for start in range(0, len(tiles), count)]
        tops, high = _heights(panels, rows, MARGIN + (TITLE * LINE + 3 if title else 0.0), shared)
        figure = sheet(inches(width), high + BAR + MARGIN)
        axes: list[Axes] = []
        for row, top in zip(rows, tops, strict=True):
            for column, i in enumerate(row):
                x = MARGIN + left + column * pitch + (0.0 if shared else panels[i].rows.depth)
                above = max(panels[j].columns.depth for j in row) if row[0] == 0 or not shared else 0.0
                axes.append(place(figure, x, top + _HEAD + above, *panels[i].size))
                paint(axes[-1], panels[i], colours, rows=not shared or not column, columns=not shared or row[0] == 0)
                _head(figure, tiles[i], x, top, panels[i].size[0], pen)
        long = min(220.0, room - 24)
        bar(figure, colours, cax=place(figure, (inches(width) - long) / 2, high + 8, long, 4))
        if title:
            write(figure, MARGIN, MARGIN, pen.shorten(clean(title), room, TITLE, "bold"), TITLE, weight="bold")
    return figure, axes


def _columns(tiles: Sequence[Tile], room: float, pen: Pen, shared: bool) -> int:
    """How many panels go side by side: as many as stay legible, then no more than the rows need."""
    wanted = 0.0
    for tile in tiles:
        beside = 0.0 if shared else max(pen.width(label) for label in tile.down.labels) + 4
        wanted = max(wanted, min(_CELL * len(tile.across.labels), _WIDTH) + beside)
    most = max(1, min(len(tiles), int((room + _GAP) / (wanted + _GAP))))
    return math.ceil(len(tiles) / math.ceil(len(tiles) / most))


def _panels(
    tiles: Sequence[Tile],
    room: float,
    count: int,
    left: float,
    pen: Pen,
    colours: Scale,
    numbers: bool | None,
    shared: bool,
) -> list[Panel]:
    """The panels of a row's room, all of them with numbers or none."""

    def panel(tile: Tile, numbers: bool | None) -> Panel:
        across = (room - _GAP * (count - 1)) / count
        if not shared:
            return fitted(tile.e, tile.down, tile.across, across, pen, colours, numbers, sums=False, tallest=_TALLEST)
        # Turned labels reach over the last column, into the gap and, at the right end, beyond it.
        over = plan(tile.e, tile.down, tile.across, across, pen, colours, numbers, sums=False).columns.overhang
        across = (room - over - max(over, _GAP) * (count - 1)) / count
        given = tile.e, tile.down, tile.across, across, pen, colours, numbers
        return plan(*given, sums=False, tallest=_TALLEST, left=left)

    panels = [panel(tile, numbers) for tile in tiles]
    return panels if len({p.numbers for p in panels}) == 1 else [panel(tile, False) for tile in tiles]


def _heights(panels: Sequence[Panel], rows: Sequence[range], start: float, shared: bool) -> tuple[list[float], float]:
    """Where each row of panels begins, and where the last one ends."""
    tops = []
    for number, row in enumerate(rows):
        tops.append(start)
        labels = max(panels[i].columns.depth for i in row) if number == 0 or not shared else 0.0
        start += _HEAD + labels + max(panels[i].size[1] for i in row) + _GAP
    return tops, start - _GAP


def _head(figure: Figure, tile: Tile, x: float, top: float, room: float, pen: Pen) -> None:
    """A panel's title, and what stands beside it where there is room."""
    beside = pen.width(tile.caption, NUMBER)
    title = pen.shorten(tile.title, room, weight="bold")
    write(figure, x, top, title, LABEL, weight="bold")
    across = pen.width(title, weight="bold") + 5 if title else 0.0
    if across + beside <= room + _GAP:
        write(figure, x + across, top + 0.8, tile.caption, NUMBER, color=LIGHT.faint)
