"""The interactive picture, in a real Chromium: what it shows, that it can be used in every way, and that it is safe."""

from __future__ import annotations

import base64
import hashlib
import json
import math
import re
from dataclasses import replace
from html.parser import HTMLParser
from importlib.resources import files

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from typer.testing import CliRunner

from browser import faults, visit
from hostile import HOSTILE_A, HOSTILE_B, A, B
from pairlens import InputError
from pairlens.attribution.explanation import Explanation
from pairlens.cli import app
from pairlens.render import colours, html
from pairlens.render.running import cut
from pairlens.render.text import number, signed, tiny
from pairlens.text import Unit, level_spans

WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def coffee(minilm) -> Explanation:
    return minilm.explain(A, B)


@pytest.fixture(scope="module")
def layers(minilm) -> dict[str, Explanation]:
    return {f"layer {n}": minilm.explain(A, B, layer=n) for n in (0, 3, 6)}


@pytest.fixture(scope="module")
def hostile(minilm) -> Explanation:
    return minilm.explain(HOSTILE_A, HOSTILE_B, method="occlusion")


@pytest.fixture
def saved(tmp_path):
    """The address of a saved picture."""

    def save(explanations, **options) -> str:
        return html.save(explanations, tmp_path / "why.html", **options).as_uri()

    return save


def invented(text_a: str, text_b: str, seed: int = 0) -> Explanation:
    """An explanation of the texts' words with numbers out of nowhere, which add up."""
    units_a, units_b = (tuple(Unit(t[i:j], i, j) for i, j in level_spans(t, "word")) for t in (text_a, text_b))
    matrix = np.random.default_rng(seed).normal(size=(len(units_a), len(units_b)))
    return Explanation(
        text_a, text_b, float(matrix.sum()) + 0.25, matrix, units_a, units_b, (), (), 0.25, np.zeros(len(units_a)),
        np.zeros(len(units_b)), 0.0, 0.0, 0.0, np.abs(matrix) / 50, settings={"level": "word", "measure": "cosine"},
    )  # fmt: skip


def unit(page, side: str, text: str):
    """The first unit of a text that reads so."""
    return page.locator(f'.pl-unit[data-side="{side}"]').get_by_text(text, exact=True).first


def terms(page) -> dict[str, str]:
    rows = page.locator(".pl-equation tr").all()
    return {row.get_attribute("data-term"): row.locator("td").first.inner_text() for row in rows}


def pairs(page) -> list[tuple[str, str]]:
    rows = page.locator(".pl-pairs tbody tr").all()
    return [(row.locator("th").inner_text(), row.locator("td").first.inner_text()) for row in rows]


def minus(text: str) -> str:
    """As the picture writes it."""
    return text.replace("-", "−")


def choose_level(page, name: str) -> None:
    page.get_by_role("radio", name=name).check(force=True)


# What it shows.


def expected_terms(e: Explanation, *, special: bool) -> dict[str, str]:
    """The equation from the explanation's own arrays."""
    plain_a, plain_b = (np.array([special or u.kind != "special" for u in units]) for units in (e.units_a, e.units_b))
    single = e.matrix[np.ix_(plain_a, plain_b)]
    found = {"base": signed(e.base)}
    if e.effects_a.any():
        found |= {"effects of a": signed(e.effects_a.sum()), "effects of b": signed(e.effects_b.sum())}
    found |= {"pairs together": signed(single[single > 0].sum()), "pairs apart": signed(single[single < 0].sum())}
    if not special:
        found["special tokens"] = signed(e.matrix.sum() - single.sum())
    found |= {"gap": tiny(e.gap), "score": number(e.score)}
    return {name: minus(value) for name, value in found.items()}


