"""Who computes next: one at a time, in steps, whoever has had least."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager


class Turns:
    """One calculation at a time, in steps; the next step is whoever's has had least time so far."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._spent: dict[int, float] = {}
        self._waiting: set[int] = set()
        self._holder: int | None = None
        self._since = 0.0
        self._count = 0

    @contextmanager
    def turn(self, weight: float = 1.0) -> Iterator[Callable[[], None]]:
        """Within this context it is our turn; the function given lets others go first who have had less.

        Args:
            weight: how large our share is beside others'.
        """
        with self._changed:
            self._count += 1
            me = self._count
            # As if we had been there all along: a newcomer neither waits for the others nor holds them up.
            self._spent[me] = min(self._spent.values(), default=0.0)
            self._take(me)

        def offer() -> None:
            with self._changed:
                self._leave(me, weight)
                self._take(me)

        try:
            yield offer
        finally:
            with self._changed:
                self._leave(me, weight)
                del self._spent[me]

    def _take(self, me: int) -> None:
        self._waiting.add(me)
        self._changed.wait_for(lambda: self._holder is None and me == min(self._waiting, key=self._order))
        self._waiting.remove(me)
        self._holder, self._since = me, time.monotonic()

    def _leave(self, me: int, weight: float) -> None:
        self._spent[me] += (time.monotonic() - self._since) / weight
        self._holder = None
        self._changed.notify_all()

    def _order(self, one: int) -> tuple[float, int]:
        return self._spent[one], one
