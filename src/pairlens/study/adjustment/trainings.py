"""The trainings behind the table, each in a process and a folder of its own, several at a time."""

from __future__ import annotations

import itertools
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from pairlens.adjusted.card import read_record
from pairlens.errors import ModelError
from pairlens.io import Journal
from pairlens.study.result import short_name
from pairlens.study.statistics import Record

SCORES = ("cosine", "dot")


@dataclass(frozen=True)
class Training:
    """One training: a base, adjusted or not, with an objective and a seed."""

    base: str
    adjusted: bool
    objective: str
    seed: int

    @property
    def name(self) -> str:
        """A name that can be a file's name."""
        return "-".join([short_name(self.base), kind(self.adjusted), self.objective, str(self.seed)])

    def command(self, out: Path, options: Sequence[str]) -> list[str]:
        """The command line of the training."""
        recipe = ["--objective", self.objective, "--seed", str(self.seed), *([] if self.adjusted else ["--plain"])]
        return [sys.executable, "-m", "pairlens.cli", "adjust", self.base, "--out", str(out), *recipe, *options]


def line_up(bases: Sequence[str], seeds: int) -> list[Training]:
    """All trainings of some bases: adjusted and not, with each objective and seed.

    Example:
        >>> [training.name for training in line_up(["me/tiny"], 1)]
        ['tiny-adjusted-cosine-0', 'tiny-adjusted-dot-0', 'tiny-plain-cosine-0', 'tiny-plain-dot-0']
    """
    every = itertools.product(bases, (True, False), SCORES, range(seeds))
    return [Training(base, adjusted, objective, seed) for base, adjusted, objective, seed in every]


def train_all(
    trainings: Sequence[Training],
    folder: Path,
    options: Sequence[str],
    journal: Journal,
    *,
    jobs: int = 1,
    keep_models: bool = False,
    report: Callable[[str], None] = lambda message: None,
) -> list[Record]:
    """Run the trainings that are not in the journal, and return the scores of all.

    Args:
        trainings: the trainings.
        folder: the folder of the models while they are trained, each beside a log.
        options: further options of `pairlens adjust`: the data, the recipe, the device.
        journal: the scores of finished trainings.
        jobs: how many trainings run at a time.
        keep_models: keep the trained models; by default only their scores stay.
        report: called with a message for every finished training.

    Returns:
        The scores of these trainings, in their order.
    """
    known = {_training(record) for record in journal.records()}
    missing = [training for training in trainings if training not in known]
    running: set[subprocess.Popen[bytes]] = set()
    failed: list[str] = []
    with ThreadPoolExecutor(jobs) as pool:
        futures = {pool.submit(_train, one, folder / one.name, options, running): one for one in missing}
        try:
            for number, future in enumerate(as_completed(futures), 1):
                training, error = futures[future], future.result()
                if error:
                    failed.append(error)
                    continue
                record: Any = read_record(folder / training.name)
                outcome = {name: record[name] for name in ("epoch", "dev", "test", "device", "versions")}
                journal.append([{**asdict(training), **outcome}])
                if not keep_models:
                    shutil.rmtree(folder / training.name)
                report(f"{number} of {len(missing)}: {training.name}, test Spearman {_both(record['test'])}")
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            for process in list(running):
                process.terminate()
            raise
    if failed:
        raise ModelError(f"{len(failed)} of {len(missing)} trainings failed. {failed[0]}")
    records = [record for record in journal.records() if _training(record) in trainings]
    return sorted(records, key=lambda record: trainings.index(_training(record)))


def kind(adjusted: bool) -> str:
    """The name of a kind of model."""
    return "adjusted" if adjusted else "plain"


def _train(training: Training, out: Path, options: Sequence[str], running: set[subprocess.Popen[bytes]]) -> str:
    """Train in a process of its own; returns the error, or "" if there is none."""
    out.parent.mkdir(parents=True, exist_ok=True)
    log = out.with_name(f"{out.name}.log")
    with log.open("wb") as file:
        process = subprocess.Popen(training.command(out, options), stdout=file, stderr=file, stdin=subprocess.DEVNULL)
        running.add(process)
        code = process.wait()
        running.discard(process)
    if code == 0:
        log.unlink()
        return ""
    lines = log.read_text(encoding="utf-8", errors="replace").strip().splitlines() or [f"exit code {code}"]
    return f"{training.name}: {lines[-1]} ({log})"


def _training(record: Record) -> Training:
    """The training that a record of the journal belongs to."""
    return Training(*(record[name] for name in ("base", "adjusted", "objective", "seed")))


def _both(scores: dict[str, float]) -> str:
    return " and ".join(f"{100 * scores[name]:.2f} by {name}" for name in SCORES)
