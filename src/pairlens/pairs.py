"""Many pairs, as they come: read some ahead, take their texts apart, explain them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pairlens import similarity
from pairlens.contributions import Contributions
from pairlens.errors import InputError, PairlensError
from pairlens.explanation import Explanation
from pairlens.tokens import Level
from pairlens.workshop import Job, Workshop, windows

TOGETHER = 64
"""Windows that are explained together where all their texts are known: a text is fetched once for all its pairs."""

Roles = tuple[str | None, str | None]
_PLAIN = (tuple, list)


class Pairs:
    """Explains pairs of texts, each distinct text taken apart once.

    Args:
        work: where texts are taken apart.
        roles: those of the first and of the second texts.
        levels: likewise.
        treatment: the options of `similarity.explain_all`.
    """

    def __init__(self, work: Workshop, roles: Roles, levels: tuple[Level, Level], **treatment: str) -> None:
        self._work = work
        self._roles = roles
        self._levels = levels
        self._treatment = treatment
        # What waits to be explained, and of its texts the contributions, firsts and seconds apart.
        self._waiting: tuple[list[Contributions], list[Contributions]] = [], []
        self._known: tuple[dict[str, Contributions], dict[str, Contributions]] = {}, {}

    def explain(self, pairs: Iterable[Any], window: int, progress: bool) -> Iterator[Explanation]:
        """Explanations in order. If there is something wrong with a pair, all before it come first."""
        try:
            for batch in windows(pairs, window, progress, "pairs"):
                try:
                    fresh = self._take(batch)
                except PairlensError:
                    if len(batch) == 1:
                        raise
                    yield from self._ready()
                    yield from self.explain(batch, 1, progress=False)
                    continue
                if fresh or len(self._waiting[0]) >= TOGETHER * window:
                    yield from self._ready()
        except Exception:
            yield from self._ready()
            raise
        yield from self._ready()

    def _take(self, batch: list[Any]) -> bool:
        """Put pairs with those that wait; returns whether a text of theirs had to be taken apart."""
        columns = list(zip(*map(texts_of, batch), strict=True))
        jobs = [
            {text: Job.of(text, role, level) for text in dict.fromkeys(column) if text not in known}
            for column, known, role, level in zip(columns, self._known, self._roles, self._levels, strict=True)
        ]
        asked = [job for own in jobs for job in own.values()]
        fresh = not self._work.knows(asked)
        done = self._work.decompose(asked)
        for column, known, waiting, own in zip(columns, self._known, self._waiting, jobs, strict=True):
            known.update((text, done[job]) for text, job in own.items())
            waiting.extend(known[text] for text in column)
        return fresh

    def _ready(self) -> Iterator[Explanation]:
        """The explanations of what waits."""
        firsts, seconds = map(list, self._waiting)
        for own in (*self._waiting, *self._known):
            own.clear()
        return similarity.explain_all(firsts, seconds, **self._treatment)


def texts_of(pair: Any) -> Sequence[str]:
    """The two texts of what a user gave as a pair."""
    texts = pair if isinstance(pair, _PLAIN) else _listed(pair)
    if len(texts) != 2:
        raise InputError(f"expected a pair of texts, and got {pair!r:.60}.")
    for text in texts:
        if not isinstance(text, str):
            raise InputError(f"expected a text, and got {type(text).__name__}: {text!r:.60}.")
    return texts


def _listed(pair: Any) -> list[Any]:
    """Anything that may be a pair, as a list; an empty one where it is none."""
    return [] if isinstance(pair, str) or not isinstance(pair, Iterable) else list(pair)
