"""The characters and colours that the parts of a terminal view share."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from rich.cells import cell_len, set_cell_size
from rich.style import Style

from pairlens.render.colours import LIGHT, ink_on, shade


@dataclass(frozen=True)
class Marks:
    """The characters of a view that not every terminal can show, and how to write texts."""

    cut: str
    between: str
    full: str
    left_half: str
    right_half: str
    axis: str
    zero: str
    write: Callable[[str], str]

    def cell(self, label: str, room: int, *, right: bool = False) -> str:
        """The label in exactly `room` columns, aligned left or right."""
        if cell_len(label) > room:
            label = set_cell_size(label, room - 1) + self.cut
        padding = " " * (room - cell_len(label))
        return padding + label if right else label + padding


_TYPEWRITER = str.maketrans({"–": "-", "“": '"', "”": '"', "’": "'", "…": "~", "·": ".", "±": "+-", "²": "2"})


def _ascii(text: str) -> str:
    """The text with typewriter characters for typographic ones, and ? for all others beyond ASCII."""
    return text.translate(_TYPEWRITER).encode("ascii", "replace").decode()


UNICODE = Marks(*"…·█▌▐│·", write=lambda text: text)
ASCII = Marks(*"~x###|0", write=_ascii)


def bar_colour(value: float) -> str:
    """The strongest colour of the value's sign."""
    return LIGHT.apart if value < 0 else LIGHT.together


NOISE = Style(dim=True, bold=False)
"""The style of a value that may be noise."""
_FAINTEST = 0.1  # a weaker value has no background: on a dark terminal the palest shades would glow


def cell_style(strength: float) -> Style:
    """The style of a value between -1 and 1: black or white on a shade, the same in light and dark terminals."""
    if abs(strength) < _FAINTEST:
        return Style(bold=False)
    # The exponent keeps weak values visible beside one strong value; the numbers say how strong each is.
    colour = shade(math.copysign(min(abs(strength), 1.0) ** 0.6, strength))
    return Style(color=ink_on(colour), bgcolor=colour, bold=False, dim=False)