@pytest.mark.parametrize("options", [{}, {"layer": 6}, {"method": "fade", "reference_terms": "keep"}])
def test_the_numbers_are_the_explanations(options, minilm, saved, chromium):
    e = minilm.explain(A, B, **options)
    with visit(chromium, saved(e), viewport=WIDE) as page:
        assert page.locator(".pl-score output").inner_text() == number(e.score)
        for level, name in (("token", "Tokens"), ("word", "Words"), ("sentence", "Sentences")):
            choose_level(page, name)
            at = e if level == "token" else e.at(level)
            assert terms(page) == expected_terms(at, special=False)
            strongest = at.top(8, special=False)
            assert [value for _, value in pairs(page)] == [minus(signed(pair.value)) for pair in strongest]
            assert pairs(page)[0][0] == f"{strongest[0].a.text} · {strongest[0].b.text}"[:48] or level == "sentence"
        choose_level(page, "Tokens")
        page.get_by_label("Special tokens").check()
        assert terms(page) == expected_terms(e, special=True)
        assert [value for _, value in pairs(page)] == [minus(signed(pair.value)) for pair in e.top(8)]


def test_every_word_says_its_sum_and_its_strongest_partners(coffee, saved, chromium):
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


def test_pointing_at_a_word_lights_its_partners_and_draws_the_links(coffee, saved, chromium):
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
        places = [page.locator(f".pl-link[data-pair$=',{order[0] - 1}']")]  # [CLS] is folded away
        assert places[0].get_attribute("stroke") == colours.LIGHT.together
        assert page.locator(".pl-readout").inner_text().startswith(minus(f"good {signed(row.sum())} in all"))
        assert minus(signed(row[order[0]])) in page.locator(".pl-readout").inner_text()
        page.mouse.move(700, 20)
        page.wait_for_selector(".pl-chosen", state="detached")
        assert page.locator(".pl-link").count() == resting


def test_the_matrix_and_the_texts_are_in_step(coffee, saved, chromium):
    e = coffee.at("word")
    with visit(chromium, saved(e), viewport=WIDE) as page:
        canvas = page.locator(".pl-marks")
        box = canvas.bounding_box()
        # The cells fill the canvas from its lower right corner: the last cell is the pair of full stops.
        canvas.hover(position={"x": box["width"] - 10, "y": box["height"] - 10})
        page.wait_for_selector(".pl-partner")
        assert page.locator(".pl-chosen").inner_text() == page.locator(".pl-partner").inner_text() == "."
        assert page.locator(".pl-readout").inner_text().startswith(minus(f". with . {signed(e.matrix[-2, -2])}"))
        canvas.click(position={"x": box["width"] - 10, "y": box["height"] - 10})
        page.mouse.move(5, 5)
        assert page.locator(".pl-chosen").inner_text() == ".", "a click holds the pair"
        unit(page, "b", "bad").hover()
        page.locator(".pl-partner").get_by_text("bad", exact=True).wait_for()
        page.keyboard.press("Escape")
        page.mouse.move(5, 5)
        page.wait_for_selector(".pl-chosen", state="detached")


def test_a_pair_of_the_table_lights_both_its_words(coffee, saved, chromium):
    with visit(chromium, saved(coffee)) as page:
        page.locator(".pl-pairs tbody tr").nth(1).hover()
        page.wait_for_selector(".pl-partner")
        strongest = coffee.top(2, special=False)[1]
        assert page.locator(".pl-chosen").inner_text() == strongest.a.text
        assert page.locator(".pl-partner").inner_text() == strongest.b.text
        page.get_by_role("button", name="More pairs").click()
        assert len(pairs(page)) == len(coffee.top(40, special=False))


def test_the_threshold_hides_weaker_pairs_and_says_what_they_add_up_to(coffee, saved, chromium):
    with visit(chromium, saved(coffee)) as page:
        slider = page.get_by_label("Threshold")
        slider.fill("10")
        single = np.array([pair.value for pair in coffee.top(1000, special=False)])
        below = np.abs(single) < np.abs(single).max() / 10
        assert len(pairs(page)) == (~below).sum()
        note = f"Below the threshold: {below.sum()} of {len(single)} pairs, {signed(single[below].sum())} in all."
        assert page.locator(".pl-note").inner_text() == minus(note)
        assert terms(page) == expected_terms(coffee, special=False), "the sum is that of all pairs"


def test_special_tokens_are_one_line_until_they_are_unfolded(layers, saved, chromium):
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


