"""Readers of the interactive picture in a browser, and the explanations that it shows."""

from __future__ import annotations

import math
import re

import numpy as np

from explanations import SETTINGS, make
from hostile import A, B
from pairlens.attribution.explanation import Explanation
from pairlens.render import colours
from pairlens.render.text import add_up, has_gap, number, signed, tiny

WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 740}


def tokens(seed: int = 0, scale: float = 1.0, special: float = 0.1, **changes) -> Explanation:
    """An explanation of tokens in which coffee · coffee and good · bad are strong and other pairs weak.

    Args:
        seed: of the weak pairs.
        scale: multiplies all values.
        special: multiplies the values of pairs with special tokens once more.
        changes: fields of the explanation, and options of `make`.
    """
    matrix = 0.02 * np.random.default_rng(seed).normal(size=(9, 7))
    matrix[[0, -1]] *= special
    matrix[:, [0, -1]] *= special
    matrix[2, 2], matrix[6, 4] = 0.5, 0.3
    settings = {**SETTINGS, "level": "token"}
    return make(A, B, seed=seed, matrix=scale * matrix, settings=settings, **changes)


def noisy() -> Explanation:
    """An explanation of words by sampling, in which good · bad is strongest and may be noise."""
    e = tokens(special=0.0).at("word")
    matrix, error = e.matrix.copy(), np.full(e.matrix.shape, 1e-4)
    matrix[6, 4], error[6, 4] = 0.6, 0.4
    settings = {**e.settings, "method": "banzhaf", "reference": "fitted", "reference_terms": "keep"}
    return make(A, B, matrix=matrix, entry_error=error, settings=settings)


def unit(page, side: str, text: str):
    """The first unit of a text with the given characters."""
    return page.locator(f'.pl-unit[data-side="{side}"]').get_by_text(text, exact=True).first


def terms(page) -> dict[str, str]:
    """The terms of the equation, by label."""
    rows = page.locator(".pl-equation tr").all()
    return {row.get_attribute("data-term"): row.locator("td").first.inner_text() for row in rows}


def pairs(page) -> list[tuple[str, str]]:
    """The names and the values of the listed pairs."""
    rows = page.locator(".pl-pairs tbody tr").all()
    return [(row.locator("th").inner_text(), row.locator("td").first.inner_text()) for row in rows]


def minus(text: str) -> str:
    """The number with the minus sign of the picture."""
    return text.replace("-", "−")


def choose_level(page, name: str) -> None:
    """Choose a level with its radio button."""
    page.get_by_role("radio", name=name).check(force=True)


def expected_terms(e: Explanation, *, special: bool) -> dict[str, str]:
    """The terms of the equation, from the arrays of the explanation."""
    plain_a, plain_b = (np.array([special or u.kind != "special" for u in units]) for units in (e.units_a, e.units_b))
    single = e.matrix[np.ix_(plain_a, plain_b)]
    values = {"base": e.base}
    if e.effects_a.any():
        values |= {"effects of a": e.effects_a.sum(), "effects of b": e.effects_b.sum()}
    values |= {"pairs together": single[single > 0].sum(), "pairs apart": single[single < 0].sum()}
    folded = e.matrix.sum() - single.sum()
    if not special and (abs(folded) > 1e-12 or not e.effects_a.any()):
        values["special tokens"] = folded
    shown = add_up([float(value) for value in values.values()], e.score - float(tiny(e.gap)))
    expected = {name: signed(value) for name, value in zip(values, shown, strict=True)}
    expected |= {"gap": tiny(e.gap)} if has_gap(e) else {}
    return {name: minus(value) for name, value in (expected | {"score": number(e.score)}).items()}


def assert_colour(place, share: float) -> None:
    """Assert that the element has the colour of a share of the scale, as pairlens.render.colours defines it."""
    drawn = [int(c) for c in re.findall(r"\d+", place.evaluate("node => node.style.backgroundColor"))]
    want = colours.shade(math.copysign(abs(share) ** 0.6, share))
    assert np.abs(np.array(drawn) - [int(want[i : i + 2], 16) for i in (1, 3, 5)]).max() <= 3
