"""Explanations with random numbers that fulfil the identity, for the tests of renderers."""

from typing import Any

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.text import Unit, words

COFFEE = ("The coffee here is not good.", "This coffee is bad.")


ZOOMED = ("The coffee was bad.", "We left early. The coffee here is not good.")


LONG = "It was the best of times, it was the worst of times, it was the age of wisdom and of incomprehensibility. " * 3


SETTINGS = {
    "model": "somewhere/all-MiniLM-L6-v2",
    "method": "integrated-jacobian",
    "layer": 0,
    "level": "word",
    "measure": "cosine",
    "reference": "padding",
    "reference_terms": "project",
}


def make(a, b, *, matrix=None, effects=False, seed=0, scale=0.1, special=True, **changes) -> Explanation:
    """An explanation of words, with random numbers that fulfil the identity."""
    random = np.random.default_rng(seed)
    sides = []
    for text in (a, b):
        units = [Unit(text[i:j], i, j) for i, j in words(text)]
        ends = Unit("[CLS]", 0, 0, "special"), Unit("[SEP]", len(text), len(text), "special")
        sides.append((ends[0], *units, ends[1]) if special else tuple(units))
    units_a, units_b = sides
    if matrix is None:
        matrix = scale * random.normal(size=(len(units_a), len(units_b)))
    effects_a, effects_b = (effects * random.normal(size=len(units)) for units in sides)
    base, gap = 0.0041, 2e-7
    values: dict[str, Any] = {
        "text_a": a,
        "text_b": b,
        "score": float(base + effects_a.sum() + effects_b.sum() + matrix.sum() + gap),
        "matrix": matrix,
        "units_a": units_a,
        "units_b": units_b,
        "tokens_a": ("x",),
        "tokens_b": ("y",),
        "base": base,
        "effects_a": effects_a,
        "effects_b": effects_b,
        "gap": gap,
        "gap_a": 3e-4,
        "gap_b": 5e-4,
        "entry_error": np.abs(matrix) * 1e-3,
        "settings": SETTINGS,
    }
    return Explanation(**{**values, **changes})


def make_zoomed() -> Explanation:
    """An explanation of ZOOMED: the words of a; of b the first sentence, the words of the second, and its own row."""
    a, b = ZOOMED
    units = [Unit(b[i:j], i, j) for i, j in words(b) if i >= 15]
    second = Unit.sentence(2, Unit(b[15:], 15, len(b)), units)
    units_b = (Unit("[CLS]", 0, 0, "special"), Unit(b[:14], 0, 14), *units, second)
    matrix = np.zeros((7, len(units_b)))
    matrix[2, 3], matrix[2, -1], matrix[4, 1], matrix[4, 7] = 0.3, -0.1, 0.08, 0.2
    settings = {**SETTINGS, "method": "banzhaf", "reference": "fitted", "reference_terms": "keep"}
    return make(
        a,
        b,
        units_b=units_b,
        matrix=matrix,
        effects_a=np.zeros(7),
        effects_b=np.zeros(len(units_b)),
        entry_error=np.full(matrix.shape, 0.01),
        score=0.0041 + matrix.sum() + 2e-7,
        settings={**settings, "level": ["word", "zoom"]},
    )