def test_errors_are_shown_where_there_are_any(minilm, coffee, saved, chromium):
    sure, unsure = coffee, minilm.explain(A, B, layer=0)
    assert not sure.entry_error.any()
    with visit(chromium, saved(sure)) as page:
        assert page.locator(".pl-error").count() == 0
    with visit(chromium, saved(unsure)) as page:
        found = page.locator("td.pl-error").all_inner_texts()
        assert found == [number(pair.error) for pair in unsure.top(8, special=False)]
        choose_level(page, "Words")
        bounds = page.locator("td.pl-error").all_inner_texts()
        assert bounds == [f"≤\u2009{number(pair.error)}" for pair in unsure.at("word").top(8, special=False)]


def test_a_text_that_was_cut_off_says_so(coffee, saved, chromium):
    with visit(chromium, saved(replace(coffee, text_b=B + " And so on.", truncated_b=True))) as page:
        assert page.locator(".pl-warning").count() == 1
        assert page.locator(".pl-cut").inner_text() == " And so on."


# Several views.


def test_a_slider_over_layers_keeps_one_scale(layers, saved, chromium):
    peak = max(abs(e.top(1, special=False)[0].value) for e in layers.values())
    with visit(chromium, saved(layers), viewport=WIDE) as page:
        slider = page.get_by_label("Explanation")
        for n, (label, e) in enumerate(layers.items()):
            slider.fill(str(n))
            assert label in page.locator(".pl-score").inner_text()
            assert terms(page) == expected_terms(e, special=False)
            scale = page.locator(".pl-scale").nth(1).inner_text().split()
            assert (scale[0], scale[-1]) == (minus(signed(-peak, 3)), signed(peak, 3))
            unit(page, "a", "coffee").hover()
            page.wait_for_selector(".pl-lit")
            assert_colour(unit(page, "b", "coffee"), e.matrix[2, 2] / peak)


def assert_colour(place, share: float) -> None:
    """The place has the colour of a share of the scale, as pairlens.render.colours has it."""
    drawn = [int(c) for c in re.findall(r"\d+", place.evaluate("node => node.style.backgroundColor"))]
    want = colours.shade(math.copysign(abs(share) ** 0.6, share))
    assert np.abs(np.array(drawn) - [int(want[i : i + 2], 16) for i in (1, 3, 5)]).max() <= 3


def test_a_held_word_stays_held_from_view_to_view(layers, saved, chromium):
    with visit(chromium, saved(layers)) as page:
        unit(page, "a", "not").click()
        page.get_by_label("Explanation").fill("2")
        assert unit(page, "a", "not").get_attribute("aria-pressed") == "true"


def test_side_by_side_a_word_is_lit_in_every_panel(layers, saved, chromium):
    with visit(chromium, saved(layers, arrange="side"), viewport=WIDE) as page:
        panels = page.locator(".pl-panel")
        assert panels.count() == 3
        unit(panels.nth(1), "b", "bad").hover()
        page.wait_for_selector(".pl-chosen")
        assert page.locator(".pl-chosen").all_inner_texts() == ["bad"] * 3


def test_a_list_is_ranked_and_each_hit_explained(minilm, saved, chromium):
    passages = {"trains": "Trains leave every hour.", "coffee": A, "tea": "The tea is good here."}
    hits = {name: minilm.explain("Is the coffee any good?", text, level="word") for name, text in passages.items()}
    with visit(chromium, saved(hits, arrange="list")) as page:
        ranked = sorted(hits.values(), key=lambda e: -e.score)
        rows = page.locator(".pl-list button")
        assert [row.locator(".pl-right").inner_text() for row in rows.all()] == [number(e.score) for e in ranked]
        assert rows.nth(2).get_attribute("aria-current") == "true", "the first of the mapping is shown at first"
        rows.nth(0).click()
        assert page.locator(".pl-score output").inner_text() == number(ranked[0].score)
        assert terms(page) == expected_terms(ranked[0], special=False)


def test_the_picture_goes_into_any_page_and_out_again(layers, saved, chromium):
    with visit(chromium, saved(layers)) as page:
        states = page.evaluate(
            """() => {
              const payload = JSON.parse(document.getElementById("pairlens-payload").textContent);
              const states = [];
              const place = document.body.appendChild(document.createElement("div"));
              const options = { level: "word", special: true, threshold: 0.05, view: 1, arrange: "list" };
              const picture = pairlens.show(place, payload, { ...options, onChange: (state) => states.push(state) });
              const level = place.querySelector("input[type=radio]:checked").value;
              place.querySelector("input[type=checkbox]").click();
              place.querySelector(".pl-list button").click();
              picture.destroy();
              return [level, states, place.childNodes.length];
            }"""
        )
        base = {"level": "word", "special": False, "threshold": 0.05}
        assert states == ["word", [base | {"view": 1, "label": "layer 3"}, base | {"view": 0, "label": "layer 0"}], 0]


