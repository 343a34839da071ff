"""Table 1 of the first paper, measured again: mean and standard deviation over seeds, beside the paper's figures."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

from pairlens.errors import MissingExtra
from pairlens.io.documents import whole_file
from pairlens.study import files
from pairlens.study.adjustment.trainings import SCORES, Record, kind, short_name

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
NOTE = (
    "Spearman correlations × 100 between the scores of people and a model's similarities on the test split, by cosine "
    "and by dot product of the embeddings before any normalisation; mean ± standard deviation over seeds."
)


@dataclass(frozen=True)
class Table:
    """What the trainings came to.

    Attributes:
        records: one for every training.
        settings: how they were trained.
    """

    records: Sequence[Record]
    settings: Mapping[str, Any]

    @cached_property
    def rows(self) -> list[Record]:
        """One row for each base, adjusted or not, and objective."""
        groups: dict[tuple[str, bool, str], list[Record]] = {}
        for record in self.records:
            groups.setdefault((record["base"], record["adjusted"], record["objective"]), []).append(record)
        return [_row(*key, own) for key, own in groups.items()]

    @cached_property
    def costs(self) -> list[Record]:
        """What the adjustment costs: adjusted less plain, seed by seed, by the measure that was trained, in points."""
        by_seed = {(r["base"], r["objective"], r["adjusted"], r["seed"]): r["test"] for r in self.records}
        found = []
        for base, objective in dict.fromkeys((r["base"], r["objective"]) for r in self.records):
            seeds = [key[3] for key in by_seed if key[:3] == (base, objective, True)]
            pairs = [[by_seed.get((base, objective, adjusted, seed)) for adjusted in (True, False)] for seed in seeds]
            gains = [100 * (one[objective] - other[objective]) for one, other in pairs if one and other]
            if gains:
                found.append({"base": base, "objective": objective, "seeds": len(gains), **_summary("points", gains)})
        return found

    @cached_property
    def machines(self) -> list[Record]:
        """Where the models were trained, and with what."""
        found: list[Record] = []
        for record in self.records:
            own = {name: record[name] for name in ("device", "versions")}
            if own not in found:
                found.append(own)
        return found

    def markdown(self) -> str:
        """The table for people."""
        lines = [
            "| base | adjusted | objective | cosine | dot | paper's cosine | paper's dot |",
            "|---|---|---|---|---|---|---|",
        ]
        for row in self.rows:
            own = [_cell(row, name) for name in SCORES]
            theirs = ["" if row[f"paper_{name}"] is None else f"{row[f'paper_{name}']:.1f}" for name in SCORES]
            mark = "yes" if row["adjusted"] else "no"
            lines.append(f"| {' | '.join([short_name(row['base']), mark, row['objective'], *own, *theirs])} |")
        costs = [
            f"- {short_name(cost['base'])}, {cost['objective']}: {_signed(cost)} points over {cost['seeds']} seeds."
            for cost in self.costs
        ]
        what = "What the adjustment costs, adjusted less not adjusted, seed by seed, by the measure that was trained:"
        return "\n".join([NOTE, "", *lines, "", what, "", *costs, ""])

    def save(self, folder: Path) -> list[Path]:
        """Write summary.json, table.csv, table.md, runs.parquet and, where matplotlib is installed, the picture."""
        with whole_file(path := folder / "table.md") as file:
            file.write(self.markdown().encode())
        summary = {
            "study": "adjustment",
            "note": NOTE,
            "settings": dict(self.settings),
            "table": self.rows,
            "costs": self.costs,
            "machines": self.machines,
        }
        saved = [path, files.write_summary(folder, summary), files.write_table(folder, self.rows)]
        saved.append(files.write_raw(folder, "runs", [_flat(record) for record in self.records]))
        try:
            files.require_matplotlib()
        except MissingExtra:
            return saved
        from pairlens.study.adjustment.picture import draw

        return [*saved, *files.write_picture(folder, "table", draw(self.rows))]


def _row(base: str, adjusted: bool, objective: str, records: Sequence[Record]) -> Record:
    row: Record = {"base": base, "adjusted": adjusted, "objective": objective, "seeds": len(records)}
    for name in SCORES:
        row |= _summary(name, [100 * record["test"][name] for record in records])
    paper = PAPER.get(short_name(base), {}).get(kind(adjusted))
    if PAPERS_OBJECTIVE[kind(adjusted)] != objective:
        paper = None
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
