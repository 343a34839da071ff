from browser import visit
from explanations import make
from pairlens.render.text import signed
from pictures import WIDE, minus, unit


def test_matrix_and_texts_mark_the_same_pair(coffee, saved, chromium):
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


def test_200_by_200_units_make_few_elements_and_few_updates(saved, chromium):
    e = make(*(" ".join(f"{word}{i}" for i in range(200)) for word in ("word", "term")), special=False)
    with visit(chromium, saved(e), viewport=WIDE) as page:
        size = "document.querySelectorAll('*').length"
        before = page.evaluate(size)
        assert before < 1500, "cells are not elements"
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


def test_first_word_matrices_of_long_texts_scroll_below_their_labels(saved, chromium):
    e = make(*(" ".join(f"{word}{i}" for i in range(count)) for word, count in (("word", 60), ("term", 200))))
    with visit(chromium, saved(e), viewport=WIDE) as page:
        matrix = page.locator(".pl-matrix")
        assert matrix.evaluate("node => node.scrollWidth > node.clientWidth && node.scrollHeight > node.clientHeight")
        where = "nodes => nodes.map((node) => [node.getBoundingClientRect().x, node.getBoundingClientRect().y])"
        labels = page.locator(".pl-corner, .pl-top, .pl-left")
        (corner, top, left) = labels.evaluate_all(where)
        matrix.evaluate("node => node.scrollTo(300, 200)")
        assert labels.evaluate_all(where) == [corner, [top[0] - 300, top[1]], [left[0], left[1] - 200]]
        assert "pl-beyond" in matrix.get_attribute("class"), "the cut is faded"
        page.locator(".pl-marks").hover(position={"x": 305, "y": 205})
        page.wait_for_selector(".pl-partner")
        wide = page.locator(".pl-marks").evaluate("node => node.getBoundingClientRect().width") / 202
        assert page.locator(".pl-partner").inner_text() == f"term{int(305 // wide)}"
