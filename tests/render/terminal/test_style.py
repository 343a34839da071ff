import re
from typing import Any

import numpy as np
import pytest
from rich.color import Color

from explanations import make
from pairlens.render.colours import LIGHT, luminance
from pairlens.render.terminal.style import cell_style
from terminal_output import show

SAMPLED = {"method": "banzhaf", "measure": "cosine", "reference": "fitted", "reference_terms": "keep"}


def background(value: float) -> tuple[int, ...]:
    colour: Any = cell_style(value).bgcolor
    return tuple(colour.triplet)


def triplet(colour: str) -> tuple[int, ...]:
    return tuple(Color.parse(colour).get_truecolor())


def test_first_noise_is_dim_and_near_zero_has_no_background():
    matrix = np.array([[0.5, 0.2], [0.02, -0.01]])
    error = np.array([[0.0, 0.15], [0.0, 0.0]])  # 0.2 is less than two standard errors from zero
    e = make(
        "one two",
        "three four",
        matrix=matrix,
        special=False,
        entry_error=error,
        settings=SAMPLED,
    )
    shown = show(e, 80, colour="truecolor")
    (row,) = (line for line in shown.splitlines() if re.match(r"\x1b\[1mone ", line))
    assert re.search(r"\x1b\[[\d;]*48;2[\d;]*m \+0\.500", row)
    assert re.search(r"\x1b\[2m \+0\.200", row), "dim and neither bold nor coloured"
    (row,) = (line for line in shown.splitlines() if re.match(r"\x1b\[1mtwo ", line))
    assert "48;2" not in row
    assert "dim pairs: less than two standard errors from zero, may be noise" in shown
    listed = shown[shown.index("strongest pairs") : shown.index("every pair")]
    assert "four" not in listed.splitlines()[1]
    assert "+0.200" not in listed


def test_cell_colours_have_contrast_and_diverge_from_neutral():
    def light(colour: Any) -> float:
        parts = [channel / 255 for channel in colour.triplet]
        red, green, blue = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
        return 0.2126 * red + 0.7152 * green + 0.0722 * blue

    assert light(Color.parse("#2166ac")) == pytest.approx(luminance("#2166ac"))
    assert cell_style(0.05).bgcolor is None, "near zero there is no background"
    for value in (*np.linspace(-1.5, -0.1, 30), *np.linspace(0.1, 1.5, 30)):
        style = cell_style(value)
        darker, lighter = sorted((light(style.color), light(style.bgcolor)))
        assert (lighter + 0.05) / (darker + 0.05) >= 4.5  # WCAG AA
    assert (background(1.0), background(-1.0)) == (triplet(LIGHT.together), triplet(LIGHT.apart))
    orange = show(make("a", "b", matrix=np.array([[-1.0]]), special=False), colour="truecolor")
    assert f"48;2;{';'.join(map(str, triplet(LIGHT.apart)))}" in orange
    blue = show(make("a", "b", matrix=np.array([[1.0]]), special=False), colour="truecolor")
    assert f"48;2;{';'.join(map(str, triplet(LIGHT.together)))}" in blue
