"""Runs the server's calculations in threads: a few at a time, in fair turns, with a bounded queue.

Only one calculation computes at any moment. At the first step (see `pairlens.progress`) after a time slice it goes to
the back of the line, so a long calculation delays a short one by at most a slice and a step per turn. Short and long
calculations have separate places: long ones never take them all.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from typing import Generic, TypeVar

from pairlens import progress
from pairlens.lens import Lens
from pairlens.web.limits import Limits, Refusal

T = TypeVar("T")
SLICE = 0.05
"""Seconds that a turn lasts at least: handing it over after every short step would cost more than the step."""


class FairLock:
    """A lock that serves threads in the order in which they ask for it, which `threading.Lock` does not promise."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._next = 0
        self._serving = 0

    @property
    def waiting(self) -> int:
        """How many threads wait for the lock."""
        return max(0, self._next - self._serving - 1)

    def __enter__(self) -> None:
        with self._changed:
            ticket = self._next
            self._next += 1
            self._changed.wait_for(lambda: self._serving == ticket)

    def __exit__(self, *error: object) -> None:
        with self._changed:
            self._serving += 1
            self._changed.notify_all()

    def pass_on(self) -> None:
        """Let every thread that waits now go first."""
        self.__exit__()
        self.__enter__()


class Calculation(Generic[T]):
    """One request's calculation.

    Args:
        seconds: the time it may take, the wait included.

    Attributes:
        task: ends with the result, or raises what the calculation raised.
        fraction: the part of the work that is done, from 0 to 1.
        computing: whether it has left the queue.
    """

    task: asyncio.Task[T]

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self.fraction = 0.0
        self.computing = False
        self.stopped: asyncio.Future[Refusal] = asyncio.get_running_loop().create_future()
        self._deadline = time.monotonic() + seconds

    @property
    def seconds_left(self) -> float:
        """Seconds until the deadline."""
        return self._deadline - time.monotonic()

    def stop(self, reason: Refusal) -> None:
        """End with this reason: at once if it waits, else after the current step. Call it in the event loop."""
        if not self.stopped.done():
            self.stopped.set_result(reason)

    def check(self) -> None:
        """Raise if it was stopped or is past its deadline."""
        if self.stopped.done():
            raise self.stopped.result()
        if self.seconds_left < 0:
            raise Refusal(
                504,
                f"this took longer than the {self.seconds:g} seconds that this server gives to a request. What helps: "
                "shorter texts, a coarser level, fewer passages, or method 'occlusion' or 'output'.",
            )