# Every way to use it.


def test_with_the_keyboard_alone(coffee, saved, chromium):
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
        assert page.locator(".pl-chosen").inner_text() == "coffee", "focus is as good as a pointer"
        page.keyboard.press("ArrowDown")
        assert page.evaluate("document.activeElement.dataset.side") == "b", "down to the strongest partner"
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


def test_by_touch(coffee, saved, chromium):
    with visit(chromium, saved(coffee), viewport=PHONE, has_touch=True) as page:
        unit(page, "a", "good").tap()
        page.wait_for_selector('[aria-pressed="true"]')
        assert page.locator(".pl-readout").inner_text().startswith("good ")
        page.locator(".pl-texts").tap(position={"x": 200, "y": 90})
        page.wait_for_selector('[aria-pressed="true"]', state="detached")


@pytest.mark.parametrize("viewport", [WIDE, PHONE], ids=["1440", "360"])
@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_it_is_accessible_and_fits(viewport, scheme, coffee, layers, saved, chromium):
    several = {"a label that is rather long": coffee, **layers}
    for arrange in html.ARRANGEMENTS:
        with visit(chromium, saved(several, arrange=arrange), viewport=viewport, color_scheme=scheme) as page:
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), arrange
            assert faults(page) == []
            unit(page, "b", "bad").click()
            page.wait_for_selector('[aria-pressed="true"]')
            assert faults(page) == []


def test_light_and_dark_by_preference_and_by_switch(coffee, saved, chromium):
    def palette(page) -> tuple[str, str, str]:
        read = "name => getComputedStyle(document.querySelector('.pairlens')).getPropertyValue('--pl-' + name)"
        return tuple(page.evaluate(read, name) for name in ("together", "apart", "neutral", "ink", "faint", "paper"))

    def of(p: colours.Palette) -> tuple[str, ...]:
        return (p.together, p.apart, p.neutral, p.ink, p.faint, p.paper)

    with visit(chromium, saved(coffee), color_scheme="dark") as page:
        assert palette(page) == of(colours.DARK)
        page.get_by_role("button", name="Light").click()
        page.locator(".pairlens[data-theme=light]").wait_for()
        assert palette(page) == of(colours.LIGHT)
        assert page.evaluate("getComputedStyle(document.body).backgroundColor") == "rgb(255, 255, 255)"


def test_paper_is_light_and_without_controls(coffee, saved, chromium):
    with visit(chromium, saved(coffee), color_scheme="dark") as page:
        page.emulate_media(media="print", color_scheme="dark")
        page.locator(".pairlens[data-theme=light]").wait_for()
        assert not page.locator(".pl-controls").is_visible()
        assert page.locator(".pl-matrix canvas").first.is_visible()
        assert_colour(
            unit(page, "a", "coffee"), coffee.row[2] / max(np.abs(coffee.row).max(), np.abs(coffee.column).max())
        )
        assert page.pdf().startswith(b"%PDF")


# Large and strange.


def test_two_hundred_units_a_side_stay_a_page_that_can_be_drawn(saved, chromium):
    e = invented(" ".join(f"word{i}" for i in range(200)), " ".join(f"term{i}" for i in range(200)))
    with visit(chromium, saved(e), viewport=WIDE) as page:
        size = "document.querySelectorAll('*').length"
        before = page.evaluate(size)
        assert before < 1500, "cells are no elements"
        page.evaluate(
            """() => {
              window.touched = 0;
              const count = (changes) => (window.touched += new Set(changes.map((each) => each.target)).size);
              const texts = document.querySelector(".pl-texts");
              new MutationObserver(count).observe(texts, { subtree: true, attributes: true });
            }"""
        )
        unit(page, "a", "word7").hover()
        page.wait_for_selector(".pl-chosen")
        page.evaluate("window.touched = 0")
        unit(page, "a", "word8").hover()
        page.locator(".pl-chosen").get_by_text("word8").wait_for()
        assert page.evaluate("window.touched") <= 210, "the other text and two words"
        assert page.evaluate(size) < before + 50
        assert page.locator(".pl-run").first.evaluate("node => node.scrollHeight > node.clientHeight"), (
            "long texts scroll"
        )
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("level", ["word", "token"])
def test_hostile_texts_are_texts(level, hostile, saved, chromium):
    e = hostile.at(level)
    with visit(chromium, saved({'</script><b onclick="window.hacked=5">': e, "\u202ex": e}), viewport=PHONE) as page:
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
        assert "ZWJ" not in names or level == "token", "an emoji's own joiner stays in it"
        assert page.evaluate("window.hacked") is None
        assert page.locator("main img, main svg[onload], main script").count() == 0
        assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")


