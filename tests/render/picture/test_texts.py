from dataclasses import replace

import numpy as np
import pytest

from browser import visit
from explanations import make
from hostile import HOSTILE_A, HOSTILE_B, B
from pairlens.render import colours
from pairlens.render.text import number, signed
from pairlens.text import Unit
from pictures import PHONE, WIDE, minus, unit


def test_every_word_describes_its_sum_and_strongest_partners(coffee, saved, chromium):
    e = coffee.at("word")
    with visit(chromium, saved(e)) as page:
        for side, units, sums in (("a", e.units_a, e.row), ("b", e.units_b, e.column)):
            for i, u in enumerate(units):
                if u.kind == "special":
                    continue
                said = unit(page, side, u.text).get_attribute("aria-description")
                row = e.matrix[i] if side == "a" else e.matrix[:, i]
                best = (e.units_b if side == "a" else e.units_a)[int(np.abs(row).argmax())]
                value = row[int(np.abs(row).argmax())]
                assert said.startswith(minus(f"{signed(sums[i])} in all; most with {best.text} {signed(value)}"))


def test_hovering_over_a_word_colours_its_partners_and_draws_links(coffee, saved, chromium):
    with visit(chromium, saved(coffee), viewport=WIDE) as page:
        assert page.locator(".pl-lit").count() == 0
        resting = page.locator(".pl-link").count()
        assert resting > 0, "at rest the strongest pairs are linked"
        unit(page, "a", "good").hover()
        page.wait_for_selector(".pl-chosen")
        row = coffee.matrix[[u.text for u in coffee.units_a].index("good")]
        order = np.argsort(-np.abs(row))
        best = coffee.units_b[order[0]].text
        assert best in page.locator(".pl-lit").all_inner_texts()
        assert unit(page, "b", best).evaluate("node => node.style.backgroundColor") != ""
        link = page.locator(f".pl-link[data-pair$=',{order[0] - 1}']")  # [CLS], the first unit, is folded
        assert link.get_attribute("stroke") == colours.LIGHT.together
        assert page.locator(".pl-readout").inner_text().startswith(minus(f"good {signed(row.sum())} in all"))
        assert minus(signed(row[order[0]])) in page.locator(".pl-readout").inner_text()
        page.mouse.move(700, 20)
        page.wait_for_selector(".pl-chosen", state="detached")
        assert page.locator(".pl-link").count() == resting


def test_special_tokens_are_one_item_until_unfolded(layers, saved, chromium):
    e = layers["layer 6"]
    with visit(chromium, saved(e)) as page:
        assert page.locator(".pl-chip").all_inner_texts() == ["special tokens", "special tokens"]
        page.locator(".pl-chip").first.hover()
        page.wait_for_selector(".pl-chosen")
        rows = [i for i, u in enumerate(e.units_a) if u.kind == "special"]
        total = minus(signed(e.matrix[rows].sum()))
        assert page.locator(".pl-readout").inner_text().startswith(f"special tokens {total} in all")
        page.get_by_label("Special tokens").check()
        assert page.locator(".pl-chip").all_inner_texts() == ["[CLS]", "[SEP]"] * 2


def test_truncated_text_has_a_warning(coffee, saved, chromium):
    with visit(chromium, saved(replace(coffee, text_b=B + " And so on.", truncated_b=True))) as page:
        assert page.locator(".pl-warning").count() == 1
        assert page.locator(".pl-cut").inner_text() == " And so on."


def test_keyboard_moves_holds_and_releases_words(coffee, saved, chromium):
    with visit(chromium, saved(coffee), viewport=WIDE) as page:
        focused = "document.activeElement.textContent"
        for _ in range(20):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement.dataset.item") == "0":
                break
        assert page.evaluate(focused) == "The"
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowRight")
        page.keyboard.press("ArrowLeft")
        assert page.evaluate(focused) == "coffee"
        assert page.locator(".pl-chosen").inner_text() == "coffee", "focus marks a word as hovering does"
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.dataset.side") == "b", "down moves to the strongest partner"
        assert page.evaluate(focused) == "coffee"
        page.keyboard.press("ArrowUp")
        page.keyboard.press("Enter")
        page.wait_for_selector('[aria-pressed="true"]')
        assert page.locator('[role="status"]').inner_text() == "Held: coffee"
        page.keyboard.press("Tab")
        page.keyboard.press("End")
        page.locator(".pl-partner").get_by_text(".", exact=True).wait_for()
        page.keyboard.press("Escape")
        assert page.locator('[role="status"]').inner_text() == "Released"
        page.locator("input[type=radio]:checked").focus()
        page.keyboard.press("ArrowRight")
        assert page.locator("input[type=radio]:checked").get_attribute("value") == "word"
        assert page.evaluate("document.activeElement.value") == "word", "the control keeps the focus"


