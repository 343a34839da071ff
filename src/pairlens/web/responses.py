"""How a calculation's answer is sent, in one piece or as lines that tell how far it is, while somebody waits for it."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, TypeVar

from starlette.requests import Request
from starlette.responses import Response, StreamingResponse

from pairlens.errors import PairlensError
from pairlens.web import requests
from pairlens.web.limits import Refusal
from pairlens.web.scheduler import Job, Work
from pairlens.web.security import fault

T = TypeVar("T")
STREAM = "application/x-ndjson"
PRIVATE = {"Cache-Control": "no-store"}
INTERVAL = 0.1
"""Seconds between two lines of progress."""


async def answer(request: Request, work: Work, task: requests.Task) -> Response:
    """Carry out a task for a request, as JSON or as lines."""
    streamed = STREAM in request.headers.get("accept", "")
    if not streamed:
        requests.check(task, work)  # whether there is room or not
    job, calculation = work.begin(lambda job: _carry_out(work, job, task))
    if streamed:
        return StreamingResponse(_lines(request, job, calculation), headers=PRIVATE, media_type=STREAM)
    return Response(await finished(request, calculation), headers=PRIVATE, media_type="application/json")


async def finished(request: Request, calculation: asyncio.Task[T]) -> T:
    """What a calculation gives, which stops if whoever asked goes away."""
    async with _attended(request, calculation) as gone:
        await asyncio.wait({calculation, gone}, return_when=asyncio.FIRST_COMPLETED)
        if not calculation.done():
            raise Refusal(499, "whoever asked has gone.")
        return calculation.result()


async def _carry_out(work: Work, job: Job, task: requests.Task) -> str:
    model = requests.check(task, work)
    quick = await asyncio.to_thread(requests.weigh, task, work.lenses[model], work.limits)

    def compute() -> str:
        with work.lens(model) as lens:
            return task.compute(lens)

    return await work.run(job, compute, quick=quick)


async def _lines(request: Request, job: Job, calculation: asyncio.Task[str]) -> AsyncIterator[str]:
    """Progress while it lasts, and the result or the error at the end."""
    shown = -1.0
    async with _attended(request, calculation) as gone:
        while not calculation.done() and not gone.done():
            if job.fraction > shown:
                shown = job.fraction
                yield f'{{"progress": {shown:.3f}}}\n'
            await asyncio.wait({calculation, gone}, timeout=INTERVAL, return_when=asyncio.FIRST_COMPLETED)
        if calculation.done():
            yield _last(calculation)


def _last(calculation: asyncio.Task[str]) -> str:
    try:
        # JSON has line feeds between its fields only, never inside a string.
        return f'{{"result": {calculation.result().replace(chr(10), " ")}}}\n'
    except Refusal as refusal:
        status, message = refusal.status, refusal.message
    except PairlensError as error:
        status, message = 422, str(error)
    except Exception as error:  # noqa: BLE001
        status, message = 500, fault(error).message
    return json.dumps({"error": message, "status": status}) + "\n"


@asynccontextmanager
async def _attended(request: Request, calculation: asyncio.Task[Any]) -> AsyncIterator[asyncio.Task[None]]:
    """A task that is done when whoever asked has gone. At the end neither it nor the calculation goes on."""
    gone = asyncio.create_task(_gone(request))
    try:
        yield gone
    finally:
        gone.cancel()
        calculation.cancel()


async def _gone(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass
