"""The curves between two texts, their numbers and their legend. Sizes are in points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patches import PathPatch
from matplotlib.path import Path

from pairlens.render.axis import Grid
from pairlens.render.colours import LIGHT
from pairlens.render.plot.blocks import Spot
from pairlens.render.plot.canvas import NUMBER, Pen
from pairlens.render.plot.scale import Scale, plain
from pairlens.shapes import Float

THICKEST = 6.0
"""The width of the curve of the strongest pair."""
_ALPHA = 0.85


@dataclass(frozen=True)
class Link:
    """A row `a` and a column `b` of the cells, and the value of their cell."""

    a: int
    b: int
    value: float

    @property
    def colour(self) -> str:
        """The strongest colour of the value's sign."""
        return LIGHT.together if self.value > 0 else LIGHT.apart


def strongest(values: Grid, count: int) -> list[Link]:
    """The strongest cells of either sign that are not zero, strongest first."""
    order = np.argsort(-np.abs(values), axis=None, kind="stable")[:count]
    places = [divmod(int(flat), values.shape[1]) for flat in order]
    return [Link(i, j, float(values[i, j])) for i, j in places if values[i, j]]


def draw_curves(
    ax: Axes,
    links: Sequence[Link],
    spots: tuple[dict[int, list[Spot]], dict[int, list[Spot]]],
    edges: tuple[float, float],
    colours: Scale,
    pen: Pen,
    numbers: bool,
) -> None:
    """Draw the curves, the strongest behind the others, and their numbers in front.

    Args:
        ax: the axes.
        links: strongest first.
        spots: where the linked units of the upper and of the lower text are.
        edges: the lower edge of the upper text and the upper edge of the lower text.
        colours: the scale of the curves' widths.
        pen: measures the numbers.
        numbers: write the values on the curves.
    """
    above = {unit: places[-1] for unit, places in spots[0].items()}
    below = {unit: places[0] for unit, places in spots[1].items()}
    drawn = [link for link in links if link.a in above and link.b in below]
    widths = [_thickness(link.value, colours) for link in drawn]
    starts = _ports([(above[link.a], below[link.b]) for link in drawn], widths)
    ends = _ports([(below[link.b], above[link.a]) for link in drawn], widths)
    middle = (edges[0] + edges[1]) / 2
    for link, start, end, width in zip(drawn, starts, ends, widths, strict=True):
        corners = [(start, edges[0]), (start, middle), (end, middle), (end, edges[1])]
        curve = Path(corners, [Path.MOVETO] + [Path.CURVE4] * 3)
        style: Any = {"linewidth": width, "capstyle": "butt", "zorder": 2}
        ax.add_patch(PathPatch(curve, facecolor="none", edgecolor=link.colour, alpha=_ALPHA, **style))
        # Past the other lines of the same text the curve is straight, and pale because it runs behind their words.
        for x, outer, inner in ((start, above[link.a].bottom, edges[0]), (end, below[link.b].top, edges[1])):
            if abs(outer - inner) > 2:
                ax.plot([x] * 2, [outer, inner], color=link.colour, alpha=0.3, linewidth=width, solid_capstyle="butt")
    if numbers and drawn:
        _write_numbers(ax, drawn, np.array([_points(*x, edges) for x in zip(starts, ends, strict=True)]), colours, pen)


def draw_key(ax: Axes, links: Sequence[Link], colours: Scale, middle: tuple[float, float], pen: Pen) -> None:
    """Draw the legend: a sample of half the largest width for each sign among the links, with its value."""
    half = colours.limit / 2
    samples = [Link(0, 0, sign * half) for sign in (1, -1) if any(link.value * sign > 0 for link in links)]
    texts = [f"{link.value:.3g} {'together' if link.value > 0 else 'apart'}".replace("-", "−") for link in samples]
    length, gap = 14.0, 12.0
    x = middle[0] - (sum(length + 3 + pen.width(text, NUMBER) for text in texts) + gap * (len(texts) - 1)) / 2
    style: Any = {"linewidth": _thickness(half, colours), "alpha": _ALPHA, "solid_capstyle": "butt"}
    for link, text in zip(samples, texts, strict=True):
        ax.plot([x, x + length], [middle[1]] * 2, color=link.colour, **style)
        ax.text(x + length + 3, middle[1], text, fontsize=NUMBER, color=LIGHT.ink, va="center_baseline")
        x += length + 3 + pen.width(text, NUMBER) + gap


def _points(start: float, end: float, edges: tuple[float, float]) -> Float[np.ndarray, "points 2"]:
    """Points along a curve from one text to the other."""
    t = np.linspace(0, 1, 61)
    x = start + (end - start) * t**2 * (3 - 2 * t)  # the Bézier curve of `draw_curves`
    y = edges[0] + (edges[1] - edges[0]) * (1.5 * t * (1 - t) + t**3)
    return np.stack([x, y], 1)


def _thickness(value: float, colours: Scale) -> float:
    return max(THICKEST * min(abs(value) / colours.limit, 1.0), 0.5)


def _ports(ends: Sequence[tuple[Spot, Spot]], widths: Sequence[float]) -> list[float]:
    """Where each curve meets its unit: side by side, ordered by where the other ends are, so that none cross.

    Args:
        ends: for each curve, the unit that it meets here and the unit at its other end.
        widths: of the curves.
    """
    ports = [0.0] * len(ends)
    for spot in {here for here, _ in ends}:
        curves = sorted((i for i, (here, _) in enumerate(ends) if here == spot), key=lambda i: ends[i][1].left)
        wanted = sum(widths[i] for i in curves) + 1.0 * (len(curves) - 1)
        squeeze = min(1.0, (spot.right - spot.left) / wanted)
        x = (spot.left + spot.right - wanted * squeeze) / 2
        for i in curves:
            ports[i] = x + widths[i] * squeeze / 2
            x += (widths[i] + 1.0) * squeeze
    return ports


def _write_numbers(
    ax: Axes, links: Sequence[Link], points: Float[np.ndarray, "links points 2"], colours: Scale, pen: Pen
) -> None:
    """Write each value on its curve, where fewest others pass and no other number is; skip it if there is no room."""
    taken: list[np.ndarray] = []
    middle = points.shape[1] // 2
    paper = {"facecolor": LIGHT.paper, "edgecolor": "none", "pad": 0.7, "alpha": 0.9}
    style: Any = {"fontsize": NUMBER, "ha": "center", "va": "center_baseline", "zorder": 5, "bbox": paper}
    for i, link in enumerate(links):
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
        if best is not None:
            taken.append(best[1])
            ax.text(best[1][0], best[1][1], text, color=link.colour, **style)
