"""The trainings behind the papers' Table 1."""

from __future__ import annotations

from pathlib import Path

import pytest

from pairlens import ModelError
from pairlens.io.journal import Journal
from pairlens.study.adjustment import trainings
from pairlens.study.adjustment.trainings import Training, train_all
from trained import InProcess


@pytest.mark.parametrize("started", ["in_process", pytest.param("process", marks=pytest.mark.slow)])
def test_a_training_that_fails_says_why(tmp_path: Path, monkeypatch, started):
    if started == "in_process":
        monkeypatch.setattr(trainings.subprocess, "Popen", InProcess)
    training = Training(str(tmp_path / "nowhere"), True, "cosine", 0)
    with (
        Journal(tmp_path / "journal.jsonl", {}) as journal,
        pytest.raises(ModelError, match=r"1 of 1 trainings failed"),
    ):
        train_all([training], tmp_path / "models", ["--data", str(tmp_path / "none.csv")], journal)
    assert "none.csv" in (tmp_path / "models" / f"{training.name}.log").read_text()
