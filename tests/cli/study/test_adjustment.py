"""`pairlens study adjustment`, from end to end on a tiny model."""

from __future__ import annotations

import csv
import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

import zoo
from pairlens.cli import app
from pairlens.study.adjustment import trainings
from trained import MEASURED, InProcess


@pytest.mark.parametrize("started", ["in_process", pytest.param("process", marks=pytest.mark.slow)])
def test_the_command_trains_saves_resumes_and_refuses_other_settings(tmp_path: Path, monkeypatch, started):
    if started == "in_process":
        monkeypatch.setattr(trainings.subprocess, "Popen", InProcess)
    zoo.encoder().save(str(tmp_path / "tiny"))
    texts = [*zoo.TEXTS]
    with (tmp_path / "pairs.csv").open("w", newline="") as file:
        csv.writer(file).writerows((texts[i], texts[i - 1], i % 6) for i in range(8))
    given = ["study", "adjustment", "--bases", str(tmp_path / "tiny"), "--out", str(tmp_path), "--epochs", "1"]
    for name in ("data", "dev", "test"):
        given += [f"--{name}", str(tmp_path / "pairs.csv")]
    given += ["--seeds", "1", "--jobs", "1" if started == "in_process" else "2", "--device", "cpu"]
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


@pytest.mark.parametrize(("package", "extra"), [("datasets", "train"), ("accelerate", "train"), ("pyarrow", "study")])
def test_first_a_missing_package_is_named_before_the_first_training(tmp_path, monkeypatch, package, extra):
    monkeypatch.setitem(sys.modules, package, None)
    given = ["study", "adjustment", "--out", str(tmp_path / "out")]
    for name in ("data", "dev", "test"):
        given += [f"--{name}", str(tmp_path / "absent.csv")]
    done = CliRunner().invoke(app, given)
    assert done.exit_code == 1
    assert f"pip install 'pairlens[{extra}]'" in done.output.replace("\n", " ")
