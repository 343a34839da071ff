"""How a calculation's result is sent: in one piece, or as lines that report progress, while the client is there."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from typing import TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pairlens.errors import PairlensError
from pairlens.lens import Lens
from pairlens.web import requests
from pairlens.web.limits import Refusal
from pairlens.web.scheduler import Calculation, Scheduler
from pairlens.web.schemas import Options
from pairlens.web.security import as_refusal

T = TypeVar("T")
B = TypeVar("B", bound=Options)
STREAM = "application/x-ndjson"
PRIVATE = {"Cache-Control": "no-store"}
INTERVAL = 0.1
"""Seconds between two lines of progress."""


async def respond(request: Request, scheduler: Scheduler, body: B, compute: Callable[[B, Lens], str]) -> Response:
    """The response to a request for a calculation, as JSON or as lines."""
    streamed = STREAM in request.headers.get("accept", "")
    try:
        # Before the queue: a request that cannot be used is told so even while the queue is full.
        model = requests.check(body, scheduler.lenses, scheduler.limits)
    except (Refusal, PairlensError) as error:
        if not streamed:
            raise
        # As a line: browsers log responses with an error status to the console.
        return Response(_error_line(error), headers=PRIVATE, media_type=STREAM)

    def calculate() -> str:
        with scheduler.lens(model) as lens:
            return compute(body, lens)

    is_quick = partial(requests.is_quick, body, scheduler.lenses[model], scheduler.limits)
    calculation = scheduler.start(calculate, is_quick)
    if streamed:
        return StreamingResponse(_lines(request, calculation), headers=PRIVATE, media_type=STREAM)
    return Response(await result(request, calculation), headers=PRIVATE, media_type="application/json")


async def result(request: Request, calculation: Calculation[T]) -> T:
    """The result of a calculation, which stops if the client disconnects."""
    async with _stopped_with(request, calculation):
        await asyncio.wait({calculation.task})
        return calculation.task.result()


async def _lines(request: Request, calculation: Calculation[str]) -> AsyncIterator[str]:
    """Lines of progress, then the result or the error."""
    sent = -1.0
    async with _stopped_with(request, calculation):
        while not calculation.task.done():
            if calculation.fraction > sent:
                sent = calculation.fraction
                yield f'{{"progress": {sent:.3f}}}\n'
            await asyncio.wait({calculation.task}, timeout=INTERVAL)
        yield _last_line(calculation.task)


def _last_line(task: asyncio.Task[str]) -> str:
    try:
        # JSON has line feeds between its fields only, never inside a string.
        return f'{{"result": {task.result().replace(chr(10), " ")}}}\n'
    except Exception as error:  # noqa: BLE001
        return _error_line(error)


def _error_line(error: Exception) -> str:
    refusal = as_refusal(error)
    return json.dumps({"error": refusal.message, "status": refusal.status}) + "\n"


@asynccontextmanager
async def _stopped_with(request: Request, calculation: Calculation) -> AsyncIterator[None]:
    """Stop the calculation when the client disconnects, and when this context ends."""
    gone = Refusal(499, "the client has gone.")

    async def stop_on_disconnect() -> None:
        while (await request.receive())["type"] != "http.disconnect":
            pass
        calculation.stop(gone)

    watcher = asyncio.create_task(stop_on_disconnect())
    try:
        yield
    finally:
        watcher.cancel()
        calculation.stop(gone)
