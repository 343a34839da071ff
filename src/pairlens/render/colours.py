"""The colours of contributions in terminals, plots and pages: blue together, orange apart.

Readers with any kind of colour vision can tell blue from orange. In each palette both ends are equally light, so that
values of equal size look equally strong, and both have enough contrast with `paper` to be read as text.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Palette:
    """Colours as #rrggbb.

    Attributes:
        together: a contribution that adds to the score, at its strongest.
        apart: a contribution that takes from the score, at its strongest.
        neutral: a contribution of zero.
        ink: text. `faint`: less important text.
        paper: the background.
    """

    together: str
    apart: str
    neutral: str
    ink: str
    faint: str
    paper: str


LIGHT = Palette("#2166ac", "#c2410c", "#f7f7f7", "#1f2328", "#59636e", "#ffffff")
DARK = Palette("#6db3f2", "#f99a52", "#262c33", "#e6edf3", "#9198a1", "#14181d")


def shade(strength: float, palette: Palette = LIGHT) -> str:
    """The colour of a value between -1 and 1: from `apart` over `neutral` to `together`, in equal steps of sRGB.

    Example:
        >>> shade(1.0), shade(0.0), shade(-1.0)
        ('#2166ac', '#f7f7f7', '#c2410c')
    """
    share = min(abs(strength), 1.0)
    ends = _channels(palette.neutral), _channels(palette.together if strength > 0 else palette.apart)
    return "#" + "".join(f"{round(zero + share * (full - zero)):02x}" for zero, full in zip(*ends, strict=True))


def ink_on(colour: str) -> str:
    """Black or white, whichever has more contrast with a colour.

    Example:
        >>> ink_on("#2166ac"), ink_on("#f7f7f7")
        ('#ffffff', '#000000')
    """
    return "#ffffff" if luminance(colour) < 0.179 else "#000000"  # at 0.179 black and white have the same contrast


def luminance(colour: str) -> float:
    """The relative luminance of WCAG 2, from 0 for black to 1 for white.

    Example:
        >>> round(luminance("#ffffff"), 6), luminance("#000000")
        (1.0, 0.0)
    """
    parts = [channel / 255 for channel in _channels(colour)]
    red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * red + 0.7152 * green + 0.0722 * blue


def _channels(colour: str) -> tuple[int, ...]:
    return tuple(int(colour[start : start + 2], 16) for start in (1, 3, 5))
