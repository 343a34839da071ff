"""Table 1 of the first paper, measured again: mean and standard deviation over seeds, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from pairlens.errors import MissingExtra
from pairlens.io import write_file
from pairlens.study import files
from pairlens.study.adjustment.picture import draw
from pairlens.study.adjustment.trainings import SCORES, kind
from pairlens.study.result import short_name
from pairlens.study.statistics import Record, group_by

PAPERS_BASES = (
    "sentence-transformers/all-mpnet-base-v2",
    "sentence-transformers/all-distilroberta-v1",
    "microsoft/mpnet-base",
    "distilbert/distilroberta-base",
    "FacebookAI/roberta-base",
)
PAPER = {
    "all-mpnet-base-v2": {"adjusted": (85.9, 82.6), "plain": (87.6, 83.9)},
    "all-distilroberta-v1": {"adjusted": (85.7, 80.7), "plain": (86.3, 77.4)},
    "mpnet-base": {"adjusted": (85.1, 80.4), "plain": (86.3, 84.2)},
    "distilroberta-base": {"adjusted": (80.4, 73.4), "plain": (84.6, 76.2)},
    "roberta-base": {"adjusted": (77.7, 68.8), "plain": (86.1, 68.8)},
}
"""The first paper's Table 1, by cosine and by dot product; its adjusted models were trained with a dot product."""
PAPERS_OBJECTIVE = {"adjusted": "dot", "plain": "cosine"}
HEADER = ("base", "adjusted", "objective", "cosine", "dot", "paper's cosine", "paper's dot")
NOTE = (
    "Spearman correlations × 100 between the scores of people and a model's similarities on the test split, by cosine "
    "and by dot product of the embeddings before any normalisation; mean ± standard deviation over seeds."
)


@dataclass(frozen=True)
class AdjustmentTable:
    """The table of the trainings' scores.

    Attributes:
        records: one for every training.
        settings: the recipe and the data of the trainings.
    """

    records: Sequence[Record]
    settings: Mapping[str, Any]

    @cached_property
    def rows(self) -> list[Record]:
        """One row for each base, adjusted or not, and objective."""
        groups = group_by(self.records, "base", "adjusted", "objective")
        return [_row(base, adjusted, objective, records) for (base, adjusted, objective), records in groups.items()]

    @cached_property
    def costs(self) -> list[Record]:
        """The cost of the adjustment: adjusted less plain, seed by seed, by the trained measure, in points."""
        costs = []
        for (base, objective), records in group_by(self.records, "base", "objective").items():
            adjusted, plain = (
                {record["seed"]: 100 * record["test"][objective] for record in records if record["adjusted"] == side}
                for side in (True, False)
            )
            gains = [score - plain[seed] for seed, score in adjusted.items() if seed in plain]
            if gains:
                costs.append({"base": base, "objective": objective, "seeds": len(gains), **_summary("points", gains)})
        return costs

    @cached_property
    def machines(self) -> list[Record]:
        """The devices and the versions of packages that the models were trained with."""
        machines = [{name: record[name] for name in ("device", "versions")} for record in self.records]
        return [machine for number, machine in enumerate(machines) if machine not in machines[:number]]

    @property
    def cells(self) -> list[list[str]]:
        """The rows in text, by the columns of `HEADER`."""
        cells = []
        for row in self.rows:
            ours = [_cell(row, name) for name in SCORES]
            theirs = ["" if row[f"paper_{name}"] is None else f"{row[f'paper_{name}']:.1f}" for name in SCORES]
            cells.append(
                [short_name(row["base"]), "yes" if row["adjusted"] else "no", row["objective"], *ours, *theirs]
            )
        return cells

    @property
    def cost_sentences(self) -> list[str]:
        """The costs in words."""
        return [
            f"{short_name(cost['base'])}, {cost['objective']}: {_signed(cost)} points over {cost['seeds']} seeds."
            for cost in self.costs
        ]

    def markdown(self) -> str:
        """The table in Markdown, with the costs below it."""
        header, *lines = (f"| {' | '.join(cells)} |" for cells in (HEADER, *self.cells))
        costs = [f"- {sentence}" for sentence in self.cost_sentences]
        what = "What the adjustment costs, adjusted less not adjusted, seed by seed, by the measure that was trained:"
        return "\n".join([NOTE, "", header, "|---" * len(HEADER) + "|", *lines, "", what, "", *costs, ""])

    def save(self, folder: Path) -> list[Path]:
        """Write summary.json, table.csv, table.md, runs.parquet and, if matplotlib is installed, the picture."""
        summary = {
            "study": "adjustment",
            "note": NOTE,
            "settings": dict(self.settings),
            "table": self.rows,
            "costs": self.costs,
            "machines": self.machines,
        }
        saved = [
            write_file(folder / "table.md", self.markdown().encode()),
            files.write_summary(folder, summary),
            files.write_table(folder, self.rows),
            files.write_raw(folder, "runs", [_flat(record) for record in self.records]),
        ]
        try:
            files.require_matplotlib()
        except MissingExtra:
            return saved
        return [*saved, *files.write_picture(folder, "table", draw(self.rows))]


def _row(base: str, adjusted: bool, objective: str, records: Sequence[Record]) -> Record:
    row: Record = {"base": base, "adjusted": adjusted, "objective": objective, "seeds": len(records)}
    for name in SCORES:
        row |= _summary(name, [100 * record["test"][name] for record in records])
    comparable = objective == PAPERS_OBJECTIVE[kind(adjusted)]
    paper = PAPER.get(short_name(base), {}).get(kind(adjusted)) if comparable else None
    return row | {f"paper_{name}": paper and paper[place] for place, name in enumerate(SCORES)}


def _summary(name: str, values: Sequence[float]) -> Record:
    return {name: fmean(values), f"{name}_sd": stdev(values) if len(values) > 1 else None}


def _cell(row: Record, name: str) -> str:
    spread = "" if row[f"{name}_sd"] is None else f" ± {row[f'{name}_sd']:.2f}"
    return f"{row[name]:.2f}{spread}"


def _signed(cost: Record) -> str:
    return ("+" if cost["points"] >= 0 else "−") + _cell({**cost, "points": abs(cost["points"])}, "points")


def _flat(record: Record) -> Record:
    """A record as one row of numbers."""
    scores = {f"{split}_{name}": record[split][name] for split in ("dev", "test") if record[split] for name in SCORES}
    names = ("base", "adjusted", "objective", "seed", "epoch", "device")
    return {**{name: record[name] for name in names}, **scores}
