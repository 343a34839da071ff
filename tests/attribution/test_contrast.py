"""Contrasts: the difference of two explanations of one query."""

from __future__ import annotations

import pytest

import zoo
from pairlens import (
    Lens,
)

A, B = "The coffee here is not good.", "This coffee is bad."


@pytest.fixture(scope="module")
def tiny():
    return Lens(zoo.encoder("bert"), dtype="float64")


def test_contrast_is_the_difference_of_two_explanations(tiny):
    c = tiny.contrast("coffee", A, "Dogs run.", layer=1, level="word")
    assert c.difference == pytest.approx(c.a.score - c.b.score)
    assert c.effects.sum() + c.base + c.gap == pytest.approx(c.difference, abs=1e-12)
    assert "coffee" in repr(c)


def test_a_contrast_counts_the_other_texts_pairs_against_it(tiny):
    c = tiny.contrast("coffee", A, "Dogs run.", layer=1, level="word")
    with_a = sum(pair.value for side, pair in c.top(10_000, special=True) if side == "a")
    with_b = sum(pair.value for side, pair in c.top(10_000, special=True) if side == "b")
    assert with_a == pytest.approx(c.a.matrix.sum())
    assert with_b == pytest.approx(-c.b.matrix.sum())