def test_no_script_runs_but_its_own(coffee, tmp_path, chromium):
    page_source = html.document(coffee).replace("</body>", "<script>window.hacked = 1</script></body>")
    path = tmp_path / "changed.html"
    path.write_text(page_source.replace("<body ", "<body onload='window.hacked = 2' "), encoding="utf-8")
    page = chromium.new_page()
    refused = []
    page.on("console", lambda message: refused.append(message.text))
    page.goto(path.as_uri())
    assert page.locator(".pl-score output").inner_text() == number(coffee.score)
    assert page.evaluate("window.hacked") is None
    assert len(refused) == 2
    assert all("Content Security Policy" in line for line in refused)
    page.close()


def test_without_scripts_there_is_text(coffee, saved, chromium):
    with visit(chromium, saved(coffee), java_script_enabled=False) as page:
        assert page.locator("main").inner_text().strip() == repr(coffee)


def test_an_empty_text_is_shown_as_one(saved, chromium):
    e = invented("", B)
    with visit(chromium, saved(e)) as page:
        assert page.locator(".pl-score output").inner_text() == number(e.score)
        assert page.locator(".pl-chip").inner_text() == "␣"


# The file, without a browser.


class Parsed(HTMLParser):
    """What a parser makes of a page: its elements, and what its scripts hold."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[str] = []
        self.attributes: set[str] = set()
        self.scripts: list[str] = []
        self.open = ""
        self.feed(page)
        self.close()

    def handle_starttag(self, tag: str, attrs: list) -> None:
        self.tags.append(tag)
        self.attributes |= {name for name, _ in attrs}
        self.open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_data(self, data: str) -> None:
        if self.open == "script":
            self.scripts[-1] += data

    def handle_endtag(self, tag: str) -> None:
        self.open = ""


TAGS = ["html", "head", "meta", "meta", "meta", "meta", "title", "style", "body", "main", "pre"] + ["script"] * 3
nasty = st.text(
    st.one_of(st.characters(), st.sampled_from("<>&\"'/!-`\\\u2028\u2029\u202e\u200b\x00")), max_size=40
) | st.sampled_from(["</script>", "<!--<script>", "]]>", '"><img src=x onerror=alert(1)>', "\\u003c", "&lt;"])


@settings(max_examples=80, deadline=None)
@given(nasty, nasty, nasty, nasty)
def test_no_text_becomes_markup(text_a, text_b, label, title):
    e = invented(text_a, text_b)
    page = html.document({label: e}, title=title)
    parsed = Parsed(page)
    assert parsed.tags == TAGS
    assert parsed.attributes == {"lang", "charset", "http-equiv", "content", "name", "class", "id", "type"}
    data, options, script = parsed.scripts
    assert json.loads(data) == html.payload({label: e})
    assert json.loads(options)["title"] == title
    assert not set("<>&\u2028\u2029") & set(data + options)
    assert script == html.asset("picture.js")


@given(st.text(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8))
def test_the_pieces_of_a_text_are_the_text(text, spans):
    units = tuple(Unit("x", min(i, j, len(text)), min(max(i, j), len(text))) for i, j in spans)
    found = cut(text, units)
    assert "".join(piece for piece, _ in found) == text
    assert sorted(index for _, index in found if index is not None) == list(range(len(units)))


def test_the_policy_allows_the_pages_own_script_and_style_alone(coffee):
    page = html.document(coffee)
    (policy,) = re.findall(r'Security-Policy" content="([^"]+)"', page)
    (style,) = re.findall(r"<style>(.*?)</style>", page, re.DOTALL)
    hashes = [
        base64.b64encode(hashlib.sha256(text.encode()).digest()).decode() for text in (Parsed(page).scripts[2], style)
    ]
    assert policy == (
        f"default-src 'none'; script-src 'sha256-{hashes[0]}'; style-src 'sha256-{hashes[1]}'; img-src data:"
    )


def test_every_part_of_the_script_is_used():
    folder = files("pairlens.render").joinpath("picture")
    sources = {path.name: path.read_text(encoding="utf-8") for path in folder.iterdir()}
    assert sources.pop("picture.css") == html.asset("picture.css")
    assert all(source in html.asset("picture.js") for source in sources.values())
    with pytest.raises(InputError, match="unknown asset"):
        html.asset("show.js")


def test_it_is_small(coffee):
    assert len(html.document(coffee)) - len(json.dumps(html.payload(coffee))) < 100_000


def test_the_payload_has_every_level_that_there_is(coffee, minilm):
    def names(e: Explanation) -> list[str]:
        payload = html.payload(e)
        json.dumps(payload, allow_nan=False)
        return [level["name"] for level in payload["views"][0]["levels"]]

    assert names(coffee) == ["token", "word", "sentence"]
    assert names(coffee.at("word")) == ["word", "sentence"]
    assert names(coffee.at([(4, 10)])) == ["span"]
    assert names(coffee.at(("word", "sentence"))) == ["span"]
    view = html.payload({"x": coffee})["views"][0]
    assert view["label"] == "x"
    assert view["levels"][1]["matrix"] == pytest.approx(coffee.at("word").matrix, rel=1e-8)
    assert view["levels"][1]["units_a"][2] == {"text": "coffee", "start": 4, "end": 10, "kind": "text"}


def test_saving(coffee, tmp_path):
    assert coffee.save(tmp_path / "why.HTML").read_text(encoding="utf-8") == html.document(coffee)
    assert [path.name for path in tmp_path.iterdir()] == ["why.HTML"], "nothing is left beside it"
    with pytest.raises(InputError, match="folder"):
        coffee.save(tmp_path / "nowhere" / "why.html")
    with pytest.raises(InputError, match=r"unknown file suffix '.htm'. Did you mean '.html'"):
        coffee.save(tmp_path / "why.htm")
    with pytest.raises(InputError, match="unknown file suffix"):
        html.save(coffee, tmp_path / "why.json")
    with pytest.raises(InputError, match="unknown arrangement 'grid'"):
        html.document(coffee, arrange="grid")
    with pytest.raises(InputError, match="empty"):
        html.document({})


def test_the_command_saves_it(tmp_path, monkeypatch, minilm):
    monkeypatch.setattr("pairlens.cli.options.Request.load", lambda request: minilm)
    path = tmp_path / "why.html"
    done = CliRunner().invoke(app, ["explain", A, B, "--save", str(path)])
    assert done.exit_code == 0, done.output
    (stored,) = json.loads(Parsed(path.read_text(encoding="utf-8")).scripts[0])["views"]
    assert (stored["text_a"], stored["text_b"]) == (A, B)
    assert [level["name"] for level in stored["levels"]] == ["word", "sentence"]


# The helper itself.


@pytest.mark.parametrize(
    ("body", "complaint"),
    [
        ("<img src='http://127.0.0.1:9/x.png'>", "another place"),
        ("<script>console.error('oh')</script>", "error: oh"),
        ("<script>throw new Error('no')</script>", "exception: no"),
    ],
)
def test_a_visit_notices_what_it_should(body, complaint, tmp_path, chromium):
    path = tmp_path / "bad.html"
    path.write_text(f"<!doctype html><title>x</title>{body}", encoding="utf-8")
    with pytest.raises(AssertionError, match=complaint), visit(chromium, path.as_uri()) as page:
        page.wait_for_timeout(100)


def test_axe_finds_a_fault(tmp_path, chromium):
    path = tmp_path / "bad.html"
    path.write_text("<!doctype html><html lang=en><title>x</title><main><button></button></main>", encoding="utf-8")
    with visit(chromium, path.as_uri()) as page:
        assert [fault.split(":")[0] for fault in faults(page)] == ["button-name"]
