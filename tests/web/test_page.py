"""The page in a real Chromium with a real server: what a person does there, and what they see."""

from __future__ import annotations

import json
import re
from contextlib import contextmanager
from urllib.parse import quote, urlencode

import pytest

import browser
from pairlens import Explanation
from pairlens.web import requests
from serving import TIMEOUT, explain_endlessly

A, B = "The coffee here is not good.", "This coffee is bad."
SENTENCES = [f"Then {name} ordered another cup of coffee and a slice of cake." for name in ("Ann", "Bob", "Cy", "Di")]
PASSAGE = " ".join(SENTENCES)  # 52 words: it is zoomed into
WIDE, NARROW = {"width": 1440, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture
def opened(server, chromium):
    """Open the page with a state in its link, and wait for its picture."""

    @contextmanager
    def open_page(viewport=WIDE, **given):
        options = {name: given.pop(name) for name in ("color_scheme", "has_touch") if name in given}
        link = f"{server.url}/#{urlencode(given, quote_via=quote)}"
        with browser.visit(chromium, link, viewport=viewport, **options) as page:
            page.set_default_timeout(1000 * TIMEOUT)
            settle(page)
            yield page

    return open_page


def settle(page):
    """Wait until the result of the current form is shown: the page is busy from the first change of the form on."""
    page.wait_for_selector("#picture[aria-busy=false] .pl-panel")


def score(page) -> float:
    return float(page.locator("#picture .pl-score output").first.inner_text().replace("−", "-"))


def words(page, side: int) -> list[str]:
    return page.locator("#picture .pl-run").nth(side).locator(".pl-unit").all_inner_texts()


def download(page, name):
    with page.expect_download() as waiting:
        page.get_by_role("button", name=name, exact=True).click()
    return waiting.value


def test_what_is_typed_is_explained(opened, tiny):
    with opened() as page:
        assert page.get_by_label("The first text").input_value(), "an example stands there at first"
        page.get_by_label("The first text").fill("The train was late again.")
        page.get_by_label("The second text").fill("")
        page.get_by_label("The second text").press_sequentially("Our train came late.")
        settle(page)
        expected = tiny.explain("The train was late again.", "Our train came late.", method="output").score
        assert abs(score(page) - expected) < 1e-4
        assert "train" in words(page, 0)
        assert words(page, 1)[:2] == ["Our", "train"]


def test_pointing_at_a_word_highlights_its_partner(opened):
    with opened(a=A, b=B, model="minilm") as page:
        text = page.locator("#picture .pl-run")
        text.nth(0).locator(".pl-unit", has_text="coffee").hover()
        page.wait_for_selector("#picture .pl-chosen")
        assert "coffee" in text.nth(1).locator(".pl-lit").all_inner_texts()
        assert page.locator("#picture .pl-link").count() > 0


def test_level_method_and_layer_can_be_chosen(opened):
    with opened(a=A, b=B) as page:
        whole = score(page)
        page.get_by_label("Level").select_option("sentence")
        page.wait_for_function("document.querySelectorAll('#picture .pl-run:first-child .pl-unit').length < 2")
        settle(page)
        assert words(page, 0) == [A]
        assert score(page) == whole
        assert not page.get_by_label("Layer").is_visible()
        page.get_by_label("Method").select_option("integrated-jacobian")
        page.get_by_label("Layer").fill("2")
        settle(page)
        assert "layer 2" in page.locator("#picture .pl-provenance").inner_text()
        assert score(page) == whole
        assert "2 of 3" in page.locator(".layer output").inner_text()


def test_default_method_says_what_deleting_a_word_does(opened, minilm):
    with opened(a="A man is playing a guitar.", b="A man is playing a flute.", model="minilm") as page:
        options = page.get_by_label("Method").locator("option").all_inner_texts()
        assert options[:3] == ["What predicts deletions best", "Banzhaf", "Shapley"]
        page.locator("#picture .pl-run").nth(0).locator(".pl-unit", has_text="guitar").hover()
        score = minilm.explain("A man is playing a .", "A man is playing a flute.", method="output").score
        page.get_by_text(f"Without guitar the score would be {score:.2f} (measured)").wait_for()
        assert "predicts deletions to ±" in page.locator("#picture .pl-forecast").inner_text()


def test_long_texts_show_their_sentences_at_once_and_words_as_they_come(opened):
    with opened(a=A, b=B, model="minilm") as page:
        asked, release = browser.hold_second(page, "**/api/explain")
        page.get_by_label("The second text").fill(PASSAGE)
        page.get_by_text("by sentences,").wait_for()
        assert words(page, 1) == SENTENCES
        assert page.locator("#picture[aria-busy=true]").count() == 1, "the words are still to come"
        release()
        settle(page)
        assert [each.get("level") for each in asked] == ["sentence", None]
        assert page.locator("#picture .pl-chip").filter(has_text="as a whole").count() > 0


@pytest.mark.slow
def test_a_link_gives_the_same_view_in_a_new_page(opened, chromium):
    with opened(a=A, b=B) as page:
        page.get_by_label("Method").select_option("integrated-jacobian")
        page.get_by_label("Layer").fill("3")
        page.get_by_label("Level").select_option("token")
        settle(page)
        page.get_by_label("Special tokens").check()
        page.get_by_label("Threshold").fill("40")
        link, shown, limit = page.url, words(page, 0), page.locator(".pl-threshold output").inner_text()
        page.context.grant_permissions(["clipboard-read", "clipboard-write"])
        page.get_by_role("button", name="Copy link").click()
        assert page.evaluate("navigator.clipboard.readText()") == link
        assert page.get_by_role("button", name="Copied").is_visible()
    with browser.visit(chromium, link) as page:
        settle(page)
        assert page.get_by_label("The first text").input_value() == A
        assert page.get_by_label("Method").input_value() == "integrated-jacobian"
        assert page.get_by_label("Layer").input_value() == "3"
        assert page.get_by_label("Level").input_value() == "token"
        assert page.get_by_label("Special tokens").is_checked()
        assert page.locator(".pl-threshold output").inner_text() == limit
        assert words(page, 0) == shown
        assert page.url == link
        page.evaluate("location.hash = '#a=One&b=Two'")
        page.locator("#picture .pl-run").nth(1).get_by_text("Two", exact=True).wait_for()
        assert words(page, 1) == ["Two"]


def test_downloads_hold_what_the_page_shows(opened, tiny, chromium, tmp_path):
    with opened(a=A, b=B) as page:
        file = tmp_path / "pairlens.json"
        download(page, "JSON").save_as(file)
        downloaded, expected = Explanation.load(file), tiny.explain(A, B, level="word")
        assert abs(downloaded.matrix - expected.matrix).max() < 1e-6
        assert downloaded.settings == expected.settings
        download(page, "PNG").save_as(tmp_path / "pairlens.png")
        assert (tmp_path / "pairlens.png").read_bytes().startswith(b"\x89PNG")
        saved = tmp_path / "pairlens.html"
        download(page, "HTML").save_as(saved)
    with browser.visit(chromium, saved.as_uri()) as page:
        assert abs(float(page.locator(".pl-score output").inner_text()) - expected.score) < 1e-4


def test_passages_are_ranked_and_each_is_explained(opened, tiny):
    with opened() as page:
        page.get_by_role("button", name="a search").click()
        settle(page)
        query = page.get_by_role("textbox", name="Query").input_value()
        passages = page.get_by_role("textbox", name="Passages").input_value().split("\n")
        scores = sorted((tiny.explain(query, text, method="output").score for text in passages), reverse=True)
        listed = [float(text) for text in page.locator(".pl-list .pl-right").all_inner_texts()]
        assert listed == pytest.approx(scores, abs=1e-4)
        third = page.locator(".pl-list button").nth(2)
        third.click()
        assert abs(score(page) - scores[2]) < 1e-4
        assert "hit=2" in page.url
        assert page.locator("#picture .pl-run").nth(1).inner_text().strip() in third.inner_text()
        answer = json.loads(download(page, "JSON").path().read_text())
        assert len(answer["hits"]) == len(passages)
        assert download(page, "PNG").path().stat().st_size > 1000
        assert "passage 2" in download(page, "HTML").path().read_text()
        page.get_by_role("textbox", name="Passages").fill("One line\nand another.\n\nA second passage.")
        settle(page)
        assert page.locator(".pl-list button").count() == 2


def test_a_long_calculation_shows_its_progress_and_can_be_cancelled(opened, server, monkeypatch):
    with opened(a=A, b=B) as page:
        before = score(page)
        with monkeypatch.context() as patch:
            patch.setattr(requests, "explain", explain_endlessly)
            page.get_by_label("Method").select_option("fade")
            _watch_and_cancel(page)
            assert score(page) == before
            server.wait_until_idle()
        page.get_by_label("Method").select_option("occlusion")
        settle(page)
        assert page.get_by_role("alert").inner_text() == ""


def test_going_back_to_the_shown_texts_ends_the_progress(opened, server, monkeypatch):
    with opened(a=A, b=B) as page:
        with monkeypatch.context() as patch:
            patch.setattr(requests, "explain", explain_endlessly)
            page.get_by_label("The first text").fill(B)
            page.get_by_role("progressbar").wait_for()
            page.get_by_label("The first text").fill(A)
            page.get_by_role("progressbar").wait_for(state="hidden")
            server.wait_until_idle()
        assert page.locator("#picture").get_attribute("aria-busy") == "false"


def _watch_and_cancel(page):
    bar = page.get_by_role("progressbar")
    bar.wait_for()
    page.wait_for_selector("progress:not([value='0'])")
    assert page.locator("#picture").get_attribute("aria-busy") == "true"
    page.get_by_role("button", name="Cancel").click()
    bar.wait_for(state="hidden")
    assert "Cancelled" in page.get_by_role("alert").inner_text()


def test_the_reason_of_a_refusal_is_shown(opened):
    with opened(a=A, b=B) as page:
        page.get_by_label("The first text").fill("x" * 10_001)
        alert = page.get_by_role("alert")
        page.wait_for_selector(".message:not(:empty)")
        assert alert.inner_text().startswith("A has 10001 characters, and this server takes up to 10000")
        page.get_by_label("The first text").fill(B)
        page.wait_for_selector(".message:empty", state="attached")
        settle(page)
        assert score(page) == 1.0


def test_first_clearing_a_text_clears_the_picture(opened):
    with opened(a=A, b=B) as page:
        for name in ("The first text", "The second text"):
            page.get_by_label(name).fill("")
            page.wait_for_selector("#picture:empty", state="attached")
            page.wait_for_selector("#picture[aria-busy=false]", state="attached")
            assert not page.get_by_role("button", name="Copy link").is_visible(), "there is nothing to keep"
            page.get_by_label(name).fill(B)
            settle(page)


def test_first_switching_tabs_clears_the_picture(opened):
    with opened(a=A, b=B) as page:
        page.get_by_role("radio", name="One query").check(force=True)
        page.wait_for_selector("#picture:empty", state="attached")
        page.get_by_role("textbox", name="Query").fill("how long")
        page.get_by_role("textbox", name="Passages").fill("It runs for nine hours.\nA cable is sold separately.")
        page.locator(".pl-list").wait_for()
        page.get_by_role("radio", name="Two texts").check(force=True)
        page.locator(".pl-list").wait_for(state="detached")
        settle(page)
        assert score(page) > 0.5


def test_first_a_refusal_clears_the_picture(opened):
    with opened(a=A, b=B) as page:
        page.get_by_label("The first text").fill("x" * 10_001)
        page.wait_for_selector(".message:not(:empty)")
        assert page.locator("#picture:empty").count() == 1


def test_first_there_is_one_control_for_the_level(opened):
    with opened(a=A, b=B) as page:
        names = "nodes => nodes.map((node) => node.closest('label, .field').textContent)"
        controls = page.locator("select, input[type=radio]").evaluate_all(names)
        assert len([name for name in controls if "Sentences" in name]) == 1


def test_first_options_are_folded_on_phones(opened):
    with opened(NARROW, a=A, b=B, method="occlusion", level="sentence") as page:
        summary = page.locator(".options > summary")
        assert not page.get_by_label("Method").is_visible()
        assert summary.inner_text().split() == "Options tiny, Occlusion, Sentences".split()
        summary.click()
        assert page.get_by_label("Method").is_visible()
        page.set_viewport_size(WIDE)
        summary.wait_for(state="hidden")
        assert page.get_by_label("Method").is_visible()


HOSTILE = [
    "</script><script>alert(1)</script>",
    '"><img src=x onerror=alert(1)>',
    "<style>*{display:none}</style> &lt;b&gt; ${1} {{7*7}}",
    "abc\u202edcba\u202c zero\u200bwidth \u0645\u0631\u062d\u0628\u0627 \U0001f468\u200d\U0001f469",
    "javascript:alert(1)",
]


def test_markup_in_texts_is_shown_as_text(opened):
    with opened(a=HOSTILE[0], b=B, method="occlusion") as page:
        page.on("dialog", lambda dialog: pytest.fail(dialog.message))
        for text in HOSTILE:
            page.evaluate("(text) => (location.hash = `#method=occlusion&b=b&a=${encodeURIComponent(text)}`)", text)
            page.wait_for_function("(text) => document.querySelector('textarea[name=a]').value === text", arg=text)
            settle(page)
            shown = page.locator("#picture .pl-run").first.evaluate("(node) => node.textContent")
            assert re.sub(r"\s", "", text) in re.sub(r"\s", "", shown)
            assert page.locator("#picture img, #picture script, #picture style").count() == 0


def test_unknown_values_in_a_link_are_ignored(opened):
    given = {"method": '"><script>alert(1)</script>', "layer": "NaN", "level": "all", "threshold": "x", "kind": "other"}
    with opened(a=A, b=B, model="../etc/passwd", hit="-7", **given) as page:
        assert score(page) > 0.5


def test_everything_can_be_reached_by_keyboard(opened):
    with opened(a=A, b=B) as page:
        seen = []
        for _ in range(40):
            page.keyboard.press("Tab")
            if page.evaluate("document.activeElement === document.body"):
                break  # every element was focused once
            seen.append(page.evaluate("(document.activeElement.name || document.activeElement.className) + ''"))
            visible = "getComputedStyle(document.activeElement).outlineStyle"
            if not seen[-1].startswith(("kind", "pl-", "radio")):
                assert page.evaluate(visible) != "none", seen[-1]
            if seen[-1] == "method":
                page.keyboard.press("O")  # occlusion, by its first letter
                settle(page)
        for name in ("kind", "a", "b", "model", "method", "level", "link", "html", "png", "json"):
            assert name in seen, seen
        assert any("pl-unit" in name for name in seen), "the words of the picture can be reached"
        assert "occlusion" in page.locator("#picture .pl-provenance").inner_text()


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [
        pytest.param(WIDE, "light", id="1440-light"),
        pytest.param(NARROW, "dark", id="360-dark", marks=pytest.mark.slow),
        pytest.param(WIDE, "dark", id="1440-dark", marks=pytest.mark.slow),
        pytest.param(NARROW, "light", id="360-light", marks=pytest.mark.slow),
    ],
)
def test_the_page_fits_and_axe_finds_no_serious_fault(opened, viewport, scheme):
    search = {"kind": "search", "query": "how long", "passages": "It runs for nine hours.\nA cable is sold separately."}
    for state in ({"a": A, "b": B, "method": "integrated-jacobian", "layer": "3"}, search):
        with opened(viewport, color_scheme=scheme, **state) as page:
            assert page.evaluate("document.documentElement.scrollWidth") <= viewport["width"]
            background = page.evaluate("getComputedStyle(document.body).backgroundColor")
            assert background == ("rgb(20, 24, 29)" if scheme == "dark" else "rgb(255, 255, 255)")
            if viewport == NARROW:
                page.locator(".options > summary").click()
            page.locator(".more summary").click()
            assert browser.faults(page) == []
