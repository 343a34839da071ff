from dataclasses import replace

import numpy as np
import pytest

from explanations import COFFEE, make
from pairlens.render.headline import FLOOR, colour_floor, headline, standing_out
from pairlens.render.notebook import static
from pairlens.render.text import summary
from terminal_output import show

SAMPLED = {"method": "banzhaf", "reference": "fitted", "reference_terms": "keep", "measure": "cosine", "level": "word"}


def sampled(values, errors):
    """An explanation of COFFEE by sampling: pairs of (row, column) with values and standard errors, else zeros."""
    plain = make(*COFFEE)
    matrix, error = np.zeros_like(plain.matrix), np.zeros_like(plain.matrix)
    for place, value in values.items():
        matrix[place] = value
    for place, value in errors.items():
        error[place] = value
    score = plain.base + matrix.sum()
    return replace(plain, matrix=matrix, entry_error=error, settings=SAMPLED, score=score, gap=0.0)


COFFEES, GOOD_BAD, THE_THIS = (2, 2), (6, 4), (1, 1)


def test_first_the_headline_names_the_strongest_pairs():
    e = make(*COFFEE, matrix=sampled({COFFEES: 0.58, GOOD_BAD: 0.12}, {}).matrix)
    assert headline(e) == "Mostly coffee–coffee (+0.58), then good–bad (+0.12)."


@pytest.mark.parametrize(
    ("values", "said"),
    [
        ({COFFEES: 0.58, GOOD_BAD: -0.12}, "Mostly coffee–coffee (+0.58), against it good–bad (-0.12)."),
        ({COFFEES: 0.10, GOOD_BAD: -0.30}, "Pushed apart most by good–bad (-0.30), in spite of coffee–coffee (+0.10)."),
        ({COFFEES: 0.02, GOOD_BAD: -0.01}, "No pair of words stands out."),
    ],
)
def test_the_headline_says_which_pairs_push_apart_and_when_none_stands_out(values, said):
    assert headline(make(*COFFEE, matrix=sampled(values, {}).matrix)) == said


def test_first_the_headline_says_what_the_most_important_word_does(guitar):
    assert f"without “man” in a it would be {guitar.measured_a[2]:.2f}." in headline(guitar)


def test_first_pairs_that_may_be_noise_come_last_and_are_said_to_be():
    e = sampled({COFFEES: 0.3, THE_THIS: 0.5, GOOD_BAD: 0.1}, {THE_THIS: 0.3, GOOD_BAD: 0.01})
    *settled, last = e.top(1000)
    assert [(pair.row, pair.column) for pair in settled[:2]] == [COFFEES, GOOD_BAD]
    assert (last.row, last.column) == THE_THIS
    assert not any(pair.noise for pair in settled)
    assert repr(last) == "Pair(The · This, +0.500 ± 0.300, may be noise)"
    assert [(pair.row, pair.column) for pair in standing_out(e, 9)][:2] == [COFFEES, GOOD_BAD]
    assert "The–This" not in headline(e)
    assert "The · This" not in summary(e)


def test_estimated_errors_of_integrals_are_no_noise():
    plain = make(*COFFEE, entry_error=np.full(make(*COFFEE).matrix.shape, 9.0))
    assert not plain.noise.any()


@pytest.mark.parametrize("look", [summary, static, show], ids=["repr", "notebook", "terminal"])
def test_first_every_view_leads_with_the_score_and_a_sentence(guitar, look):
    text = " ".join(look(guitar).split())
    score, said = text.index(f"{guitar.score:.4f}"), text.index("Mostly guitar–flute")
    assert score < said < text.rindex("guitar")


def test_first_weak_pairs_have_weak_colours():
    weak = make(*COFFEE, scale=0.001)
    assert colour_floor(weak) == FLOOR
    assert colour_floor(replace(weak, settings={**weak.settings, "measure": "dot"}, score=-8.0)) == 8 * FLOOR


def test_a_sentence_is_named_by_its_number_and_in_no_pair(zoomed):
    assert "without sentence 2 of b it would be about" in headline(zoomed)
    matrix = zoomed.matrix.copy()
    matrix[2, -1] = -0.6
    assert "as a whole" not in headline(replace(zoomed, matrix=matrix))
