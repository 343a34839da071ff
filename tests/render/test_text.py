import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from explanations import COFFEE, LONG, SETTINGS, make
from pairlens.attribution.contrast import Contrast
from pairlens.render.contrast import summary as contrast_summary
from pairlens.render.headline import headline
from pairlens.render.text import add_up, clean, columns, equation, provenance, shorten, summary


def test_summary_has_texts_equation_pairs_and_settings():
    text = summary(make(*COFFEE))
    lines = text.splitlines()
    assert re.fullmatch(r"-?\d\.\d{4} cosine similarity", lines[0])
    told = lines.index(f"a: {COFFEE[0]}")
    assert " ".join(lines[1:told]) == headline(make(*COFFEE))
    assert lines[told + 1] == f"b: {COFFEE[1]}"
    assert re.match(r"score -?\d\.\d{4} = base 0\.0041 \+ pairs -?\d\.\d{4} \+ gap 2e-07", lines[told + 2])
    assert " ".join(lines[told + 3 + 5 :]) == provenance(make(*COFFEE))
    assert repr(make(*COFFEE)) == text


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({}, "compared with a text of padding, whose direction is projected out"),
        (
            {"reference": "special tokens", "reference_terms": "keep"},
            "compared with the special tokens, whose share is kept",
        ),
        ({"reference": "fitted", "reference_terms": "keep"}, "cosine similarity"),
        ({"reference": "fitted", "reference_terms": "keep", "measure": "dot"}, "dot product"),
        ({"level": ["word", "sentence"], "reference": None}, "a by words, b by sentences, cosine similarity"),
    ],
)
def test_first_the_footer_says_in_words_what_was_computed(changes, said):
    text = provenance(make(*COFFEE, settings={**SETTINGS, **changes}))
    assert text.startswith("all-MiniLM-L6-v2, integrated Jacobians, layer 0, ")
    assert text.endswith(said)
    assert "by words" in text
    for name in ("project,", "reference_terms", "reference terms", "level word"):
        assert name not in text


@pytest.mark.parametrize(
    "texts", [COFFEE, (LONG, LONG), ("東京は大きい都市です。" * 9, "x" * 300), ("a\nb\x1b[0m", "\t")]
)
def test_summaries_have_at_most_80_columns(texts):
    e = make(*texts) if texts[1].strip() else make(texts[0], "b")
    for text in (summary(e), contrast_summary(Contrast(e, make(e.text_a, "something else")))):
        assert max(columns(line) for line in text.splitlines()) <= 80
        assert "\x1b" not in text


def test_first_a_contrast_leads_with_the_closer_text_and_a_sentence():
    low, high = np.zeros((9, 7)), np.zeros((9, 7))
    high[2, 2], high[6, 4], high[5, 4] = 0.6, 0.25, -0.3
    good, poor = make(*COFFEE, matrix=high), make(COFFEE[0], "This is a bad cat.", matrix=np.zeros((9, 8)))
    for c, closer, sign in ((Contrast(good, poor), "a", "+"), (Contrast(poor, good), "b", "-")):
        first, said, query, *_ = repr(c).splitlines()
        assert first.startswith(f"{closer} is closer: score ")
        assert said == f"Mostly because of coffee ({sign}0.6000), then good ({sign}0.2500)."
        assert query.startswith("query: ")
    equal = repr(Contrast(make(*COFFEE, matrix=low), make(*COFFEE, matrix=low)))
    assert equal.startswith("both are equally close: score ")
    assert "Mostly" not in equal


def test_contrast_summary_names_the_closer_text_and_the_difference():
    one, other = make(COFFEE[0], COFFEE[1], seed=1), make(COFFEE[0], "Tea is fine.", seed=2)
    c = Contrast(one, other)
    text = repr(c)
    assert text == contrast_summary(c)
    assert "query: The coffee" in text
    assert f"{'a' if c.difference >= 0 else 'b'} is closer" in text
    assert f"difference {c.difference:.4f} = units {c.effects.sum():.4f}" in text


def test_equation_has_effects_only_if_there_are_any():
    assert "effects a" in equation(make(*COFFEE, effects=True))
    assert "effects" not in equation(make(*COFFEE))


def test_summary_has_the_score_without_words_and_the_forecast(guitar):
    lines = summary(guitar).splitlines()
    first = lines.index(f"a: {guitar.text_a}")
    assert lines[first + 1].startswith(f"   without man {guitar.measured_a[2]:.2f}, ")
    assert lines[first + 3].startswith(f"   without man {guitar.measured_b[2]:.2f}, flute {guitar.measured_b[6]:.2f}")
    assert any(line.startswith("predicts deletions to ±") for line in lines)
    assert "gap" not in summary(guitar), "there is none but errors of floating-point numbers"


@given(st.lists(st.floats(-3, 3), min_size=1, max_size=8))
def test_rounded_terms_add_up(values):
    shown = add_up(values, sum(values))
    assert round(1e4 * sum(shown)) == round(1e4 * sum(values)) or abs(1e4 * sum(values) % 1 - 0.5) < 1e-6
    assert max(abs(value - each) for value, each in zip(values, shown, strict=True)) <= 1.5e-4


def test_clean_and_shorten_leave_one_safe_line():
    assert clean("a\r\n\tb ") == "a b"
    assert clean("\x1b[0m") == "\ufffd[0m"
    assert clean(" \n") == " "
    assert shorten("abcdef", 4) == "abc…"
    assert shorten("東京都", 4) == "東…"
    assert columns("e\u0301") == 1
