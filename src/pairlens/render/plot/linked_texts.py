"""Both texts as running text, one above the other, with curves for the strongest pairs. Sizes are in points."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from pairlens.attribution.explanation import Explanation
from pairlens.errors import whole
from pairlens.render.axis import Axis, Cells, fold
from pairlens.render.colours import LIGHT, shade
from pairlens.render.deletion import Without
from pairlens.render.names import noun
from pairlens.render.plot import canvas
from pairlens.render.plot.blocks import Block, Looks, block
from pairlens.render.plot.canvas import COLUMN, LINE, MARGIN, NUMBER, PAGE, TITLE, Pen
from pairlens.render.plot.curves import Link, draw_curves, draw_key, strongest
from pairlens.render.plot.scale import Scale, plain, scale
from pairlens.render.text import clean, equation, forecast, points, without_note
from pairlens.shapes import Float
from pairlens.text import Unit, in_compounds

_BETWEEN = 68.0  # the height between the two texts
_SHORT = 120  # characters of a text that fits into one column of a paper
_KEY = 17.0  # the height of the legend
_FAINTEST = 0.04  # weaker effects, relative to the strongest colour, have none


def links(
    e: Explanation,
    *,
    ax: Axes | None = None,
    width: float | None = None,
    top: int = 10,
    numbers: bool = True,
    special: bool = False,
    limit: float | None = None,
    title: str | None = None,
    note: bool = True,
) -> tuple[Figure, Axes]:
    """Draw text a above text b, and curves between the units of the strongest pairs: blue together, orange apart.

    The width of a curve is proportional to the value of its pair, the colour behind a word is its effect, and its
    number the score without it. Long texts are shortened to the surroundings of their linked units.

    Args:
        e: the explanation.
        ax: axes to draw into; by default those of a new figure, as high as needed.
        width: of the new figure, in inches: by default 3.3, one column of a paper, or 6.9 for more than 120 characters.
        top: how many pairs, the strongest of either sign.
        numbers: write each pair's value on its curve, where there is room.
        special: treat special tokens like other units; otherwise those of a text are summed up.
        limit: the value of the thickest curve, to compare figures; by default that of the strongest pair or effect.
        title: a line above the texts.
        note: write the equation of the score below, the sum of the other pairs, and how well deletions are predicted.

    Example:
        >>> from pairlens import Lens
        >>> e = Lens().explain("A cat sleeps.", "A kitten is asleep.", level="word")
        >>> figure, axes = links(e, top=3)
        >>> len(axes.patches)
        3
    """
    cells = fold(e, special=special)
    colours = scale([cells], limit)
    shown = strongest(cells.settled, whole("top", top, 1))
    if width is None:
        width = COLUMN if max(len(e.text_a), len(e.text_b)) <= _SHORT else PAGE
    with canvas.drawing([e.text_a, e.text_b, *cells.labels, title or ""]) as pen:
        wide = canvas.inches(width) if ax is None else canvas.extent(ax)[0]
        upper, lower = _blocks(cells, shown, colours, (MARGIN, wide - MARGIN), pen)
        notes = pen.wrap(_notes(cells, shown), wide - 2 * MARGIN) if note else []
        head = MARGIN + (TITLE * LINE + 3 if title else 0.0)
        foot = _KEY + len(notes) * NUMBER * LINE + MARGIN
        high = head + upper.height + _BETWEEN + lower.height + foot
        if ax is None:
            figure = canvas.sheet(wide, high)
            ax = canvas.place(figure, 0, 0, wide, high)
        else:  # the curves take the height that is left
            figure, high = canvas.owner(ax), max(canvas.extent(ax)[1], high - _BETWEEN + 24)
        ax.set(xlim=(0, wide), ylim=(high, 0))
        ax.set_axis_off()
        edges = head + upper.height, high - foot - lower.height
        spots = upper.draw(ax, head), lower.draw(ax, edges[1])
        draw_curves(ax, shown, spots, edges, colours, pen, numbers)
        draw_key(ax, shown, colours, (wide / 2, high - foot + 10), pen)
        _write_around(ax, title, notes, high - foot + _KEY, wide - 2 * MARGIN, pen)
    return figure, ax


def _blocks(
    cells: Cells, shown: Sequence[Link], colours: Scale, edges: tuple[float, float], pen: Pen
) -> tuple[Block, Block]:
    """Both texts, with the effects as colours behind the words, and the scores without them on their outer sides."""
    e = cells.e
    looks_a = _looks(e, e.units_a, cells.down, cells.effects[0], cells.without[0], colours)
    looks_b = _looks(e, e.units_b, cells.across, cells.effects[1], cells.without[1], colours)
    upper = block(e.text_a, e.units_a, cells.down, {link.a for link in shown}, edges, pen, looks_a)
    return upper, block(e.text_b, e.units_b, cells.across, {link.b for link in shown}, edges, pen, looks_b)


def _looks(
    e: Explanation,
    units: Sequence[Unit],
    axis: Axis,
    effects: Float[np.ndarray, " lines"],
    known: Sequence[Without | None],
    colours: Scale,
) -> Looks:
    """What is shown of the units of a text; those whose deletion changes the score most get their numbers first."""
    shares = {line: float(effects[line]) / colours.limit for line in range(axis.single)}
    changes = sorted(((line, w) for line, w in enumerate(known) if w), key=lambda each: -abs(each[1].score - e.score))
    lines = axis.lines()
    return Looks(
        tints={line: shade(share) for line, share in shares.items() if abs(share) >= _FAINTEST},
        numbers={line: points(w, e.score) for line, w in changes},
        above=units is e.units_a,
        marked={lines[unit] for unit in in_compounds(units)},
    )


def _notes(cells: Cells, shown: Sequence[Link]) -> list[str]:
    """The equation of the score, the sum of the pairs without a curve, what the words show, and the forecast."""
    e = cells.e
    rest = float(cells.values.sum()) - sum(link.value for link in shown)
    count = int((cells.values != 0).sum()) - len(shown)
    others = [f"{count} pair{'s' * (count > 1)} without a curve: {plain(rest, 4)}"] if count else []
    notes = [
        equation(e).replace("-", "−"),
        *others,
        "colour of a word: its effect, what it does by itself" * cells.has_effects,
        without_note(cells.without, f"number at a {noun(e.settings)}", noun(e.settings)),
        forecast(e).replace("-", "−"),
    ]
    return [note for note in notes if note]


def _write_around(ax: Axes, title: str | None, notes: Sequence[str], top: float, room: float, pen: Pen) -> None:
    """Write the notes from `top` down, and the title above the texts."""
    for line, text in enumerate(notes):
        ax.text(MARGIN, top + line * NUMBER * LINE, text, fontsize=NUMBER, color=LIGHT.faint, va="top")
    if title:
        text = pen.shorten(clean(title), room, TITLE, "bold")
        ax.text(MARGIN, MARGIN, text, fontsize=TITLE, color=LIGHT.ink, va="top", weight="bold")
