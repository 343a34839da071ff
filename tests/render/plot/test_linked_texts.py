import re
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.colors import to_hex

from explanations import COFFEE, make
from figures import curves, texts, words
from pairlens.render import plot
from pairlens.render.colours import LIGHT, shade
from pairlens.text import Unit
from pictures import noisy


def test_words_without_a_link_are_grey():
    matrix = np.zeros((7, 5))
    matrix[1, 1] = 0.5
    _, ax = plot.links(make(*COFFEE, matrix=matrix, special=False))
    assert len(curves(ax)) == 1  # a pair that contributes nothing has none
    colours = {t.get_text(): t.get_color() for t in words(ax)}
    assert colours["coffee"] == LIGHT.ink
    assert colours["here"] == LIGHT.faint
    assert not curves(plot.links(make(*COFFEE, matrix=np.zeros((9, 7))))[1])


def test_special_tokens_are_one_unit_or_one_each():
    matrix = np.zeros((9, 7))
    matrix[0, 0] = 0.5
    e = make(*COFFEE, matrix=matrix)
    assert texts(plot.links(e)[0]).count("special") == 2
    assert texts(plot.links(e, special=True)[0]).count("[CLS]") == 2


def test_long_texts_are_shortened_around_their_links():
    text = " ".join(f"w{i}" for i in range(2000))
    matrix = np.zeros((2002, 3))
    matrix[1001, 1] = 1.0
    figure, ax = plot.links(make(text, "b", matrix=matrix))
    shown = texts(figure)
    assert {"w1000", "…"} <= set(shown)
    assert figure.get_size_inches()[1] < 5
    assert len(curves(ax)) == 1


def test_prompt_and_rest_are_written_as_units():
    e = make("one two three", "four", special=False)
    units = Unit("(prompt)", 0, 0, "prompt"), Unit("two", 4, 7), Unit("(rest)", 0, 0, "rest")
    e = replace(e, units_a=units)
    figure, ax = plot.links(e)
    assert {"(prompt)", "one", "two", "three", "(rest)"} <= set(texts(figure))
    assert len(curves(ax)) == 3


def test_words_have_the_colour_of_their_effect_and_the_score_without_them(guitar):
    figure, ax = plot.links(guitar, limit=0.5, numbers=False, width=6.9)
    faces: list[Any] = [each.get_facecolor() for each in ax.collections]
    tints = {to_hex(face[0]) for face in faces}
    assert {shade(guitar.effects_a[6] / 0.5), shade(guitar.effects_b[6] / 0.5)} <= tints
    middle = sum(ax.get_ylim()) / 2
    numbers = [(*t.get_position(), t.get_text()) for t in ax.texts if re.fullmatch(r"0\.\d\d", t.get_text())]
    for scores, above in ((guitar.measured_a, True), (guitar.measured_b, False)):
        written = [text for _, y, text in sorted(numbers) if (y < middle) == above]
        assert written == [f"{score:.2f}" for score in scores[1:-1]]
    assert "number at a word: the score without that word, measured" in " ".join(texts(figure))


def test_first_pairs_that_may_be_noise_have_no_curve():
    _, ax = plot.links(noisy(), top=1)
    written = texts(ax.figure)
    assert "0.50" in written
    assert "0.60" not in written
