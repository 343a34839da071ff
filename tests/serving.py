"""A real server for the tests: uvicorn on loopback, in a thread of this process."""

from __future__ import annotations

import asyncio
import json
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from pairlens import Explanation, Lens
from pairlens.web.app import build
from pairlens.web.limits import Limits
from pairlens.web.scheduler import Work
from pairlens.web.server import Server, listen

HOSTS = ("127.0.0.1", "localhost")
CLAUSES = "the tenant pays for small repairs, the landlord keeps the roof in order, and neither ends it before spring; "
LONG = (CLAUSES * 3, CLAUSES.replace("tenant", "renter").replace("landlord", "owner") * 3)
"""Two texts of some 65 tokens: half a minute of work, with fade, for one core."""


@dataclass(frozen=True)
class Running:
    """A server under way."""

    url: str
    work: Work
    loop: asyncio.AbstractEventLoop

    def post(self, path: str, body: Any = None, **options: Any) -> httpx.Response:
        return httpx.post(self.url + path, json=body, timeout=120, **options)

    def explain(self, a: str, b: str, **options: Any) -> dict[str, Any]:
        response = self.post("/api/explain", {"a": a, "b": b, **options})
        assert response.status_code == 200, response.text
        return response.json()

    def wait(self, reached: Callable[[Work], bool], seconds: float = 30) -> None:
        """Wait until the work is in some state."""
        end = time.monotonic() + seconds
        while not reached(self.work):
            assert time.monotonic() < end, vars(self.work)
            time.sleep(0.01)


@contextmanager
def serving(lenses: dict[str, Lens], **limits: Any) -> Iterator[Running]:
    listener = listen("127.0.0.1", 0)
    app, work = build(lenses, hosts=HOSTS, limits=Limits(**limits))
    server, loop = Server(app, work), asyncio.new_event_loop()
    thread = threading.Thread(target=lambda: loop.run_until_complete(server.serve([listener])), daemon=True)
    thread.start()
    while not server.started:
        time.sleep(0.01)
    try:
        yield Running(f"http://127.0.0.1:{listener.getsockname()[1]}", work, loop)
    finally:
        server.should_exit = True
        for job in list(work._under_way.values()):
            job.seconds = 0
        thread.join(30)
        assert not thread.is_alive()
        loop.close()


@contextmanager
def busy(server: Running, count: int = 1, **options: Any) -> Iterator[list[httpx.Response]]:
    """Within this context that many long requests are under way; what is answered meanwhile is in the list."""
    answers: list[httpx.Response] = []
    body = {"a": LONG[0], "b": LONG[1], "method": "fade", "level": "token", **options}
    clients = [httpx.Client(timeout=120) for _ in range(count)]

    def ask(client: httpx.Client) -> None:
        with suppress(httpx.HTTPError):
            answers.append(client.post(f"{server.url}/api/explain", json=body))

    threads = [threading.Thread(target=ask, args=(client,)) for client in clients]
    before = server.work.running + server.work.waiting
    for started, thread in enumerate(threads, start=before + 1):
        thread.start()
        server.wait(lambda work, started=started: work.running + work.waiting >= started and work.running > 0)
    try:
        yield answers
    finally:
        for job in list(server.work._under_way.values()):
            job.seconds = 0
        for thread, client in zip(threads, clients, strict=True):
            thread.join(30)
            client.close()


def load(text: str, folder: Path) -> Explanation:
    """The answer as a file, read by the library."""
    path = folder / "answer.json"
    path.write_text(text, encoding="utf-8")
    return Explanation.load(path)


def lines(response: httpx.Response) -> list[dict[str, Any]]:
    return [json.loads(line) for line in response.text.splitlines()]
