"""Makes what the documentation shows: one function for each image, and the outputs of the tutorial.

.venv/bin/python docs/make_images.py            # everything
.venv/bin/python docs/make_images.py picture    # one of them
"""

from __future__ import annotations

import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parent
IMAGES = DOCS / "images"
A, B = "The coffee here is not good.", "This coffee is bad."
QUESTION = "How long does it take to get my money back?"
PASSAGE = "Refunds reach your account within five days of the return, and shipping costs are never paid back."
QUERY = "How long does it take to get my money back?"
PASSAGES = {
    "refunds": "Refunds reach your account within five days of the return.",
    "money orders": "Money orders can be bought at any post office.",
    "hours": "Our shop opens at nine and closes at six.",
}
REVIEWS = (
    "The room was quiet and clean. Breakfast was poor: the coffee was cold and the bread was old. We would "
    "still come back for the view.",
    "A lovely café by the station. They roast their own coffee and bake every morning. The staff know their "
    "regulars by name.",
    "We waited an hour for our food. When it came, the soup was cold. Nobody apologised.",
    "The train left on time and arrived early. The seats were comfortable, but there was nothing to eat or "
    "drink on board.",
    "Good espresso, friendly people, fair prices. There is no better place in town.",
    "The hotel is far from the beach. The lift was broken for three days, and the pool was closed.",
    "Their tea is excellent. I did not like the cake, which was dry.",
)
SOUGHT = "a place that serves bad coffee"
PAIRS = {
    "paraphrase": ("A man is playing a guitar.", "Someone plays the guitar."),
    "negation": ("A man is playing a guitar.", "Nobody is playing a guitar."),
    "antonym": ("The film was great.", "The movie was terrible."),
    "other topic": ("The film was great.", "Interest rates rose again."),
}


def picture() -> None:
    """The interactive picture of a saved file, with the pointer at a word."""
    from pairlens import Lens

    with tempfile.TemporaryDirectory() as folder, browser() as chromium:
        address = Lens().explain(A, B, level="word").save(Path(folder) / "why.html").as_uri()
        page = chromium.new_page(viewport={"width": 1240, "height": 880}, device_scale_factor=1.5)
        page.goto(address)
        page.get_by_role("button", name="good", exact=True).hover()
        page.wait_for_selector(".pl-lit")
        page.screenshot(path=IMAGES / "picture.png", full_page=True)
    compress(IMAGES / "picture.png")


def page() -> None:
    """The page of `pairlens serve`, with a pair that its examples have."""
    import subprocess

    command = [sys.executable, "-m", "pairlens.cli", "serve", "--port", "0", "--no-open"]
    with subprocess.Popen(command, stderr=subprocess.PIPE, text=True) as server, browser() as chromium:
        try:
            assert server.stderr is not None
            said = next(line for line in server.stderr if " at http" in line)
            shown = chromium.new_page(viewport={"width": 1240, "height": 1000}, device_scale_factor=1.5)
            shown.goto(said.split()[3])
            shown.get_by_role("button", name="an antonym").click()
            shown.wait_for_timeout(400)
            shown.wait_for_selector("#picture[aria-busy=false] .pl-panel")
            shown.mouse.move(5, 5)
            shown.screenshot(path=IMAGES / "page.png")
        finally:
            server.terminate()
    compress(IMAGES / "page.png")


def live() -> None:
    """The pictures that the pages embed."""
    from pairlens import Lens
    from pairlens.render import html

    lens, folder = Lens(), DOCS / "live"
    folder.mkdir(exist_ok=True)
    lens.explain(A, B, level="word").save(folder / "coffee.html")
    layers = {f"layer {n}": lens.explain(A, B, level="word", layer=n) for n in range(lens.layers + 1)}
    html.save(layers, folder / "layers.html", title="One pair at every layer")
    hits = {name: lens.explain(QUERY, text, level="word") for name, text in PASSAGES.items()}
    html.save(hits, folder / "hits.html", arrange="list", title=QUERY)


def heatmap() -> None:
    """The heat map of the pair that the documentation begins with."""
    from pairlens import Lens

    Lens().explain(A, B, level="word").save(IMAGES / "heatmap.svg")


def links() -> None:
    """Both texts with curves between them: a question and a passage that answers it."""
    from pairlens import Lens
    from pairlens.render import plot

    e = Lens().explain(QUESTION, PASSAGE, level="word")
    plot.save(plot.links(e, width=6.9, top=8)[0], IMAGES / "links.svg")


