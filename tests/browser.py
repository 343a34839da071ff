"""A real Chromium for the tests: the system's, driven by Playwright. Every page is watched while it is open."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlsplit

import pytest

FLAGS = """--no-sandbox --disable-gpu --disable-background-networking --disable-component-update --disable-sync
--no-first-run""".split()
AXE = Path(__file__).parents[1] / "node_modules" / "axe-core" / "axe.min.js"


@contextmanager
def launch() -> Iterator[Any]:
    """Playwright's browser, or a skip that says what is missing."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        pytest.skip("there is no Chromium: as root on Debian `make setup` installs it, elsewhere put it on the PATH")
    api = pytest.importorskip("playwright.sync_api", reason="Playwright is not installed: make setup")
    with api.sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=program, headless=True, args=FLAGS)
        try:
            yield browser
        finally:
            browser.close()


@contextmanager
def visit(browser: Any, url: str, **options: Any) -> Iterator[Any]:
    """A page at a URL. When it is closed it must have asked nothing of another place and complained about nothing.

    Args:
        browser: what `launch` gives, or the fixture `chromium`.
        url: http://…, or file://…, in which case nothing but the file itself may be asked for.
        options: of Playwright's `new_page`: viewport, color_scheme, has_touch and so on.
    """
    page = browser.new_page(**options)
    asked: list[str] = []
    said: list[str] = []
    page.on("request", lambda request: asked.append(request.url))
    page.on("console", lambda message: said.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: said.append(f"exception: {error}"))
    try:
        page.goto(url)
        yield page
        page.wait_for_timeout(50)  # for what the last action may have begun
    finally:
        page.close()
    foreign = [each for each in asked if not _own(each, url)]
    assert not foreign, f"requests to another place: {foreign}"
    assert not [line for line in said if line.startswith(("error", "warning", "exception"))], said


def faults(page: Any) -> list[str]:
    """What axe-core finds serious or critical on a page: the rule and the first element it is about."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: make setup")
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
    found = page.evaluate("axe.run().then((result) => result.violations)")
    bad = [fault for fault in found if fault["impact"] in ("serious", "critical")]
    return [f"{fault['id']}: {fault['help']}: {fault['nodes'][0]['html']:.300}" for fault in bad]


def _own(asked: str, url: str) -> bool:
    inside = asked.startswith(("data:", "blob:"))
    return inside or (asked == url if url.startswith("file:") else urlsplit(asked)[:2] == urlsplit(url)[:2])
