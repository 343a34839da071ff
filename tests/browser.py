"""Drives the installed Chromium with Playwright, and fails a test whose page logs errors or loads foreign addresses."""

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
    """Start the browser; skips the test, with what is missing, if there is none."""
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
    """Open a page. When it closes, assert that it requested no other origin and logged no warning and no error.

    Args:
        browser: from `launch`, or the fixture `chromium`.
        url: http://…, or file://…, in which case only the file itself may be requested.
        options: of Playwright's `new_page`: viewport, color_scheme, has_touch and so on.
    """
    page = browser.new_page(**options)
    requested: list[str] = []
    logged: list[str] = []
    page.on("request", lambda request: requested.append(request.url))
    page.on("console", lambda message: logged.append(f"{message.type}: {message.text}"))
    page.on("pageerror", lambda error: logged.append(f"exception: {error}"))
    try:
        page.goto(url)
        yield page
        page.wait_for_timeout(50)  # the last action may still log or request something
    finally:
        page.close()
    foreign = [address for address in requested if not _same_origin(address, url)]
    assert not foreign, f"requests to another origin: {foreign}"
    assert not [line for line in logged if line.startswith(("error", "warning", "exception"))], logged


def faults(page: Any) -> list[str]:
    """The serious and critical violations that axe-core finds: each with its rule and its first element."""
    if not AXE.is_file():
        pytest.skip("axe-core is not installed: make setup")
    if not page.evaluate("typeof axe === 'object'"):
        page.evaluate(AXE.read_text(encoding="utf-8") + ";0")
    # Details of rules that pass are not needed, and take time to collect.
    result = page.evaluate("axe.run({ resultTypes: ['violations'] }).then((result) => result.violations)")
    bad = [fault for fault in result if fault["impact"] in ("serious", "critical")]
    return [f"{fault['id']}: {fault['help']}: {fault['nodes'][0]['html']:.300}" for fault in bad]


def _same_origin(address: str, url: str) -> bool:
    inside = address.startswith(("data:", "blob:"))
    return inside or (address == url if url.startswith("file:") else urlsplit(address)[:2] == urlsplit(url)[:2])


def hold_second(page, address: str):
    """Hold all requests to an address but the first; return the list of their bodies, and what lets them go."""
    asked, held = [], []

    def route(request):
        asked.append(request.request.post_data_json)
        if len(asked) == 1:
            request.continue_()
        else:
            held.append(request)

    def release():
        for _ in range(1000 * (not held)):
            page.wait_for_timeout(10)
            if held:
                break
        held.pop().continue_()

    page.route(address, route)
    return asked, release