class Scheduler:
    """The server's calculations.

    Args:
        lenses: the models, by the names that requests use.
        limits: how many calculations may run and wait, and for how long.

    Attributes:
        finished: calculations that computed to their end.
        cancelled: calculations that were stopped while they computed.
        refused: requests for which there was no room.
        long_waiting: long calculations that wait for a place.
        turns: held by the calculation that computes now.
    """

    def __init__(self, lenses: Mapping[str, Lens], limits: Limits) -> None:
        self.lenses = dict(lenses)
        self.limits = limits
        self.draining = False
        self.finished = self.cancelled = self.refused = self.long_waiting = 0
        self._active: set[Calculation] = set()
        self._quick, self._slow = asyncio.Semaphore(limits.quick), asyncio.Semaphore(limits.slow)
        self._threads = ThreadPoolExecutor(limits.quick + limits.slow, thread_name_prefix="pairlens")
        self.turns = FairLock()
        self._idle: dict[str, list[Lens]] = {name: [] for name in lenses}

    @property
    def running(self) -> int:
        """How many calculations compute."""
        return sum(calculation.computing for calculation in self._active)

    @property
    def waiting(self) -> int:
        """How many calculations wait for a place."""
        return len(self._active) - self.running

    def start(self, compute: Callable[[], T], is_quick: Callable[[], bool] = lambda: True) -> Calculation[T]:
        """Begin a calculation, or refuse it where the queue is full.

        Args:
            compute: gives the result; runs in a thread.
            is_quick: whether the calculation is short; runs in a thread first, and may raise.
        """
        if self.draining:
            raise self._stopping()
        if self.waiting >= self.limits.waiting:
            raise self._full(f"as many requests are waiting as this server lets wait: {self.waiting}.", retry=5)
        calculation: Calculation[T] = Calculation(self.limits.seconds)
        calculation.task = asyncio.create_task(self._run(calculation, compute, is_quick))
        self._active.add(calculation)
        calculation.task.add_done_callback(lambda task: self._forget(calculation, task))
        return calculation

    async def drain(self) -> None:
        """Accept no more, wait for the active calculations, and stop what is left after the grace period."""
        self.draining = True
        if self._active:
            await asyncio.wait([calculation.task for calculation in self._active], timeout=self.limits.grace)
        self.stop_all(self._stopping())

    def stop_all(self, reason: Refusal) -> None:
        """Stop every calculation. Call it in the event loop."""
        for calculation in self._active:
            calculation.stop(reason)

    @contextmanager
    def lens(self, model: str) -> Iterator[Lens]:
        """A lens on a model, for one calculation at a time; its forks share the weights."""
        idle = self._idle[model]
        lens = idle.pop() if idle else self.lenses[model].fork()
        try:
            yield lens
        finally:
            idle.append(lens)

    async def _run(self, calculation: Calculation[T], compute: Callable[[], T], is_quick: Callable[[], bool]) -> T:
        quick = await asyncio.to_thread(is_quick)
        places = self._quick if quick else self._slow
        await self._wait(calculation, places, quick)
        calculation.computing = True
        try:
            loop = asyncio.get_running_loop()
            result = await loop.run_in_executor(self._threads, self._compute, calculation, compute)
        except Refusal:
            self.cancelled += 1
            raise
        except Exception:
            self.finished += 1
            raise
        finally:
            places.release()
        self.finished += 1
        return result

    async def _wait(self, calculation: Calculation, places: asyncio.Semaphore, quick: bool) -> None:
        """Take a place as soon as one is free, unless the calculation is stopped first."""
        # Long calculations may fill half of the queue at most.
        if not quick and places.locked() and self.long_waiting >= max(1, self.limits.waiting // 2):
            message = f"as many long requests are waiting as this server lets wait: {self.long_waiting}."
            raise self._full(message, retry=30)
        self.long_waiting += not quick
        place = asyncio.create_task(places.acquire())
        await asyncio.wait(
            {place, calculation.stopped}, timeout=calculation.seconds_left, return_when=asyncio.FIRST_COMPLETED
        )
        self.long_waiting -= not quick
        if not place.done():
            place.cancel()
            if calculation.stopped.done():
                raise calculation.stopped.result()
            message = f"the server was busy for {calculation.seconds:g} seconds and never came to this request."
            raise self._full(message, retry=10)

    def _compute(self, calculation: Calculation[T], compute: Callable[[], T]) -> T:
        """Compute in this thread, step by step in turn with the other calculations."""

        def step(fraction: float) -> None:
            nonlocal began
            calculation.fraction = max(calculation.fraction, fraction)
            if time.monotonic() - began >= SLICE:
                self.turns.pass_on()
                began = time.monotonic()
            calculation.check()

        with self.turns:
            began = time.monotonic()
            calculation.check()
            try:
                with progress.watch(step):
                    return compute()
            except StopIteration as error:
                # A future cannot hold a StopIteration: the request would wait forever.
                raise RuntimeError("a calculation stopped short.") from error

    def _forget(self, calculation: Calculation, task: asyncio.Task) -> None:
        self._active.discard(calculation)
        if not task.cancelled():
            task.exception()  # marks the exception as seen: where the client has gone, nothing else looks at it

    def _full(self, message: str, retry: int) -> Refusal:
        self.refused += 1
        return Refusal(503, message, retry=retry)

    def _stopping(self) -> Refusal:
        message = "the server is stopping. Ask again when it is back."
        return Refusal(503, message, retry=int(self.limits.grace))