def layers() -> None:
    """One pair over the layers of the model."""
    from pairlens import Lens
    from pairlens.render import plot

    lens = Lens()
    layers = {n: lens.explain(A, B, level="word", layer=n) for n in range(7)}
    plot.save(plot.layers(layers, columns=4, numbers=False)[0], IMAGES / "layers.svg")


def grid() -> None:
    """Four pairs on one scale."""
    from pairlens import Lens
    from pairlens.render import plot

    lens = Lens()
    pairs = {name: lens.explain(a, b, level="word") for name, (a, b) in PAIRS.items()}
    plot.save(plot.grid(pairs, columns=2)[0], IMAGES / "grid.svg")


def terminal() -> None:
    """What `pairlens explain` prints."""
    import io

    from rich.console import Console

    from pairlens import Lens
    from pairlens.render.terminal import view

    console = Console(record=True, width=76, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    console.print(view(Lens().explain(A, B, level="word"), width=76))
    write_terminal(console, "terminal.svg", f'pairlens explain "{A}" "{B}"')


def search() -> None:
    """What `pairlens search` prints, for the reviews of docs/corpus.md."""
    import io

    from rich.console import Console

    from pairlens.cli.search import listing

    console = Console(record=True, width=92, file=io.StringIO(), force_terminal=True, color_system="truecolor")
    with reviews() as index:
        for hit in index.search(SOUGHT, 3):
            console.print(*listing(hit, 92), "", sep="\n")
    write_terminal(console, "search.svg", f'pairlens search index "{SOUGHT}" -k 3')


def hits() -> None:
    """What `pairlens search --save` writes, with the pointer at a word."""
    from pairlens.render import html

    with reviews() as index, tempfile.TemporaryDirectory() as folder, browser() as chromium:
        path = Path(folder) / "hits.html"
        html.save({hit.id: hit.explanation for hit in index.search(SOUGHT, 3)}, path, arrange="list", title=SOUGHT)
        page = chromium.new_page(viewport={"width": 1240, "height": 870}, device_scale_factor=1.5)
        page.goto(path.as_uri())
        page.get_by_role("button", name="coffee", exact=True).first.hover()
        page.wait_for_selector(".pl-lit")
        page.screenshot(path=IMAGES / "hits.png")
    compress(IMAGES / "hits.png")


@contextmanager
def reviews() -> Iterator[Any]:
    """An index of the reviews of docs/corpus.md."""
    from pairlens import Lens
    from pairlens.corpus import Index

    with tempfile.TemporaryDirectory() as folder:
        index = Index.create(Path(folder) / "index", Lens())
        index.add({"id": f"r{n}", "text": text} for n, text in enumerate(REVIEWS, 1))
        yield index


def write_terminal(console: Any, name: str, title: str) -> None:
    """Write what a recording console has printed; the picture brings no fonts and loads none."""
    import re

    from rich._export_format import CONSOLE_SVG_FORMAT

    style = re.sub(r"@font-face \{\{.*?\}\}\s*", "", CONSOLE_SVG_FORMAT, flags=re.DOTALL)
    style = style.replace("Fira Code, monospace", "Menlo, Consolas, 'DejaVu Sans Mono', 'Liberation Mono', monospace")
    svg = console.export_svg(title=title, code_format=style, unique_id="pairlens")
    (IMAGES / name).write_text(svg, encoding="utf-8")


def tutorial() -> None:
    """The outputs of the tutorial, as a run of it gives them."""
    import nbformat
    from nbclient import NotebookClient

    path = DOCS / "tutorial.ipynb"
    book = nbformat.read(path, as_version=4)
    NotebookClient(book, kernel_name="python3", timeout=300).execute()
    for cell in book.cells:
        if cell.cell_type == "code":
            cell.metadata.pop("execution", None)  # when it ran
            # A progress bar is worth watching, not keeping.
            cell.outputs = [output for output in cell.outputs if output.get("name") != "stderr"]
    nbformat.write(book, path)


@contextmanager
def browser() -> Iterator[Any]:
    """The Chromium that is installed."""
    from playwright.sync_api import sync_playwright

    with sync_playwright() as playwright:
        program = shutil.which("chromium")
        launched = playwright.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield launched
        finally:
            launched.close()


def compress(path: Path) -> None:
    """Write a screenshot again with as many colours as it needs."""
    from PIL import Image

    Image.open(path).convert("RGB").quantize(256, dither=Image.Dither.NONE).save(path, optimize=True)


if __name__ == "__main__":
    for name in sys.argv[1:] or "picture page live heatmap links layers grid terminal search hits tutorial".split():
        globals()[name]()
