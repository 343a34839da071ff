"""The papers' Table 1, from trainings by hand."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import fmean, stdev

import pytest

from pairlens.io.journal import Journal
from pairlens.study.adjustment.table import PAPER, PAPERS_BASES, AdjustmentTable
from pairlens.study.adjustment.trainings import SCORES, line_up, train_all
from pairlens.study.result import short_name
from trained import BASE, MEASURED, records


def test_means_costs_and_files_of_a_journal(tmp_path: Path):
    with Journal(tmp_path / "journal.jsonl", {"epochs": 5}) as journal:
        journal.append(records())
        trained = train_all(line_up([BASE], 3), tmp_path, [], journal)  # the journal has them all
    table = AdjustmentTable(trained, {"epochs": 5})
    rows = {(row["adjusted"], row["objective"]): row for row in table.rows}
    assert rows.keys() == MEASURED.keys()
    for kind, seeds in MEASURED.items():
        for place, name in enumerate(SCORES):
            scores = [100 * seed[place] for seed in seeds]
            assert rows[kind][name] == pytest.approx(fmean(scores))
            assert rows[kind][f"{name}_sd"] == pytest.approx(stdev(scores))
    # The paper's adjusted models were trained with a dot product, the others with cosine.
    assert [rows[True, "dot"][f"paper_{name}"] for name in SCORES] == [85.9, 82.6]
    assert [rows[False, "cosine"][f"paper_{name}"] for name in SCORES] == [87.6, 83.9]
    assert rows[True, "cosine"]["paper_cosine"] is None
    costs = {cost["objective"]: cost for cost in table.costs}
    assert costs["cosine"]["points"] == pytest.approx((-0.4 - 0.3 - 0.1) / 3)
    assert costs["dot"]["points_sd"] == pytest.approx(stdev([-2, -2, -2]), abs=1e-9)
    assert "| all-mpnet-base-v2 | yes | dot | 84.40 ± 0.53 | 77.00 ± 1.00 | 85.9 | 82.6 |" in table.markdown()
    assert "all-mpnet-base-v2, cosine: −0.27 ± 0.15 points over 3 seeds." in table.markdown()
    saved = {path.name for path in table.save(tmp_path)}
    assert saved == {"table.md", "summary.json", "table.csv", "runs.parquet", "table.png", "table.svg"}
    assert json.loads((tmp_path / "summary.json").read_text())["costs"] == table.costs
    assert len(list(csv.DictReader((tmp_path / "table.csv").open()))) == 4


def test_one_seed_and_half_a_comparison():
    table = AdjustmentTable([record for record in records() if record["seed"] == 0 and record["adjusted"]], {})
    assert [row["cosine_sd"] for row in table.rows] == [None, None]
    assert table.costs == []  # there is nothing to compare with
    assert "| 85.00 |" in table.markdown()


def test_the_papers_figures_and_bases():
    assert [short_name(base) for base in PAPERS_BASES] == list(PAPER)
    assert PAPER["roberta-base"] == {"adjusted": (77.7, 68.8), "plain": (86.1, 68.8)}
    assert len({training.name for training in line_up(PAPERS_BASES, 3)}) == 5 * 2 * 2 * 3
