"""The heat map of one explanation. Sizes are in points."""

from __future__ import annotations

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pairlens.attribution.explanation import Explanation
from pairlens.render.axis import Cells, fold
from pairlens.render.colours import LIGHT
from pairlens.render.names import noun
from pairlens.render.plot import canvas
from pairlens.render.plot.canvas import COLUMN, LINE, MARGIN, NUMBER, PAGE, TITLE
from pairlens.render.plot.panel import Plan, paint
from pairlens.render.plot.scale import BAR, draw_bar, plain, scale
from pairlens.render.text import clean, equation, forecast, meanings, without_note

_FEW = 10  # columns that fit into one column of a paper, with those of effects and totals


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
    """Draw the matrix in colours: blue where two units add to the score, orange where they take from it.

    The effects, where there are any, are a strip beside the matrix and one below it. Where the numbers fit into the
    cells, they are written there, with the sums of rows and columns and the score without each unit in the margins.
    Where not all labels fit, the strongest units keep theirs.

    Args:
        e: the explanation.
        ax: axes to draw into; by default those of a new figure, as high as needed.
        width: of the new figure, in inches: by default 3.3, one column of a paper, or 6.9, two columns, if text b has
            more than ten units, or seven where there are effects.
        numbers: write the values into the cells; by default where they fit.
        special: show every special token; otherwise they are summed up in one row and one column.
        limit: the value that has the strongest colour, to compare figures; by default that of the strongest pair or
            effect.
        title: a line above the matrix.
        note: write the equation of the score below, what the special tokens add, and how well deletions are predicted.

    Example:
        >>> from pairlens import Lens
        >>> e = Lens().explain("A cat sleeps.", "A kitten is asleep.", level="word")
        >>> figure, axes = heatmap(e, width=3.3)
        >>> [label.get_text() for label in axes.get_yticklabels()]
        ['A', 'cat', 'sleeps', '.', 'effects', 'sum', 'without']
    """
    cells = fold(e, special=special)
    with canvas.drawing([*cells.labels, clean(title or "")]) as pen:
        plan = Plan(pen, scale([cells], limit), numbers)
        if ax is not None:
            return _draw_into(ax, cells, plan, title)
        few = cells.across.single + 3 * cells.has_effects <= _FEW
        full = canvas.inches(width if width is not None else COLUMN if few else PAGE)
        return _draw_figure(full, cells, plan, title, note)


def _draw_figure(full: float, cells: Cells, plan: Plan, title: str | None, note: bool) -> tuple[Figure, Axes]:
    """Draw the heat map into a new figure of the given width, with the colour bar and the notes below."""
    room = full - 2 * MARGIN
    panel = plan.fit(cells, room)
    notes = plan.pen.wrap(_notes(cells, "without" in panel.totals), room) if note else []
    top = MARGIN + (TITLE * LINE + 2 if title else 0.0) + panel.columns.depth
    bottom = top + panel.size[1]
    figure = canvas.sheet(full, bottom + BAR + len(notes) * NUMBER * LINE + MARGIN)
    left = MARGIN + (room - panel.rows.depth - panel.size[0] - panel.columns.overhang) / 2 + panel.rows.depth
    axes = canvas.place(figure, left, top, *panel.size)
    paint(axes, panel, plan.colours)
    coloured = panel.width * cells.values.shape[1]
    long = min(max(coloured, 120.0), room - 24)
    start = min(max(left + (coloured - long) / 2, MARGIN + 12), full - MARGIN - 12 - long)
    draw_bar(figure, plan.colours, cax=canvas.place(figure, start, bottom + 8, long, 4))
    for line, text in enumerate(notes):
        canvas.write(figure, MARGIN, bottom + BAR + line * NUMBER * LINE, text, NUMBER, color=LIGHT.faint)
    canvas.write_title(figure, title, room, plan.pen)
    return figure, axes


def _draw_into(ax: Axes, cells: Cells, plan: Plan, title: str | None) -> tuple[Figure, Axes]:
    """Draw the heat map into axes of the caller's, with the colour bar below them."""
    figure = canvas.owner(ax)
    draw_bar(figure, plan.colours, ax=ax)
    wide, high = canvas.extent(ax)
    paint(ax, plan.lay_out(cells, wide, high=high), plan.colours)
    if title:
        ax.set_title(clean(title), fontsize=TITLE, color=LIGHT.ink)
    return figure, ax


def _notes(cells: Cells, titled: bool) -> list[str]:
    """The equation of the score in numbers and words, the forecast, and what folded special tokens add.

    Args:
        cells: what is drawn.
        titled: whether the scores without a unit have a row and a column; otherwise they stand in the labels.
    """
    e = cells.e
    text_a, text_b = (np.array([unit.kind != "special" for unit in units]) for units in (e.units_a, e.units_b))
    special = float(e.matrix.sum() - e.matrix[np.ix_(text_a, text_b)].sum())
    folded = (cells.down.folded or cells.across.folded) and round(special, 4)
    notes = [
        equation(e).replace("-", "−"),
        f"pairs with special tokens: {plain(special, 4)}" if folded else "",
        *(meanings(e) if cells.has_effects else []),
        without_note(cells.without, "without" if titled else f"number at a {noun(e.settings)}", noun(e.settings)),
        forecast(e).replace("-", "−"),
    ]
    return [note for note in notes if note]
