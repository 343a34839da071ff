"""Both texts as running text, one above the other, with a curve for each of the strongest pairs. Sizes in points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from pairlens.errors import InputError, whole
from pairlens.render.axis import axis, strengths
from pairlens.render.colours import LIGHT
from pairlens.render.plot.blocks import Spot, block
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
)
from pairlens.render.plot.scale import Scale, plain, scale
from pairlens.render.text import clean, equation

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pairlens.attribution.explanation import Explanation

THICKEST = 6.0
"""Points of the curve of the strongest pair."""
_BETWEEN = 68.0  # the two texts
_ALPHA = 0.85
_SHORT = 120  # characters that one column of a paper has room for
_KEY = 17.0  # the height of the line that explains the curves


@dataclass(frozen=True)
class Link:
    """A line of either axis, and what they contribute together."""

    a: int
    b: int
    value: float


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
    """Text a above text b, and curves between the units of the strongest pairs: blue for together, orange for apart.

    A curve is as thick as its pair is strong. Long texts are cut down to what is around the linked units.

    Args:
        e: the explanation.
        ax: axes of your own to draw into; otherwise there is a new figure, as high as it needs to be.
        width: of the new figure, in inches: by default 3.3, one column of a paper, and for a text of more than 120
            characters 6.9, two columns.
        top: how many pairs, the strongest of either sign.
        numbers: write each pair's value on its curve, where there is room.
        special: special tokens are units like the others; otherwise they are added up to one.
        limit: the value of the thickest curve, to compare figures; by default the strongest pair's.
        title: a line above.
        note: the sum of the score below, and what the pairs without a curve add.

    Example:
        >>> from pairlens import Lens
        >>> e = Lens().explain("A cat sleeps.", "A kitten is asleep.", level="word")
        >>> figure, axes = links(e, top=3)
        >>> len(axes.patches)
        3
    """
    sides = zip((e.units_a, e.units_b), strengths(e), strict=True)
    down, across = (axis(units, strength, special=special) for units, strength in sides)
    if not down.labels or not across.labels:
        raise InputError(f"there is nothing to draw: the texts have {len(e.units_a)} and {len(e.units_b)} units.")
    values = down.sums @ e.matrix @ across.sums.T
    shown = strongest(values, whole("top", top, 1))
    colours = scale(e, [values[: down.single, : across.single]], [values], limit)
    with drawing([e.text_a, e.text_b, *down.labels, *across.labels, title or ""]) as pen:
        size = width if width is not None else COLUMN if max(len(e.text_a), len(e.text_b)) <= _SHORT else PAGE
        wide = inches(size) if ax is None else extent(ax)[0]
        room = wide - 2 * MARGIN
        upper = block(e.text_a, e.units_a, down, {link.a for link in shown}, MARGIN, wide - MARGIN, pen)
        lower = block(e.text_b, e.units_b, across, {link.b for link in shown}, MARGIN, wide - MARGIN, pen)
        notes = _notes(e, shown, values, room, pen) if note else []
        head = MARGIN + (TITLE * LINE + 3 if title else 0.0)
        foot = _KEY + len(notes) * NUMBER * LINE + MARGIN
        high = head + upper.height + _BETWEEN + lower.height + foot
        if ax is None:
            figure = sheet(wide, high)
            ax = place(figure, 0, 0, wide, high)
        else:  # the curves take what is left
            figure, high = owner(ax), max(extent(ax)[1], high - _BETWEEN + 24)
        ax.set(xlim=(0, wide), ylim=(high, 0))
        ax.set_axis_off()
        edges = head + upper.height, high - foot - lower.height
        spots = upper.draw(ax, head), lower.draw(ax, edges[1])
        _draw(ax, shown, spots, edges, colours, pen, numbers)
        _key(ax, shown, colours, (wide / 2, high - foot + 10), pen)
        for line, text in enumerate(notes):
            y = high - foot + _KEY + line * NUMBER * LINE
            ax.text(MARGIN, y, text, fontsize=NUMBER, color=LIGHT.faint, va="top")
        if title:
            text = pen.shorten(clean(title), room, TITLE, "bold")
            ax.text(MARGIN, MARGIN, text, fontsize=TITLE, color=LIGHT.ink, va="top", weight="bold")
    return figure, ax


def strongest(values: np.ndarray, count: int) -> list[Link]:
    """The strongest pairs that contribute anything, of either sign, strongest first."""
    order = np.argsort(-np.abs(values), axis=None, kind="stable")[:count]
    places = [divmod(int(flat), values.shape[1]) for flat in order]
    return [Link(i, j, float(values[i, j])) for i, j in places if values[i, j]]


def _draw(
    ax: Axes,
    shown: Sequence[Link],
    spots: tuple[dict[int, list[Spot]], dict[int, list[Spot]]],
    edges: tuple[float, float],
    colours: Scale,
    pen: Pen,
    numbers: bool,
) -> None:
    """The curves, the strongest behind the others, and their numbers in front."""
    above, below = ({unit: found[side] for unit, found in on.items()} for on, side in zip(spots, (-1, 0), strict=True))
    drawn = [link for link in shown if link.a in above and link.b in below]
    thick = [_thickness(link.value, colours) for link in drawn]
    starts = _ports([link.a for link in drawn], [link.b for link in drawn], above, below, thick)
    ends = _ports([link.b for link in drawn], [link.a for link in drawn], below, above, thick)
    for link, x, end, points in zip(drawn, starts, ends, thick, strict=True):
        colour = LIGHT.together if link.value > 0 else LIGHT.apart
        middle = (edges[0] + edges[1]) / 2
        curve = Path([(x, edges[0]), (x, middle), (end, middle), (end, edges[1])], [Path.MOVETO] + [Path.CURVE4] * 3)
        style = {"linewidth": points, "capstyle": "butt", "zorder": 2}
        ax.add_patch(PathPatch(curve, facecolor="none", edgecolor=colour, alpha=_ALPHA, **style))
        # Straight past the other lines of its own texts, and pale, for it goes behind their words.
        for at, outer, inner in ((x, above[link.a].bottom, edges[0]), (end, below[link.b].top, edges[1])):
            if abs(outer - inner) > 2:
                ax.plot([at] * 2, [outer, inner], color=colour, alpha=0.3, linewidth=points, solid_capstyle="butt")
    if numbers and drawn:
        _number(ax, drawn, np.array([_points(*ends, edges) for ends in zip(starts, ends, strict=True)]), colours, pen)


def _points(start: float, end: float, edges: tuple[float, float]) -> np.ndarray:
    """Points of a curve from one text to the other, (points, 2)."""
    t = np.linspace(0, 1, 61)
    x = start + (end - start) * t**2 * (3 - 2 * t)  # Bézier's curve, whose two points between are level
    y = edges[0] + (edges[1] - edges[0]) * (1.5 * t * (1 - t) + t**3)
    return np.stack([x, y], 1)


def _thickness(value: float, colours: Scale) -> float:
    return max(THICKEST * min(abs(value) / colours.limit, 1.0), 0.5)


def _ports(
    own: Sequence[int], other: Sequence[int], here: dict[int, Spot], there: dict[int, Spot], thick: Sequence[float]
) -> list[float]:
    """Where each curve leaves its unit: side by side, in the order of where they lead."""
    ports = [0.0] * len(own)
    for unit in set(own):
        mine = sorted((i for i, u in enumerate(own) if u == unit), key=lambda i: there[other[i]].left)
        spot = here[unit]
        wanted = sum(thick[i] for i in mine) + 1.0 * (len(mine) - 1)
        squeeze = min(1.0, (spot.right - spot.left) / wanted)
        at = (spot.left + spot.right - wanted * squeeze) / 2
        for i in mine:
            ports[i] = at + thick[i] * squeeze / 2
            at += (thick[i] + 1.0) * squeeze
    return ports


def _number(ax: Axes, drawn: Sequence[Link], points: np.ndarray, colours: Scale, pen: Pen) -> None:
    """The values on their curves, where fewest others pass and no other number is; none where there is no room.

    Args:
        ax: the axes.
        drawn: the links.
        points: of their curves, (links, points, 2).
        colours: says how a number is written.
        pen: measures it.
    """
    taken: list[np.ndarray] = []
    middle = points.shape[1] // 2
    for i, link in enumerate(drawn):
        text = plain(link.value, colours.decimals)
        half = np.array([pen.width(text, NUMBER) / 2 + 1, NUMBER / 2 + 0.5])
        best: tuple[float, np.ndarray] | None = None
        for step in range(7, points.shape[1] - 7):
            at = points[i, step]
            if any((np.abs(at - other) < 2 * half).all() for other in taken):
                continue
            passing = (np.abs(points - at) < half).all(2).any(1).sum() - 1
            cost = float(passing) + abs(step - middle) / middle
            if best is None or cost < best[0]:
                best = cost, at
        if best is None:
            continue
        taken.append(best[1])
        colour = LIGHT.together if link.value > 0 else LIGHT.apart
        paper = {"facecolor": LIGHT.paper, "edgecolor": "none", "pad": 0.7, "alpha": 0.9}
        style: Any = {"fontsize": NUMBER, "color": colour, "ha": "center", "va": "center_baseline", "zorder": 5}
        ax.text(best[1][0], best[1][1], text, bbox=paper, **style)


def _key(ax: Axes, shown: Sequence[Link], colours: Scale, middle: tuple[float, float], pen: Pen) -> None:
    """A curve of half the thickness for each sign that there is, with its value."""
    half = colours.limit / 2
    signs = [sign for sign in (1, -1) if any(link.value * sign > 0 for link in shown)]
    texts = [f"{sign * half:.3g} {'together' if sign > 0 else 'apart'}".replace("-", "−") for sign in signs]
    sample, gap = 14.0, 12.0
    x = middle[0] - (sum(sample + 3 + pen.width(text, NUMBER) for text in texts) + gap * (len(texts) - 1)) / 2
    for sign, text in zip(signs, texts, strict=True):
        colour = LIGHT.together if sign > 0 else LIGHT.apart
        line: Any = {"color": colour, "linewidth": _thickness(half, colours), "alpha": _ALPHA, "solid_capstyle": "butt"}
        ax.plot([x, x + sample], [middle[1]] * 2, **line)
        ax.text(x + sample + 3, middle[1], text, fontsize=NUMBER, color=LIGHT.ink, va="center_baseline")
        x += sample + 3 + pen.width(text, NUMBER) + gap


def _notes(e: Explanation, shown: Sequence[Link], values: np.ndarray, room: float, pen: Pen) -> list[str]:
    rest = float(values.sum()) - sum(link.value for link in shown)
    count = int(np.count_nonzero(values)) - len(shown)
    others = [f"{count} pair{'s' * (count > 1)} without a curve: {plain(rest, 4)}"] if count else []
    return pen.wrap([equation(e).replace("-", "−"), *others], room)
