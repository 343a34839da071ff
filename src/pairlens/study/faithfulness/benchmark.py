"""The judge: evaluate every candidate on every pair, and resume where an interrupted run stopped."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

from tqdm.auto import tqdm

from pairlens.errors import InputError
from pairlens.io import Journal
from pairlens.lens import Lens
from pairlens.study.faithfulness.candidates import Candidate, make_candidates
from pairlens.study.faithfulness.evaluation import JudgeSettings, PairEvaluator
from pairlens.study.faithfulness.table import FaithfulnessResult


def judge(
    lens: Lens,
    pairs: Sequence[tuple[str, str]],
    candidates: Sequence[Candidate] | None = None,
    *,
    settings: JudgeSettings | None = None,
    journal: Journal | None = None,
    progress: bool = True,
) -> FaithfulnessResult:
    """Measure how well explanations predict the model's score when units of the texts are deleted.

    Args:
        lens: the model.
        pairs: pairs of texts. Pairs with a text longer than the model takes are skipped, and counted.
        candidates: the explanations to compare; `make_candidates(lens)` by default.
        settings: seed, number of checked pairs, random orders and measure.
        journal: stores finished pairs; pairs that it holds already are not evaluated again.
        progress: show a progress bar.

    Example:
        >>> from pairlens import Lens
        >>> lens = Lens()
        >>> few = make_candidates(lens, methods=["occlusion", "random"])
        >>> pairs = [("The coffee is bad.", "This coffee is not good.")]
        >>> result = judge(lens, pairs, few, settings=JudgeSettings(checks=0), progress=False)
        >>> [row["candidate"] for row in result.table]
        ['occlusion', 'random']
    """
    settings = settings or JudgeSettings()
    chosen = make_candidates(lens, seed=settings.seed) if candidates is None else list(candidates)
    names = [candidate.name for candidate in chosen]
    if not pairs or len(set(names)) < len(names):
        raise InputError("judge needs one pair at least, and candidates whose names differ.")
    evaluator = PairEvaluator(lens, chosen, settings)
    done = {record["pair"]: record for record in (journal.records() if journal is not None else ())}
    checked = 0
    for number, (a, b) in enumerate(tqdm(pairs, unit=" pairs", disable=None if progress else True)):
        if number not in done:
            values = evaluator.evaluate(a, b, check=checked < settings.checks)
            done[number] = {"pair": number, "a": a, "b": b, **values}
            if journal is not None:
                journal.append([done[number]])
        checked += bool(done[number].get("check"))
    records = [done[number] for number in range(len(pairs))]
    return FaithfulnessResult(
        records, chosen, {**asdict(settings), "measure": evaluator.measure, **evaluator.describe_model()}
    )
