"""How far a long calculation is: the engine reports its steps, and whoever watches is called and may stop it.

Nothing is handed through the engine. `watch` says who listens, in this thread and no other; `share` says which part of
the whole the reports inside it stand for; `Steps` counts. When nobody watches, nothing is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Callback = Callable[[float], None]


@dataclass(frozen=True)
class _Listener:
    """Who is called, and the part of the whole that is under way."""

    callback: Callback
    low: float = 0.0
    high: float = 1.0

    def at(self, done: float) -> float:
        """How much of the whole is done when so much of the part is; at its ends exactly the ends."""
        return self.low * (1 - done) + self.high * done


_LISTENER: ContextVar[_Listener | None] = ContextVar("listener", default=None)


@contextmanager
def watch(callback: Callback) -> Iterator[None]:
    """Within this context, call `callback` after every step with how much is done, from 0 to 1.

    Steps are short: well under a second on ordinary texts. The callback may raise, which stops the work there: what was
    under way is given up, and lens and model are as they were. `explain_many` and `decompose` go from 0 to 1 once for
    every window of texts.

    Example:
        >>> from pairlens import Lens
        >>> seen = []
        >>> with watch(seen.append):
        ...     e = Lens().explain("A cat.", "A dog.", level="word")
        >>> len(seen) > 2, seen == sorted(seen), seen[-1]
        (True, True, 1.0)
    """
    token = _LISTENER.set(_Listener(callback))
    try:
        yield
    finally:
        _LISTENER.reset(token)


def watched() -> bool:
    """Whether anybody watches, so that long steps had better be cut short."""
    return _LISTENER.get() is not None


@contextmanager
def share(low: float, high: float) -> Iterator[None]:
    """Within this context, reports stand for the part from `low` to `high` of what surrounds it; it ends at `high`."""
    outer = _LISTENER.get()
    if outer is None:
        yield
        return
    token = _LISTENER.set(_Listener(outer.callback, outer.at(low), outer.at(high)))
    try:
        yield
        report(1.0)
    finally:
        _LISTENER.reset(token)


@contextmanager
def unseen() -> Iterator[None]:
    """Within this context nothing is reported: for what is not part of the whole, or may not be all of it."""
    token = _LISTENER.set(None)
    try:
        yield
    finally:
        _LISTENER.reset(token)


def report(done: float) -> None:
    """Say that so much is done of the part that is under way, from 0 to 1."""
    listener = _LISTENER.get()
    if listener is not None:
        listener.callback(listener.at(min(done, 1.0)))


class Steps:
    """Counts work of a known size, and reports each step.

    Args:
        total: the size of the whole, in any unit.
    """

    def __init__(self, total: float) -> None:
        self._total = total
        self._done = 0.0

    def advance(self, size: float = 1) -> None:
        """So much more is done."""
        self._done += float(size)
        report(self._done / self._total if self._total else 1.0)
