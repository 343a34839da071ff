"""Explanations for the picture, made without a model, and a place to save pictures."""

import numpy as np
import pytest

from explanations import SETTINGS, make
from hostile import HOSTILE_A, HOSTILE_B
from pairlens.attribution.explanation import Explanation
from pairlens.render import html
from pairlens.text import Unit
from pictures import tokens


@pytest.fixture(scope="session")
def coffee() -> Explanation:
    """An explanation of tokens without errors, in which special tokens contribute zero."""
    return tokens(special=0.0, entry_error=np.zeros((9, 7)))


@pytest.fixture(scope="session")
def layers() -> dict[str, Explanation]:
    """Three explanations of the same tokens."""
    return {f"layer {n}": tokens(seed=n, scale=1 / (n + 1)) for n in (0, 3, 6)}


@pytest.fixture(scope="session", params=["word", "token"])
def hostile(request) -> Explanation:
    """An explanation of texts that try to break out of the page; at the level of tokens one unit per character."""
    e = make(HOSTILE_A, HOSTILE_B)
    if request.param == "word":
        return e
    units_a, units_b = (
        tuple(Unit(char, i, i + 1) for i, char in enumerate(text)) for text in (HOSTILE_A[:150], HOSTILE_B)
    )
    matrix = np.random.default_rng(0).normal(size=(len(units_a), len(units_b)))
    return make(
        HOSTILE_A,
        HOSTILE_B,
        matrix=matrix,
        units_a=units_a,
        units_b=units_b,
        effects_a=np.zeros(len(units_a)),
        effects_b=np.zeros(len(units_b)),
        settings={**SETTINGS, "level": "token"},
    )


@pytest.fixture
def saved(tmp_path):
    """Saves a picture and returns its address."""

    def save(explanations, **options) -> str:
        return html.save(explanations, tmp_path / "why.html", **options).as_uri()

    return save
