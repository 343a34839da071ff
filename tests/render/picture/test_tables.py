import numpy as np
import pytest

from browser import visit
from hostile import A, B
from pairlens.attribution.explanation import Explanation
from pairlens.render.text import number, signed
from pictures import WIDE, choose_level, expected_terms, minus, pairs, terms, tokens


@pytest.mark.parametrize("effects", [False, True])
def test_equation_and_pairs_are_those_of_the_explanation(effects, saved, chromium):
    check_numbers(tokens(effects=effects), saved, chromium)


def test_equation_and_pairs_are_those_of_a_real_model(minilm, saved, chromium):
    check_numbers(minilm.explain(A, B, method="output", level="token"), saved, chromium)


@pytest.mark.slow
@pytest.mark.parametrize("options", [{}, {"layer": 6}, {"method": "fade", "reference_terms": "keep"}])
def test_equation_and_pairs_are_those_of_a_real_model_for_every_method(options, minilm, saved, chromium):
    check_numbers(minilm.explain(A, B, level="token", **options), saved, chromium)


def check_numbers(e: Explanation, saved, chromium) -> None:
    """Assert that the picture shows the equation and the strongest pairs at every level."""
    with visit(chromium, saved(e), viewport=WIDE) as page:
        assert page.locator(".pl-score output").inner_text() == minus(number(e.score))
        for level, name in (("token", "Tokens"), ("word", "Words"), ("sentence", "Sentences")):
            choose_level(page, name)
            at = e if level == "token" else e.at(level)
            assert terms(page) == expected_terms(at, special=False)
            strongest = at.top(8)
            assert [value for _, value in pairs(page)] == [minus(signed(pair.value)) for pair in strongest]
            assert pairs(page)[0][0] == f"{strongest[0].a.text} · {strongest[0].b.text}"[:48] or level == "sentence"
        choose_level(page, "Tokens")
        unfold = page.get_by_label("Special tokens")
        assert unfold.count() == any(pair.a.kind == "special" and pair.value for pair in e.top(1000, special=True))
        if unfold.count():
            unfold.check()
        assert terms(page) == expected_terms(e, special=unfold.count() > 0)
        assert [value for _, value in pairs(page)] == [minus(signed(pair.value)) for pair in e.top(8, special=True)]


def test_hovering_over_a_listed_pair_marks_both_words(coffee, saved, chromium):
    with visit(chromium, saved(coffee)) as page:
        page.locator(".pl-pairs tbody tr").nth(1).hover()
        page.wait_for_selector(".pl-partner")
        strongest = coffee.top(2)[1]
        assert page.locator(".pl-chosen").inner_text() == strongest.a.text
        assert page.locator(".pl-partner").inner_text() == strongest.b.text
        page.get_by_role("button", name="More pairs").click()
        assert len(pairs(page)) == len(coffee.top(40))


def test_threshold_hides_weaker_pairs_and_notes_their_sum(coffee, saved, chromium):
    with visit(chromium, saved(coffee)) as page:
        slider = page.get_by_label("Threshold")
        slider.fill("10")
        single = np.array([pair.value for pair in coffee.top(1000)])
        below = np.abs(single) < np.abs(single).max() / 10
        assert len(pairs(page)) == (~below).sum()
        note = f"Below the threshold: {below.sum()} of {len(single)} pairs, {signed(single[below].sum())} in all."
        assert page.locator(".pl-note").inner_text() == minus(note)
        assert terms(page) == expected_terms(coffee, special=False), "the sum is that of all pairs"


def test_errors_are_shown_where_there_are_any(coffee, saved, chromium):
    unsure = tokens()
    assert not coffee.entry_error.any()
    with visit(chromium, saved(coffee)) as page:
        assert page.locator(".pl-error").count() == 0
    with visit(chromium, saved(unsure)) as page:
        errors = page.locator("td.pl-error").all_inner_texts()
        assert errors == [number(pair.error) for pair in unsure.top(8)]
        choose_level(page, "Words")
        bounds = page.locator("td.pl-error").all_inner_texts()
        assert bounds == [f"≤\u2009{number(pair.error)}" for pair in unsure.at("word").top(8)]


def test_first_weak_pairs_have_short_bars(saved, chromium):
    with visit(chromium, saved(tokens(scale=0.1, special=0.0)), viewport=WIDE) as page:
        bar, room = (
            page.locator(f".pl-pairs {name}").first.bounding_box()["width"] for name in (".pl-bar", ".pl-bars")
        )
        assert bar / room < 0.3, "0.05 is a fifth of the strongest colour"
