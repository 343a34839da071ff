import numpy as np
import pytest

from browser import faults, visit
from explanations import make
from hostile import A
from pairlens.render import colours, html
from pairlens.render.text import number, signed
from pictures import PHONE, WIDE, assert_colour, expected_terms, minus, terms, tokens, unit


def test_slider_shows_every_view_on_one_scale(layers, saved, chromium):
    peak = max(abs(e.top(1)[0].value) for e in layers.values())
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


def test_held_word_stays_held_in_the_next_view(layers, saved, chromium):
    with visit(chromium, saved(layers)) as page:
        unit(page, "a", "not").click()
        page.get_by_label("Explanation").fill("2")
        assert unit(page, "a", "not").get_attribute("aria-pressed") == "true"


def test_word_is_marked_in_all_panels_side_by_side(layers, saved, chromium):
    with visit(chromium, saved(layers, arrange="side"), viewport=WIDE) as page:
        panels = page.locator(".pl-panel")
        assert panels.count() == 3
        unit(panels.nth(1), "b", "bad").hover()
        page.wait_for_selector(".pl-chosen")
        assert page.locator(".pl-chosen").all_inner_texts() == ["bad"] * 3


def test_list_is_ranked_by_score_and_shows_the_chosen_view(saved, chromium):
    passages = {"trains": "Trains leave every hour.", "coffee": A, "tea": "The tea is good here."}
    hits = {name: make("Is it good?", text, seed=n) for n, (name, text) in enumerate(passages.items())}
    with visit(chromium, saved(hits, arrange="list")) as page:
        ranked = sorted(hits.values(), key=lambda e: -e.score)
        rows = page.locator(".pl-list button")
        scores = [row.locator(".pl-right").inner_text() for row in rows.all()]
        assert scores == [minus(number(e.score)) for e in ranked]
        first = rows.nth(ranked.index(hits["trains"]))
        assert first.get_attribute("aria-current") == "true", "the first of the mapping is shown at first"
        rows.nth(0).click()
        assert page.locator(".pl-score output").inner_text() == number(ranked[0].score)
        assert terms(page) == expected_terms(ranked[0], special=False)


def test_picture_is_shown_in_and_removed_from_any_page(layers, saved, chromium):
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


@pytest.mark.parametrize(
    ("viewport", "scheme"),
    [
        (WIDE, "dark"),
        pytest.param(PHONE, "light", marks=pytest.mark.slow),
        pytest.param(WIDE, "light", marks=pytest.mark.slow),
        pytest.param(PHONE, "dark", marks=pytest.mark.slow),
    ],
    ids=["1440-dark", "360-light", "1440-light", "360-dark"],
)
def test_every_arrangement_is_accessible_and_fits_the_window(viewport, scheme, coffee, negation, saved, chromium):
    several = {"a label that is rather long": coffee, "with effects": negation}
    for arrange in html.ARRANGEMENTS:
        with visit(chromium, saved(several, arrange=arrange), viewport=viewport, color_scheme=scheme) as page:
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), arrange
            assert faults(page) == []
            unit(page, "b", "bad").click()
            page.wait_for_selector('[aria-pressed="true"]')
            assert faults(page) == []


def test_theme_follows_the_preference_and_the_switch(coffee, saved, chromium):
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


def test_no_script_runs_but_that_of_the_page(coffee, tmp_path, chromium):
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


def test_without_scripts_the_page_is_plain_text(coffee, saved, chromium):
    with visit(chromium, saved(coffee), java_script_enabled=False) as page:
        assert page.locator("main").inner_text().strip() == repr(coffee)


def test_first_views_side_by_side_share_one_legend_and_one_set_of_controls(layers, saved, chromium):
    with visit(chromium, saved(layers, arrange="side"), viewport=WIDE) as page:
        assert page.locator(".pl-legend").count() == page.locator(".pl-controls").count() == 1
        legend, *panels = (
            page.locator(name).nth(n).bounding_box()
            for name, n in ((".pl-legend", 0), *((".pl-panel", n) for n in range(3)))
        )
        assert len({panel["y"] for panel in panels}) == 1, "three views stand side by side"
        assert legend["y"] + legend["height"] <= panels[0]["y"]


def test_first_options_are_folded_on_phones(layers, saved, chromium):
    with visit(chromium, saved(layers), viewport=PHONE) as page:
        threshold, summary = page.get_by_label("Threshold"), page.get_by_text("More", exact=True)
        assert not threshold.is_visible()
        summary.click()
        assert threshold.is_visible()
        page.set_viewport_size(WIDE)
        summary.wait_for(state="hidden")
        assert threshold.is_visible()


def test_first_labels_stay_inside_their_boxes_for_long_hits(saved, chromium):
    address = "https://example.org/" + "/".join(["unbroken"] * 12)
    hits = {f"{address}/{n}": make(f"What is at {address}?", f"{address} is long. " * 3, seed=n) for n in range(2)}
    inside = """() => [...document.querySelectorAll("h1, .pl-name, .pl-said, .pl-chip, .pl-list span, .pl-scale span")]
      .every((node) => [...node.getClientRects()].every(({ left, right }) => left >= 0 && right <= innerWidth))"""
    for arrange in html.ARRANGEMENTS:
        with visit(chromium, saved(hits, arrange=arrange, title=address), viewport=PHONE) as page:
            assert page.evaluate(inside), arrange
            assert page.evaluate("document.documentElement.scrollWidth <= innerWidth"), arrange


def test_first_one_level_has_no_control_and_units_are_called_by_their_names(saved, chromium):
    with visit(chromium, saved(tokens().at(("word", "sentence")))) as page:
        assert page.get_by_role("radio").count() == 0
        assert "Point at a word or sentence" in page.locator(".pl-readout").inner_text()


def test_words_keep_their_widths_in_a_picture_that_is_hidden_at_first(guitar, saved, chromium):
    with visit(chromium, saved(guitar), viewport=WIDE) as page:
        page.evaluate(
            """() => {
              const payload = JSON.parse(document.getElementById("pairlens-payload").textContent);
              const place = document.querySelector("main").appendChild(document.createElement("div"));
              place.hidden = true; // as a notebook's frame before its first layout
              pairlens.show(place, payload);
              place.hidden = false;
            }"""
        )
        page.locator(".pl-texts").nth(1).locator(".pl-link").first.wait_for(state="attached")
        widths = page.locator(".pl-unit").evaluate_all(
            "nodes => nodes.map((node) => node.getBoundingClientRect().width)"
        )
        half = len(widths) // 2
        assert widths[half:] == pytest.approx(widths[:half], abs=0.5)
