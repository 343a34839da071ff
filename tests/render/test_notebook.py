"""Explanations in notebooks: the picture where scripts run, its static part where they do not; and the tutorial."""

from __future__ import annotations

import re
from html.parser import HTMLParser
from pathlib import Path

import pytest

from browser import visit
from hostile import HOSTILE_A, HOSTILE_B, A, B
from pairlens.render.notebook import notebook, static
from pairlens.render.text import equation, signed

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.ipynb"


@pytest.fixture(scope="module")
def coffee(minilm):
    return minilm.explain(A, B, level="word")


@pytest.fixture
def cell(tmp_path):
    """The address of a page with two cells, the second with another explanation's HTML."""

    def write(*outputs: str) -> str:
        path = tmp_path / "notebook.html"
        body = "".join(f"<p>In</p>{output}" for output in outputs)
        path.write_text(f"<!doctype html><meta charset=utf-8><title>x</title>{body}<p>end</p>", encoding="utf-8")
        return path.as_uri()

    return write


def sanitised(output: str) -> str:
    """What GitHub and an untrusted notebook leave of a cell."""
    return re.sub(r"<iframe.*?</iframe>|<script.*?</script>", "", output, flags=re.DOTALL)


def test_what_ipython_is_given(coffee):
    from IPython.core.formatters import DisplayFormatter

    data, _ = DisplayFormatter().format(coffee)
    assert data == {"text/plain": repr(coffee), "text/html": notebook(coffee)}


def test_where_scripts_run_there_is_the_picture_alone_and_as_high_as_it_needs(coffee, cell, chromium):
    with visit(chromium, cell(notebook(coffee), notebook(coffee)), viewport={"width": 900, "height": 900}) as page:
        for n in range(2):
            frame = page.frame_locator("iframe").nth(n)
            page.locator("iframe").nth(n).scroll_into_view_if_needed()
            frame.locator(".pl-unit").get_by_text("good", exact=True).hover()
            frame.locator(".pl-chosen").wait_for()
        page.wait_for_timeout(200)
        assert page.get_by_text(equation(coffee)).count() == 0, "the static part is gone"
        heights = page.locator("iframe").evaluate_all(
            "frames => frames.map((each) => [each.clientHeight, each.parentElement.clientHeight])"
        )
        for i, (height, outer) in enumerate(heights):
            needed = page.frames[i + 1].evaluate("document.documentElement.scrollHeight")
            assert needed <= height <= outer <= needed + 12


def test_a_frame_without_its_parents_script_covers_the_static_part(coffee, cell, chromium):
    output = re.sub(r"<script>[^<]*</script></div>$", "</div>", notebook(coffee))
    assert output != notebook(coffee)
    with visit(chromium, cell(output)) as page:
        page.frame_locator("iframe").locator(".pl-unit").first.wait_for()
        line = page.get_by_text(equation(coffee))
        assert (
            line.evaluate(
                """line => {
              const { left, top, width, height } = line.getBoundingClientRect();
              return document.elementFromPoint(left + width / 2, top + height / 2).tagName;
            }"""
            )
            == "IFRAME"
        )


def test_without_scripts_or_frames_there_is_the_static_part(coffee, cell, chromium):
    with visit(chromium, cell(sanitised(notebook(coffee)))) as page:
        assert page.get_by_text(equation(coffee)).is_visible()
        pair = coffee.top(1)[0]
        assert page.locator("tr").first.inner_text().split("\t")[:2] == [
            f"{pair.a.text} · {pair.b.text}",
            signed(pair.value),
        ]
        assert page.locator("p[dir=auto]").first.inner_text() == f"a\u2003{A}"
        assert page.locator("p[dir=auto] span").first.evaluate("node => node.style.backgroundColor") != ""
    page = chromium.new_page()
    page.goto(cell(notebook(coffee).replace("sandbox='allow-scripts'", "sandbox=''")))
    shown = page.frame_locator("iframe").locator("main")
    assert shown.inner_text().strip() == repr(coffee), "a frame without scripts holds plain text"
    page.close()


def test_hostile_texts_stay_texts(minilm, cell, chromium):
    e = minilm.explain(HOSTILE_A, HOSTILE_B, level="word", method="occlusion")

    class Tags(HTMLParser):
        found: set[str] = set()  # noqa: RUF012

        def handle_starttag(self, tag: str, attrs: list) -> None:
            self.found |= {tag, *(name for name, _ in attrs)}

    Tags().feed(static(e))
    assert Tags.found == {*"div p small b span table caption tbody tr td bdi br".split(), "style", "dir"}
    Tags.found = set()
    Tags().feed(notebook(e))
    assert {"img", "svg", "onerror", "onload"}.isdisjoint(Tags.found)
    with visit(chromium, cell(notebook(e))) as page:
        page.frame_locator("iframe").locator(".pl-unit").first.wait_for()
        assert [frame.evaluate("window.hacked") for frame in page.frames] == [None, None]
    with visit(chromium, cell(static(e))) as page:
        assert page.evaluate("window.hacked") is None
        assert "<script>window.hacked=1</script>" in page.locator("p[dir=auto]").first.inner_text()


def texts(book) -> list[str]:
    """The texts that the cells put out, but for the gaps, which are rounding errors."""
    outputs = [each for cell in book.cells if cell.cell_type == "code" for each in cell.outputs]
    plain = [each.get("text") or each["data"]["text/plain"] for each in outputs if each.get("name") != "stderr"]
    return [re.sub(r"gap \S+|\d+ KB", "", text) for text in plain]


def test_the_tutorial_runs_and_gives_what_it_says(monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as in this process
    stored, book = nbformat.read(TUTORIAL, as_version=4), nbformat.read(TUTORIAL, as_version=4)
    NotebookClient(book, kernel_name="python3", timeout=300).execute()
    assert texts(book) == texts(stored)
    assert "<iframe" in stored.cells[3].outputs[0]["data"]["text/html"]
    assert TUTORIAL.stat().st_size < 300_000
