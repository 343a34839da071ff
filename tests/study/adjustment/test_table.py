"""The papers' Table 1: the table from trainings made by hand, and the command from end to end on a tiny model."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from statistics import fmean, stdev
from typing import Any

import pytest
from typer.testing import CliRunner

import zoo
from pairlens import ModelError
from pairlens.cli import app
from pairlens.io.journal import Journal
from pairlens.study.adjustment.picture import draw
from pairlens.study.adjustment.table import PAPER, PAPERS_BASES, Table
from pairlens.study.adjustment.trainings import SCORES, Training, line_up, short_name, train_all

BASE = "sentence-transformers/all-mpnet-base-v2"
MEASURED = {  # cosine and dot of three seeds
    (True, "cosine"): [(0.850, 0.60), (0.852, 0.61), (0.857, 0.62)],
    (True, "dot"): [(0.840, 0.77), (0.842, 0.78), (0.850, 0.76)],
    (False, "cosine"): [(0.854, 0.65), (0.855, 0.66), (0.858, 0.64)],
    (False, "dot"): [(0.842, 0.79), (0.843, 0.80), (0.841, 0.78)],
}


def records(base: str = BASE) -> list[dict[str, Any]]:
    return [
        {
            "base": base,
            "adjusted": adjusted,
            "objective": objective,
            "seed": seed,
            "epoch": 4,
            "dev": None,
            "test": dict(zip(SCORES, own, strict=True)),
            "device": "cpu",
            "versions": {"torch": "2"},
        }
        for (adjusted, objective), seeds in MEASURED.items()
        for seed, own in enumerate(seeds)
    ]


def test_the_table_of_a_journal(tmp_path: Path):
    with Journal(tmp_path / "journal.jsonl", {"epochs": 5}) as journal:
        journal.append(records())
        table = Table(train_all(line_up([BASE], 3), tmp_path, [], journal), {"epochs": 5})  # nothing is left to train
    rows = {(row["adjusted"], row["objective"]): row for row in table.rows}
    assert rows.keys() == MEASURED.keys()
    for kind, seeds in MEASURED.items():
        for place, name in enumerate(SCORES):
            own = [100 * seed[place] for seed in seeds]
            assert rows[kind][name] == pytest.approx(fmean(own))
            assert rows[kind][f"{name}_sd"] == pytest.approx(stdev(own))
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
    table = Table([own for own in records() if own["seed"] == 0 and own["adjusted"]], {})
    assert [row["cosine_sd"] for row in table.rows] == [None, None]
    assert table.costs == []  # there is nothing to compare with
    assert "| 85.00 |" in table.markdown()


def test_the_papers_figures():
    assert [short_name(base) for base in PAPERS_BASES] == list(PAPER)
    assert PAPER["roberta-base"] == {"adjusted": (77.7, 68.8), "plain": (86.1, 68.8)}
    assert len({training.name for training in line_up(PAPERS_BASES, 3)}) == 5 * 2 * 2 * 3


def test_the_picture():
    figure = draw(Table([*records(), *records("me/tiny")], {}).rows)
    panels = figure.axes
    assert [axes.get_xlabel() for axes in panels] == ["Spearman × 100 by cosine", "Spearman × 100 by dot product"]
    names = [label.get_text() for label in panels[0].get_yticklabels()]
    assert names[0] == "all-mpnet-base-v2\ntrained with cosine"
    assert len(names) == 4
    drawn: Any = [line.get_xdata() for line in panels[0].get_lines() if line.get_marker() in ("o", "s")]
    places = sorted(float(own[0]) for own in drawn)
    expected = sorted([row[name] for row in Table(records(), {}).rows for name in ["cosine"]] * 2 + [85.9, 87.6])
    assert places == pytest.approx(expected)


def test_a_training_that_fails_says_why(tmp_path: Path):
    training = Training(str(tmp_path / "nowhere"), True, "cosine", 0)
    with (
        Journal(tmp_path / "journal.jsonl", {}) as journal,
        pytest.raises(ModelError, match=r"1 of 1 trainings failed"),
    ):
        train_all([training], tmp_path / "models", ["--data", str(tmp_path / "none.csv")], journal)
    assert "none.csv" in (tmp_path / "models" / f"{training.name}.log").read_text()


def test_the_command(tmp_path: Path):
    zoo.encoder().save(str(tmp_path / "tiny"))
    texts = [*zoo.TEXTS]
    with (tmp_path / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows((texts[i], texts[i - 1], i % 6) for i in range(8))
    given = ["study", "adjustment", "--bases", str(tmp_path / "tiny"), "--out", str(tmp_path), "--epochs", "1"]
    for name in ("data", "dev", "test"):
        given += [f"--{name}", str(tmp_path / "pairs.csv")]
    given += ["--seeds", "1", "--jobs", "2", "--device", "cpu"]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 0, done.output
    assert "tiny" in done.stdout
    summary = json.loads((tmp_path / "adjustment" / "summary.json").read_text())
    assert [(row["adjusted"], row["objective"]) for row in summary["table"]] == list(MEASURED)
    assert not (tmp_path / "adjustment" / "models").exists()
    again = CliRunner().invoke(app, given)
    assert "going on after 4 trainings" in again.output
    refused = CliRunner().invoke(app, [*given, "--lr", "1"])
    assert refused.exit_code == 2
