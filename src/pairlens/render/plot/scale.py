"""The colour scale of contributions and its bar: symmetric about zero, the same for all panels of a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize
from matplotlib.figure import Figure

from pairlens.errors import InputError
from pairlens.render.axis import Cells, decimals
from pairlens.render.colours import LIGHT
from pairlens.render.plot.canvas import NUMBER

# The number of steps is odd, so that zero has a colour of its own.
COLOURS = LinearSegmentedColormap.from_list("pairlens", [LIGHT.apart, LIGHT.neutral, LIGHT.together], N=513)
_ROUND = (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9)
BAR = 34.0
"""Points: the height of a colour bar with its numbers, its name and the space above it."""


@dataclass(frozen=True)
class Scale:
    """The values of the strongest colours.

    Attributes:
        limit: the value at the upper end; the lower end is -limit.
        name: what is measured.
        lower, upper: whether a cell lies beyond that end.
    """

    limit: float
    name: str
    lower: bool
    upper: bool

    @property
    def norm(self) -> Normalize:
        """Maps values from -limit to limit to 0 to 1."""
        return Normalize(-self.limit, self.limit, clip=True)

    @property
    def decimals(self) -> int:
        """How many decimals the numbers of this scale have."""
        return max(decimals(self.limit, 2), 2 if self.limit <= 2 else 0)


def scale(panels: Sequence[Cells], limit: float | None) -> Scale:
    """The colour scale of a figure.

    Args:
        panels: the cells of all its panels.
        limit: the value of the strongest colour; by default a round number for the strongest pair or effect.
    """
    for e in (cells.e for cells in panels if not cells.values.size):
        raise InputError(f"there is nothing to draw: the texts have {len(e.units_a)} and {len(e.units_b)} units.")
    if limit is not None and not (isinstance(limit, int | float) and 0 < limit < math.inf):
        raise InputError(f"limit must be a positive number, not {limit!r}: the value that has the strongest colour.")
    peak = max(cells.peak for cells in panels)
    end = float(limit) if limit is not None else _round_up(peak or 1.0)
    measure = {"cosine": "cosine similarity", "dot": "dot product"}.get(str(panels[0].e.settings.get("measure")))
    values = np.concatenate([part.ravel() for cells in panels for part in (cells.values, *cells.effects)])
    lower, upper = (bool((sign * values > end).any()) for sign in (-1, 1))
    return Scale(end, f"contribution to the {measure or 'score'}", lower, upper)


def plain(value: float, places: int) -> str:
    """The number with a typographic minus sign; what rounds to zero has no sign.

    Example:
        >>> plain(-0.126, 2), plain(-0.001, 2)
        ('−0.13', '0.00')
    """
    text = f"{value:.{places}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def draw_bar(figure: Figure, scale: Scale, *, cax: Axes | None = None, ax: Axes | None = None) -> None:
    """Draw the horizontal colour bar into the axes `cax`, or below the axes `ax`."""
    ends = {(False, False): "neither", (True, False): "min", (False, True): "max", (True, True): "both"}
    extend = ends[scale.lower, scale.upper]
    space: Any = {} if cax is not None else {"pad": 0.04, "shrink": 0.7, "aspect": 30}
    mappable = ScalarMappable(scale.norm, COLOURS)
    bar = figure.colorbar(mappable, cax=cax, ax=ax, orientation="horizontal", extend=extend, **space)
    ticks = [share * scale.limit for share in (-1, -0.5, 0, 0.5, 1)]
    bar.set_ticks(ticks, labels=[f"{tick:.3g}".replace("-", "−") for tick in ticks])
    bar.ax.tick_params(labelsize=NUMBER, length=2, width=0.5, pad=1.5, colors=LIGHT.ink)
    bar.set_label(scale.name, size=NUMBER, color=LIGHT.ink, labelpad=1.5)
    if bar.solids is not None:
        bar.solids.set_rasterized(True)  # one image in an SVG or a PDF instead of hundreds of stripes
    bar.ax.grid(visible=False)
    bar.outline.set_visible(False)


def _round_up(peak: float) -> float:
    """The next round number: at least the peak, and at most a quarter more, such as 0.6 for 0.58."""
    power = 10.0 ** math.floor(math.log10(peak))
    digits = next((digits for digits in _ROUND if digits * power >= peak), 10.0)
    return float(f"{digits * power:.6g}")
