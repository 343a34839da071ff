"""Progress of long calculations: the engine reports its steps, and a callback sees them and may stop the calculation.

No argument is passed through the engine. `watch` sets the callback for this thread, `share` says which part of the
whole the reports inside it cover, and `Steps` counts. Without a callback nothing is called.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

Callback = Callable[[float], None]


@dataclass(frozen=True)
class _Watcher:
    """A callback, and the part of the whole that is under way."""

    callback: Callback
    low: float = 0.0
    high: float = 1.0

    def whole(self, done: float) -> float:
        """The fraction of the whole that is done when `done` of the part is; exact at both ends of the part."""
        return self.low * (1 - done) + self.high * done


_WATCHER: ContextVar[_Watcher | None] = ContextVar("watcher", default=None)


def watch(callback: Callback) -> AbstractContextManager[None]:
    """Within this context, call `callback` after every step with the fraction that is done, from 0 to 1.

    Steps are short: well under a second on ordinary texts. If the callback raises, the calculation stops there, and the
    lens and its model are as they were before. `explain_many` and `decompose` go from 0 to 1 once for every window of
    texts.

    Example:
        >>> from pairlens import Lens
        >>> seen = []
        >>> with watch(seen.append):
        ...     e = Lens().explain("A cat.", "A dog.", level="word")
        >>> len(seen) > 2, seen == sorted(seen), seen[-1]
        (True, True, 1.0)
    """
    return _set(_Watcher(callback))


def watched() -> bool:
    """Whether there is a callback: then long steps are cut into shorter ones."""
    return _WATCHER.get() is not None


def unseen() -> AbstractContextManager[None]:
    """Within this context nothing is reported: for work that is not part of the whole, or may not be all of it."""
    return _set(None)


@contextmanager
def share(low: float, high: float) -> Iterator[None]:
    """Within this context, reports cover the part from `low` to `high` of the surrounding part; ends with `high`."""
    outer = _WATCHER.get()
    if outer is None:
        yield
        return
    with _set(_Watcher(outer.callback, outer.whole(low), outer.whole(high))):
        yield
        report(1.0)


def report(done: float) -> None:
    """Report the fraction of the current part that is done, from 0 to 1."""
    watcher = _WATCHER.get()
    if watcher is not None:
        watcher.callback(watcher.whole(min(done, 1.0)))


class Steps:
    """Counts work of a known size, and reports each step.

    Args:
        total: the size of the whole, in any unit.
    """

    def __init__(self, total: float) -> None:
        self._total = total
        self._done = 0.0

    def advance(self, size: float = 1) -> None:
        """Report a step of this size."""
        self._done += float(size)
        report(self._done / self._total if self._total else 1.0)


@contextmanager
def _set(watcher: _Watcher | None) -> Iterator[None]:
    token = _WATCHER.set(watcher)
    try:
        yield
    finally:
        _WATCHER.reset(token)
