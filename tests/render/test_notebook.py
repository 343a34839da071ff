"""Explanations in notebooks: the picture where scripts run, the static version elsewhere; and the tutorial."""

from __future__ import annotations

import ast
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from browser import visit
from explanations import make
from hostile import HOSTILE_A, HOSTILE_B, A
from pairlens.render.notebook import notebook, static
from pairlens.render.text import equation, signed
from pictures import noisy, tokens

TUTORIAL = Path(__file__).parents[2] / "docs" / "tutorial.ipynb"


@pytest.fixture(scope="module")
def coffee():
    return tokens()


@pytest.fixture
def cell(tmp_path):
    """Writes a page with the given cells and returns its address."""

    def write(*outputs: str) -> str:
        path = tmp_path / "notebook.html"
        body = "".join(f"<p>In</p>{output}" for output in outputs)
        path.write_text(f"<!doctype html><meta charset=utf-8><title>x</title>{body}<p>end</p>", encoding="utf-8")
        return path.as_uri()

    return write


def sanitised(output: str) -> str:
    """The cell as GitHub and an untrusted notebook show it: without frames and scripts."""
    return re.sub(r"<iframe.*?</iframe>|<script.*?</script>", "", output, flags=re.DOTALL)


def test_ipython_gets_plain_text_and_html(coffee):
    from IPython.core.formatters import DisplayFormatter

    data, _ = DisplayFormatter().format(coffee)
    assert data == {"text/plain": repr(coffee), "text/html": notebook(coffee)}


def test_with_scripts_only_the_picture_is_shown_at_its_full_height(coffee, cell, chromium):
    with visit(chromium, cell(notebook(coffee), notebook(coffee)), viewport={"width": 900, "height": 900}) as page:
        for n in range(2):
            frame = page.frame_locator("iframe").nth(n)
            page.locator("iframe").nth(n).scroll_into_view_if_needed()
            frame.locator(".pl-unit").get_by_text("good", exact=True).hover()
            frame.locator(".pl-chosen").wait_for()
        page.wait_for_timeout(200)
        assert page.get_by_text(equation(coffee)).count() == 0, "the static version is removed"
        heights = page.locator("iframe").evaluate_all(
            "frames => frames.map((each) => [each.clientHeight, each.parentElement.clientHeight])"
        )
        for i, (height, outer) in enumerate(heights):
            needed = page.frames[i + 1].evaluate("document.documentElement.scrollHeight")
            assert needed <= height <= outer <= needed + 12


def test_frame_covers_the_static_version_if_only_the_frame_has_scripts(coffee, cell, chromium):
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


def test_without_frames_the_static_version_is_shown(coffee, cell, chromium):
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


def test_hostile_texts_become_no_markup(cell, chromium):
    e = make(HOSTILE_A, HOSTILE_B)

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


def test_first_the_static_version_lists_no_noise_and_numbers_only_words_that_change_the_score(guitar):
    assert "good</bdi> · <bdi>bad" not in static(noisy())
    same = [f"{score:.2f}" == f"{guitar.score:.2f}" for score in (*guitar.measured_a[1:-1], *guitar.measured_b[1:-1])]
    assert 0 < sum(same) < len(same)
    assert static(guitar).count("<sub") == len(same) - sum(same)
    assert "a word without a number hardly changes it" in static(guitar)


def without_noise(text: str) -> str:
    """The text without gaps and file sizes, which vary between machines."""
    return re.sub(r"gap \S+|\d+ KB", "", text)


def stored_texts(book) -> list[str]:
    """The plain text of every output in the notebook."""
    outputs = [output for cell in book.cells if cell.cell_type == "code" for output in cell.outputs]
    plain = [output.get("text") or output["data"]["text/plain"] for output in outputs if output.get("name") != "stderr"]
    return [without_noise(text) for text in plain]


def test_tutorial_cells_give_the_stored_outputs(minilm, monkeypatch, capsys):
    import nbformat

    monkeypatch.setattr("pairlens.Lens", lambda: minilm)
    book = nbformat.read(TUTORIAL, as_version=4)
    names: dict[str, Any] = {}
    texts: list[str] = []
    for cell in book.cells:
        if cell.cell_type == "code":
            *statements, last = ast.parse(cell.source).body
            exec(compile(ast.Module(statements, []), "cell", "exec"), names)
            if isinstance(last, ast.Expr):
                value = eval(compile(ast.Expression(last.value), "cell", "eval"), names)
                print("" if value is None else repr(value), end="")
            else:
                exec(compile(ast.Module([last], []), "cell", "exec"), names)
            texts += filter(None, [without_noise(capsys.readouterr().out)])
    assert texts == stored_texts(book)
    assert "<iframe" in book.cells[3].outputs[0]["data"]["text/html"]
    assert TUTORIAL.stat().st_size < 300_000


@pytest.mark.slow
def test_tutorial_runs_in_a_kernel_and_gives_the_stored_outputs(monkeypatch):
    import nbformat
    from nbclient import NotebookClient

    monkeypatch.setenv("OMP_NUM_THREADS", "1")  # as in this process
    stored, book = nbformat.read(TUTORIAL, as_version=4), nbformat.read(TUTORIAL, as_version=4)
    NotebookClient(book, kernel_name="python3", timeout=300).execute()
    assert stored_texts(book) == stored_texts(stored)
