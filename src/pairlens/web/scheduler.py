"""Where the server computes: a few calculations at a time, in turns, so that a long one holds up no short one.

A calculation runs in a thread with a lens of its own, made of the same weights. Only the one whose turn it is computes;
after every step (see pairlens.progress) the turn goes to whoever has had least of it, by weight. Short and long
calculations have places of their own, so that long ones never take all of them.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

from pairlens import progress
from pairlens.errors import ModelError
from pairlens.lens import Lens
from pairlens.web.limits import Limits, Refusal
from pairlens.web.turns import Turns

T = TypeVar("T")
WEIGHT = 4.0
"""How much more of the time a short calculation gets than a long one, while both are under way."""
STOPPING = "the server is stopping. Ask again when it is back."


def asks_for_roles(lens: Lens) -> bool:
    """Whether a model has no way of its own for texts without a role."""
    try:
        lens.encoder.layers()
    except ModelError:
        return True
    return False


@dataclass
class Job:
    """One request's calculation: how far it is, until when it may take, and whether it has been called off."""

    seconds: float
    fraction: float = 0.0
    called_off: Refusal | None = None
    computes: bool = False
    _start: float = field(default_factory=time.monotonic)

    @property
    def left(self) -> float:
        """Seconds until the deadline."""
        return self._start + self.seconds - time.monotonic()

    def check(self) -> None:
        """Raise if there is no point in going on."""
        if self.called_off is not None:
            raise self.called_off
        if self.left < 0:
            raise Refusal(
                504,
                f"this took longer than the {self.seconds:g} seconds that this server gives to a request. What helps: "
                "shorter texts, a coarser level, fewer passages, or method 'occlusion' or 'output'.",
            )


class Work:
    """The server's calculations.

    Args:
        lenses: the models, by the names that requests use.
        limits: how many at a time, and how long.
    """

    def __init__(self, lenses: Mapping[str, Lens], limits: Limits) -> None:
        self.lenses = dict(lenses)
        self.limits = limits
        self.draining = False
        self.running = self.waiting = self.finished = self.cancelled = self.refused = 0
        self._long = 0
        self._under_way: dict[int, Job] = {}
        self._lanes = {True: asyncio.Semaphore(limits.quick), False: asyncio.Semaphore(limits.slow)}
        self._threads = ThreadPoolExecutor(limits.quick + limits.slow, thread_name_prefix="pairlens")
        self._turns = Turns()
        self._idle: dict[str, list[Lens]] = {name: [] for name in lenses}

    def begin(self, carry_out: Callable[[Job], Coroutine[Any, Any, T]]) -> tuple[Job, asyncio.Task[T]]:
        """Take on a request, if there is room for one.

        Args:
            carry_out: what is to be done, which comes to `run` sooner or later. If the task is cancelled, it stops.
        """
        if self.draining:
            raise Refusal(503, STOPPING, retry=int(self.limits.grace))
        if self.waiting >= self.limits.waiting:
            self.refused += 1
            raise Refusal(503, f"as many requests are waiting as this server lets wait: {self.waiting}.", retry=5)
        job = Job(self.limits.seconds)
        self.waiting += 1
        self._under_way[id(job)] = job
        task = asyncio.create_task(carry_out(job))
        task.add_done_callback(lambda done: self._depart(job, done))
        return job, task

    def _depart(self, job: Job, done: asyncio.Task[Any]) -> None:
        if not job.computes:
            self.waiting -= 1
            del self._under_way[id(job)]
        if not done.cancelled():
            done.exception()  # whoever wants to know asks; nobody needs to

    async def run(self, job: Job, task: Callable[[], T], *, quick: bool) -> T:
        """Carry out a job's task in a thread when there is room for it; cancelled, it stops at its next step."""
        lane = self._lanes[quick]
        # Long ones may not fill the queue either.
        if not quick and lane.locked() and self._long >= max(1, self.limits.waiting // 2):
            self.refused += 1
            raise Refusal(503, f"as many long requests are waiting as this server lets wait: {self._long}.", retry=30)
        self._long += not quick
        try:
            async with asyncio.timeout(job.left):
                await lane.acquire()
        except TimeoutError:
            self.refused += 1
            raise Refusal(
                503, f"the server was busy for {job.seconds:g} seconds and never came to this request.", retry=10
            ) from None
        finally:
            self._long -= not quick
        job.computes = True
        self.waiting -= 1
        self.running += 1
        thread = asyncio.get_running_loop().run_in_executor(
            self._threads, self._compute, job, task, WEIGHT if quick else 1.0
        )
        # The place is free when the thread is, not when nobody waits for it any more.
        thread.add_done_callback(lambda done: self._finish(lane, job, done))
        try:
            return await asyncio.shield(thread)
        except asyncio.CancelledError:
            job.called_off = job.called_off or Refusal(499, "whoever asked has gone.")
            raise

    def _finish(self, lane: asyncio.Semaphore, job: Job, done: asyncio.Future[Any]) -> None:
        if isinstance(done.exception(), Refusal):
            self.cancelled += 1
        else:
            self.finished += 1
        self.running -= 1
        del self._under_way[id(job)]
        lane.release()

    def _compute(self, job: Job, task: Callable[[], T], weight: float) -> T:
        with self._turns.turn(weight) as offer:

            def step(fraction: float) -> None:
                job.fraction = max(job.fraction, fraction)
                offer()
                job.check()

            job.check()
            try:
                with progress.watch(step):
                    return task()
            except StopIteration as error:
                # No future can hold one: whoever waits would wait for ever.
                raise RuntimeError("a calculation stopped short.") from error

    @contextmanager
    def lens(self, model: str) -> Iterator[Lens]:
        """A lens on a model that nobody else uses meanwhile."""
        idle = self._idle[model]
        lens = idle.pop() if idle else self.lenses[model].fork()
        try:
            yield lens
        finally:
            idle.append(lens)

    # Stopping.

    async def drain(self) -> None:
        """Take no more, wait for what is under way, and call off what is left after the grace period."""
        self.draining = True
        end = time.monotonic() + self.limits.grace
        while self._under_way and time.monotonic() < end:
            await asyncio.sleep(0.05)
        for job in self._under_way.values():
            job.called_off = Refusal(503, STOPPING, retry=int(self.limits.grace))
