import numpy as np
import pytest
from rich.color import Color

from pairlens.render.colours import DARK, LIGHT, ink_on, luminance, shade


@pytest.mark.parametrize("palette", [LIGHT, DARK])
def test_palettes_have_contrast_and_equally_strong_ends(palette):
    def contrast(one: str, other: str) -> float:
        darker, lighter = sorted((luminance(one), luminance(other)))
        return (lighter + 0.05) / (darker + 0.05)

    for colour in (palette.together, palette.apart, palette.ink, palette.faint):
        assert contrast(colour, palette.paper) >= 4.5
    assert contrast(palette.together, palette.apart) < 1.25  # equally strong
    red, _, blue = (channels(palette.together) - channels(palette.apart)).tolist()
    assert blue > 100 > -100 > red  # far apart on the blue-red axis, which all kinds of colour vision have
    for strength in np.linspace(-1, 1, 41):
        colour = shade(strength, palette)
        assert contrast(ink_on(colour), colour) >= 4.5


def channels(colour: str) -> np.ndarray:
    return np.array(Color.parse(colour).get_truecolor())
