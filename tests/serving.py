"""A real server for the tests: uvicorn on loopback, in a thread of this process."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any, TypeVar

import httpx

from pairlens import Explanation, Lens
from pairlens.web import Limits, Server, build, listen, requests
from pairlens.web.limits import Refusal
from pairlens.web.scheduler import Scheduler

HOSTS = ("127.0.0.1", "localhost")
TIMEOUT = 300
"""Seconds after which a test gives up. No test passes or fails by how long something takes."""
T = TypeVar("T")


@dataclass(frozen=True)
class Running:
    """A server under way."""

    url: str
    server: Server
    scheduler: Scheduler
    loop: asyncio.AbstractEventLoop

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=TIMEOUT, **options)

    def explain(self, a: str, b: str, **options: Any) -> dict[str, Any]:
        response = self.post("/api/explain", {"a": a, "b": b, **options})
        assert response.status_code == 200, response.text
        return response.json()

    def call(self, function: Callable[[], T]) -> T:
        """Call a function in the server's event loop."""

        async def called() -> T:
            return function()

        return asyncio.run_coroutine_threadsafe(called(), self.loop).result(TIMEOUT)

    def wait(self, reached: Callable[[Scheduler], bool]) -> None:
        """Wait until the scheduler is in some state."""
        end = time.monotonic() + TIMEOUT
        while not self.call(lambda: reached(self.scheduler)):
            assert time.monotonic() < end, vars(self.scheduler)
            time.sleep(0.01)

    def wait_until_idle(self) -> None:
        """Wait until no calculation runs or waits."""
        self.wait(lambda scheduler: scheduler.running == scheduler.waiting == 0)

    def stop_all(self) -> None:
        """Stop every calculation."""
        self.call(lambda: self.scheduler.stop_all(Refusal(503, "the test is over.")))


@contextmanager
def serving(lenses: dict[str, Lens], **limits: Any) -> Iterator[Running]:
    """A server of these lenses. Its time limit is out of reach unless a test sets one."""
    listener = listen("127.0.0.1", 0)
    given: dict[str, Any] = {"seconds": 2.0 * TIMEOUT, **limits}
    app, scheduler = build(lenses, hosts=HOSTS, limits=Limits(**given))
    server, loop = Server(app, scheduler), asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve([listener])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    running = Running(f"http://127.0.0.1:{listener.getsockname()[1]}", server, scheduler, loop)
    try:
        yield running
    finally:
        if thread.is_alive():
            running.stop_all()
            server.should_exit = True
        thread.join(TIMEOUT)
        assert not thread.is_alive()
        loop.close()


@contextmanager
def held(server: Running, count: int = 1, *, quick: bool = False) -> Iterator[Callable[[], None]]:
    """Within this context `count` calculations run or wait, and none makes a step. The function given ends it early."""
    release, scheduler = threading.Event(), server.scheduler
    before = server.call(lambda: scheduler.running + scheduler.waiting)
    for started in range(1, count + 1):
        server.call(lambda: scheduler.start(release.wait, lambda: quick))
        server.wait(lambda scheduler, total=before + started: scheduler.running + scheduler.waiting == total)
        server.wait(lambda scheduler: scheduler.running > 0)
    try:
        yield release.set
    finally:
        release.set()


def explain_endlessly(body: Any, lens: Lens) -> str:
    """Explain a pair again and again, until the calculation is stopped: in place of `requests.explain`."""
    while True:
        _EXPLAIN(body, lens)


_EXPLAIN = requests.explain


def send(server: Running, path: str, body: Any, **headers: str) -> HTTPConnection:
    """Send a request without waiting for its response."""
    connection = HTTPConnection(server.url.removeprefix("http://"), timeout=TIMEOUT)
    connection.request("POST", path, json.dumps(body), {"Content-Type": "application/json", **headers})
    return connection


def load(text: str, folder: Path) -> Explanation:
    """The response as a file, read by the library."""
    path = folder / "answer.json"
    path.write_text(text, encoding="utf-8")
    return Explanation.load(path)


def lines(response: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in response.text.splitlines()]
