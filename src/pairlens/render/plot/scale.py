"""The colours and the bar of contributions: symmetric about zero, the same for all panels of a figure."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.cm import ScalarMappable
from matplotlib.colors import LinearSegmentedColormap, Normalize

from pairlens.errors import InputError
from pairlens.render.axis import decimals
from pairlens.render.colours import LIGHT
from pairlens.render.plot.figure import NUMBER

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from pairlens.attribution.explanation import Explanation

# An odd number of steps, so that zero has a colour of its own.
COLOURS = LinearSegmentedColormap.from_list("pairlens", [LIGHT.apart, LIGHT.neutral, LIGHT.together], N=513)


_ROUND = (1, 1.2, 1.4, 1.6, 1.8, 2, 2.5, 3, 3.5, 4, 4.5, 5, 6, 7, 8, 9)
BAR = 34.0
"""Points: the height of a colour bar with its numbers and its name, and of the space above it."""


@dataclass(frozen=True)
class Scale:
    """What the strongest colours stand for.

    Attributes:
        limit: the value at either end.
        name: what is measured.
        lower, upper: some cell is beyond that end.
    """

    limit: float
    name: str
    lower: bool
    upper: bool

    @property
    def norm(self) -> Normalize:
        """Values from -limit to limit as 0 to 1."""
        return Normalize(-self.limit, self.limit, clip=True)

    @property
    def decimals(self) -> int:
        """How many a number of this scale has."""
        return decimals(self.limit, 2)


def scale(e: Explanation, units: Sequence[np.ndarray], shown: Sequence[np.ndarray], limit: float | None) -> Scale:
    """The scale of one figure.

    Args:
        e: an explanation of it.
        units: the values of pairs of units, for every panel; without a limit, the strongest of them makes it.
        shown: the values of all cells, sums over special tokens among them.
        limit: the value that has the strongest colour.
    """
    if limit is not None and not (isinstance(limit, int | float) and 0 < limit < math.inf):
        raise InputError(f"limit must be a positive number, not {limit!r}: the value that has the strongest colour.")
    peak = max((float(np.abs(values).max(initial=0.0)) for values in units), default=0.0)
    end = float(limit) if limit is not None else _round_up(peak or 1.0)
    measure = {"cosine": "cosine similarity", "dot": "dot product"}.get(str(e.settings.get("measure")), "score")
    lower, upper = (any((sign * values > end).any() for values in shown) for sign in (-1, 1))
    return Scale(end, f"contribution to the {measure}", lower, upper)


def plain(value: float, places: int) -> str:
    """A number with a true minus; what rounds to zero has no sign.

    Example:
        >>> plain(-0.126, 2), plain(-0.001, 2)
        ('−0.13', '0.00')
    """
    text = f"{value:.{places}f}"
    return text.lstrip("-") if float(text) == 0 else text.replace("-", "−")


def bar(figure: Figure, scale: Scale, *, cax: Axes | None = None, ax: Axes | None = None) -> None:
    """Draw the colour bar, below, into axes of its own or beside those that are given."""
    extend = {(True, True): "both", (True, False): "min", (False, True): "max"}.get(
        (scale.lower, scale.upper), "neither"
    )
    mappable = ScalarMappable(scale.norm, COLOURS)
    space: Any = {} if cax is not None else {"pad": 0.04, "shrink": 0.7, "aspect": 30}
    drawn = figure.colorbar(mappable, cax=cax, ax=ax, orientation="horizontal", extend=extend, **space)
    ticks = [share * scale.limit for share in (-1, -0.5, 0, 0.5, 1)]
    drawn.set_ticks(ticks, labels=[f"{tick:.3g}".replace("-", "−") for tick in ticks])
    drawn.ax.tick_params(labelsize=NUMBER, length=2, width=0.5, pad=1.5, colors=LIGHT.ink)
    drawn.set_label(scale.name, size=NUMBER, color=LIGHT.ink, labelpad=1.5)
    if drawn.solids is not None:
        drawn.solids.set_rasterized(True)  # one image, not hundreds of stripes
    drawn.ax.grid(visible=False)
    drawn.outline.set_visible(False)


def _round_up(peak: float) -> float:
    """A round number that is at least the peak, and at most a quarter more: 0.6 for 0.58."""
    power = 10.0 ** math.floor(math.log10(peak))
    digits = next((digits for digits in _ROUND if digits * power >= peak), 10.0)
    return float(f"{digits * power:.6g}")
