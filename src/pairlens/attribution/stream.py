"""Many pairs, as they come: read some ahead, take their texts apart, explain them."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from pairlens.attribution import treatments
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.decomposer import Decomposer, Job, windows
from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError, whole
from pairlens.text.units import Level

TOGETHER = 64
"""Windows that are explained together where all their texts are known; windows of one pair are not."""
PATIENCE = 0.2
"""Seconds that a pair waits at most for others to come, but for those of its window."""
FEW = 8
"""Pairs up to which a warning gives the numbers of each. Those of many would hide everything else."""

Roles = tuple[str | None, str | None]
_PLAIN = (tuple, list)


class Pairs:
    """Explains pairs of texts, each distinct text taken apart once.

    Args:
        work: where texts are taken apart.
        roles: those of the first and of the second texts.
        levels: likewise.
        treatment: the options of `treatments.explain_all`.
    """

    def __init__(self, work: Decomposer, roles: Roles, levels: tuple[Level, Level], **treatment: str) -> None:
        self._work = work
        self._roles = roles
        self._levels = levels
        self._treatment = treatment
        self._many = True
        # What waits to be explained, and the jobs of its texts, firsts and seconds apart.
        self._waiting: tuple[list[Contributions], list[Contributions]] = [], []
        self._jobs: tuple[dict[str, Job], dict[str, Job]] = {}, {}

    def explain(self, pairs: Iterable[Any], window: int, progress: bool) -> Iterator[Explanation]:
        """Explanations in order. If there is something wrong with a pair, all before it come first."""
        self._many = not isinstance(pairs, Sequence) or len(pairs) > FEW
        window = whole("window", window, 1)
        most = 1 if window == 1 else TOGETHER * window
        return self._explain(windows(pairs, window, progress, "pairs", texts_of), most)

    def _explain(self, batches: Iterable[list[Sequence[str]]], most: int) -> Iterator[Explanation]:
        """The explanations of lists of pairs, of which `most` wait for each other."""
        since = time.monotonic()
        try:
            for batch in batches:
                halves = []
                try:
                    fresh = self._take(batch)
                except Exception:
                    if len(batch) == 1:
                        raise
                    fresh, half = True, len(batch) // 2
                    halves = [batch[:half], batch[half:]]
                if fresh or len(self._waiting[0]) >= most or time.monotonic() > since + PATIENCE:
                    yield from self._ready()
                    since = time.monotonic()
                if halves:
                    yield from self._explain(halves, most)
        except Exception:
            yield from self._ready()
            raise
        yield from self._ready()

    def _take(self, batch: list[Sequence[str]]) -> bool:
        """Put pairs with those that wait; returns whether a text of theirs had to be taken apart."""
        columns = list(zip(*batch, strict=True))
        for column, jobs, role, level in zip(columns, self._jobs, self._roles, self._levels, strict=True):
            jobs.update((text, Job.of(text, role, level)) for text in dict.fromkeys(column) if text not in jobs)
        asked = [{text: jobs[text] for text in column} for column, jobs in zip(columns, self._jobs, strict=True)]
        every = [job for own in asked for job in own.values()]
        fresh = not self._work.knows(every)
        done = self._work.decompose(every)
        for column, own, waiting in zip(columns, asked, self._waiting, strict=True):
            found = {text: done[job] for text, job in own.items()}
            waiting.extend(found[text] for text in column)
        return fresh

    def _ready(self) -> Iterator[Explanation]:
        """The explanations of what waits."""
        firsts, seconds = map(list, self._waiting)
        for own in (*self._waiting, *self._jobs):
            own.clear()
        return treatments.explain_all(firsts, seconds, many=self._many, **self._treatment)


def both_roles(roles: Any) -> Roles:
    """The roles that a user gave, if there are two."""
    if not isinstance(roles, Sequence) or isinstance(roles, str) or len(roles) != 2:
        raise InputError(f"roles has two entries, one for each text, not {roles!r}.")
    first, second = roles
    return first, second


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
