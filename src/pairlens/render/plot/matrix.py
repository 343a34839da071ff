"""The heat map of one explanation. Sizes are in points."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from pairlens.render.axis import Axis, axis, strengths
from pairlens.render.colours import LIGHT
from pairlens.render.plot.figure import (
    COLUMN,
    LINE,
    MARGIN,
    NUMBER,
    PAGE,
    TITLE,
    Pen,
    drawing,
    extent,
    inches,
    owner,
    place,
    sheet,
    write,
)
from pairlens.render.plot.panel import fitted, paint, plan
from pairlens.render.plot.scale import BAR, Scale, bar, plain, scale
from pairlens.render.text import clean, equation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pairlens.attribution.explanation import Explanation

_FEW = 10  # columns of cells that one column of a paper has room for


def heatmap(
    e: Explanation,
    *,
    ax: Axes | None = None,
    width: float | None = None,
    numbers: bool | None = None,
    special: bool = False,
    limit: float | None = None,
    title: str | None = None,
    note: bool = True,
) -> tuple[Figure, Axes]:
    """The matrix in colours: blue for what units contribute together to the score, orange for what they take from it.

    Where the numbers fit into the cells, they are written there, with the sums of rows and columns in the margins.
    Where the labels do not all fit, the strongest units keep theirs.

    Args:
        e: the explanation.
        ax: axes of your own to draw into; otherwise there is a new figure, as high as it needs to be.
        width: of the new figure, in inches: by default 3.3, one column of a paper, and for more than ten units of
            text b 6.9, two columns.
        numbers: write the values into the cells; by default where they fit.
        special: show every special token; otherwise they are added up in one row and one column.
        limit: the value that has the strongest colour, to compare figures; by default the strongest pair's.
        title: a line above.
        note: the sum of the score below, and what the special tokens add; the colour bar stays without it.

    Example:
        >>> from pairlens import Lens
        >>> e = Lens().explain("A cat sleeps.", "A kitten is asleep.", level="word")
        >>> figure, axes = heatmap(e, width=3.3)
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['A', 'cat', 'sleeps', '.', 'sum']
    """
    down, across = (
        axis(units, s, special=special) for units, s in zip((e.units_a, e.units_b), strengths(e), strict=True)
    )
    with drawing([*down.labels, *across.labels, clean(title or "")]) as pen:
        cells = down.sums @ e.matrix @ across.sums.T
        colours = scale(e, [cells[: down.single, : across.single]], [cells], limit)
        if ax is not None:
            return _into(ax, e, down, across, pen, colours, numbers, title)
        full = inches(width if width is not None else COLUMN if across.single <= _FEW else PAGE)
        room = full - 2 * MARGIN
        panel = fitted(e, down, across, room, pen, colours, numbers)
        notes = pen.wrap(_notes(e, down, across), room) if note else []
        head = TITLE * LINE + 2 if title else 0.0
        high = MARGIN + head + panel.columns.depth + panel.size[1]
        figure = sheet(full, high + BAR + len(notes) * NUMBER * LINE + MARGIN)
        left = MARGIN + (room - panel.rows.depth - panel.size[0] - panel.columns.overhang) / 2 + panel.rows.depth
        axes = place(figure, left, MARGIN + head + panel.columns.depth, *panel.size)
        paint(axes, panel, colours)
        coloured = panel.width * panel.values.shape[1]
        long = min(max(coloured, 120.0), room - 24)
        start = min(max(left + (coloured - long) / 2, MARGIN + 12), full - MARGIN - 12 - long)
        bar(figure, colours, cax=place(figure, start, high + 8, long, 4))
        for line, text in enumerate(notes):
            write(figure, MARGIN, high + BAR + line * NUMBER * LINE, text, NUMBER, color=LIGHT.faint)
        if title:
            write(figure, MARGIN, MARGIN, pen.shorten(clean(title), room, TITLE, "bold"), TITLE, weight="bold")
    return figure, axes


def _into(
    ax: Axes,
    e: Explanation,
    down: Axis,
    across: Axis,
    pen: Pen,
    colours: Scale,
    numbers: bool | None,
    title: str | None,
) -> tuple[Figure, Axes]:
    """The heat map in axes of the caller's, with the colour bar below them."""
    figure = owner(ax)
    bar(figure, colours, ax=ax)
    wide, high = extent(ax)
    paint(ax, plan(e, down, across, wide, pen, colours, numbers, high=high), colours)
    if title:
        ax.set_title(clean(title), fontsize=TITLE, color=LIGHT.ink)
    return figure, ax


def _notes(e: Explanation, down: Axis, across: Axis) -> list[str]:
    """The sum of the score, and how much of it the folded special tokens are."""
    total = equation(e).replace("-", "−")
    if not down.folded and not across.folded:
        return [total]
    text_a, text_b = (np.array([unit.kind != "special" for unit in units]) for units in (e.units_a, e.units_b))
    rest = float(e.matrix.sum() - e.matrix[np.ix_(text_a, text_b)].sum())
    return [total, f"pairs with special tokens: {plain(rest, 4)}"]
