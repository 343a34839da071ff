"""The judge: every candidate on every pair, with work that can be cut off and go on."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any, Protocol

from pairlens.errors import InputError
from pairlens.lens import Lens
from pairlens.study.faithfulness.candidates import Candidate, line_up
from pairlens.study.faithfulness.court import Court, Settings
from pairlens.study.faithfulness.verdict import Verdict

Record = dict[str, Any]


class Journal(Protocol):
    """Where finished pairs are kept, so that work that was cut off goes on; see `pairlens.journal`."""

    def append(self, records: Sequence[Record]) -> None:
        """Add records."""
        ...

    def records(self) -> Iterator[Record]:
        """All records so far."""
        ...


def judge(
    lens: Lens,
    pairs: Sequence[tuple[str, str]],
    candidates: Sequence[Candidate] | None = None,
    *,
    settings: Settings | None = None,
    journal: Journal | None = None,
    progress: bool = True,
) -> Verdict:
    """Judge explanations by what the model says when units of the texts are really deleted.

    Args:
        lens: the model.
        pairs: pairs of texts. Those with a text longer than the model takes are left out, and counted.
        candidates: what to judge; `line_up(lens)` by default.
        settings: how to judge.
        journal: keeps finished pairs; those it has already are not judged again.
        progress: show a progress bar.

    Example:
        >>> from pairlens import Lens
        >>> lens = Lens()
        >>> few = line_up(lens, methods=["occlusion", "random"])
        >>> pairs = [("The coffee is bad.", "This coffee is not good.")]
        >>> verdict = judge(lens, pairs, few, settings=Settings(checks=0), progress=False)
        >>> [row["candidate"] for row in verdict.table]
        ['occlusion', 'random']
    """
    from tqdm.auto import tqdm

    settings = settings or Settings()
    chosen = line_up(lens, seed=settings.seed) if candidates is None else list(candidates)
    names = [candidate.name for candidate in chosen]
    if not pairs or len(set(names)) < len(names):
        raise InputError("judge needs one pair at least, and candidates whose names differ.")
    court = Court(lens, chosen, settings)
    done = {record["pair"]: record for record in (journal.records() if journal is not None else ())}
    checked = 0
    for number, (a, b) in enumerate(tqdm(pairs, unit=" pairs", disable=None if progress else True)):
        if number not in done:
            done[number] = {"pair": number, "a": a, "b": b, **court.hear(a, b, check=checked < settings.checks)}
            if journal is not None:
                journal.append([done[number]])
        checked += bool(done[number].get("check"))
    records = [done[number] for number in range(len(pairs))]
    return Verdict(records, chosen, {**asdict(settings), "measure": court.measure, **court.about()})