def test_hovering_over_two_words_shows_what_deleting_both_would_do(guitar, saved, chromium):
    change = guitar.measured_b[6] - guitar.score
    with visit(chromium, saved(guitar), viewport=WIDE) as page:
        shown = page.locator(".pl-unit[data-side=a]").evaluate_all("nodes => nodes.map((each) => each.dataset.without)")
        assert shown == [f"{score:.2f}" for score in guitar.measured_a[1:-1]]
        unit(page, "b", "flute").click()
        readout = page.locator(".pl-readout")
        page.get_by_text("Without flute").wait_for()
        expected = f"Without flute the score would be {guitar.measured_b[6]:.2f} (measured), {change:.2f} higher"
        assert readout.inner_text().startswith(expected)
        effect, column = guitar.effects_b[6], guitar.column[6]
        assert (
            minus(f"By itself {signed(effect)}, with the other text {signed(column)}: most with guitar")
            in readout.inner_text()
        )
        unit(page, "a", "guitar").hover()
        page.get_by_text("Without both").wait_for()
        assert readout.inner_text().startswith(minus(f"guitar with flute {signed(guitar.matrix[6, 6])}"))
        assert guitar.measured_pairs[6, 6] == pytest.approx(1, abs=1e-5)  # the same words are left
        assert "Without both the score would be 1.00 (measured)" in readout.inner_text()
        unit(page, "a", "guitar").click()
        page.mouse.move(5, 5)
        assert "Without both" in readout.inner_text(), "two words are held"
        assert page.locator('[role="status"]').inner_text() == "Held: flute with guitar"


def test_compounds_are_chips_that_mark_their_words(negation, saved, chromium):
    with visit(chromium, saved(negation), viewport=WIDE) as page:
        chip = page.locator(".pl-chip").get_by_text("not good", exact=True)
        assert "~" in chip.get_attribute("data-without")
        chip.hover()
        page.wait_for_selector(".pl-with")
        assert page.locator(".pl-with").all_inner_texts() == ["not", "good"]
        assert page.locator(".pl-part").count() >= 2


def test_touch_holds_and_releases_words(coffee, saved, chromium):
    with visit(chromium, saved(coffee), viewport=PHONE, has_touch=True) as page:
        unit(page, "a", "good").tap()
        page.wait_for_selector('[aria-pressed="true"]')
        assert page.locator(".pl-readout").inner_text().startswith("good ")
        page.locator(".pl-texts").tap(position={"x": 200, "y": 90})
        page.wait_for_selector('[aria-pressed="true"]', state="detached")


def test_empty_text_is_shown_as_one_unit(saved, chromium):
    matrix = np.array([[0.1, -0.2, 0.3, 0.1, 0.2]])
    e = make("", B, matrix=matrix, units_a=(Unit("", 0, 0),), effects_a=np.zeros(1), special=False)
    with visit(chromium, saved(e)) as page:
        assert page.locator(".pl-score output").inner_text() == number(e.score)
        assert page.locator(".pl-chip").inner_text() == "␣"


def test_hostile_texts_are_shown_character_by_character(hostile, saved, chromium):
    views = {'</script><b onclick="window.hacked=5">': hostile, "\u202ex": hostile}
    with visit(chromium, saved(views), viewport=PHONE) as page:
        for side, text in (("a", HOSTILE_A), ("b", HOSTILE_B)):
            page.locator(f".pl-unit[data-side={side}]").first.click()
            run = page.locator(".pl-run").nth("ab".index(side))
            shown = run.evaluate(
                "node => [...node.childNodes].filter((each) => !each.classList.contains('pl-chip'))"
                ".map((each) => each.textContent).join('')"
            )
            assert shown == text, "character by character"
        names = set(page.locator(".pl-unseen").evaluate_all("nodes => nodes.map((each) => each.dataset.name)"))
        assert {"RLO", "PDF", "ZWSP", "NUL", "ESC", "LS", "PS", "BOM"} <= names
        assert "ZWJ" not in names or hostile.settings["level"] == "token", (
            "the joiner inside an emoji is not shown by name"
        )
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main svg[onload], main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_an_opened_sentence_is_a_chip_behind_its_words(zoomed, saved, chromium):
    with visit(chromium, saved(zoomed), viewport=WIDE) as page:
        spans = page.locator(".pl-unit[data-side=b]")
        assert spans.all_inner_texts()[-3:] == ["good", ".", "sentence 2 as a whole"]
        assert page.locator(".pl-part").count() == 0, "only words of compounds are underlined"
        unit(page, "b", "sentence 2 as a whole").click()
        page.get_by_text(minus("Beyond its single words -0.1000; most with coffee")).wait_for()
        assert page.locator(".pl-inside").all_inner_texts() == ["The", "coffee", "here", "is", "not", "good", "."]
        readout = page.locator(".pl-readout")
        without = f"Without sentence 2 as a whole the score would be {number(zoomed.score - 0.4, 2)} (forecast)"
        assert readout.inner_text().startswith(without)
        unit(page, "a", "coffee").hover()
        page.get_by_text("Without both").wait_for()
        gone = zoomed.without(a=[2], b=[len(zoomed.units_b) - 1])
        assert f"Without both the score would be {number(gone, 2)} (forecast)" in readout.inner_text()
        page.get_by_role("radio", name="Sentences", exact=True).check(force=True)
        assert spans.all_inner_texts() == ["We left early.", "The coffee here is not good."]
