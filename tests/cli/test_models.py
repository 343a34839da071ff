"""`pairlens models`: the bundled model, the hub's cache, and configurations that are old or broken."""

from __future__ import annotations

import shutil
from pathlib import Path

from pairlens.cli.models import describe
from pairlens.model.loading import offline_model


def test_models_lists_the_bundled_model(invoke, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    done = invoke("models")
    assert done.exit_code == 0
    line = next(line for line in done.stdout.splitlines() if "all-MiniLM-L6-v2" in line)
    assert line.split()[-4:] == ["6", "384", "mean", "cosine"]


def test_models_lists_the_cache_of_the_hub(invoke, model, tmp_path, monkeypatch):
    snapshot = tmp_path / "models--me--tiny" / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir(parents=True)
    (tmp_path / "models--me--tiny" / "blobs").mkdir()
    shutil.copytree(model, snapshot)
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(tmp_path))
    line = next(line for line in invoke("models").stdout.splitlines() if "me/tiny" in line)
    assert line.split() == ["me/tiny", "3", "32", "mean", "cosine"]


def test_without_models_the_message_says_how_to_get_one(invoke, tmp_path, monkeypatch):
    monkeypatch.setattr("pairlens.model.bundled.offline_model", lambda: None)
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(tmp_path / "nothing"))
    done = invoke("models")
    assert done.exit_code == 0
    assert "pairlens[offline]" in done.stderr


def test_describe_old_and_broken_configurations(tmp_path, model):
    bundled = offline_model()
    assert bundled is not None
    assert describe("x", bundled).pooling == "mean"
    assert describe("x", Path(model)).layers == "3"
    (tmp_path / "modules.json").write_text("{oops")
    broken = describe("x", tmp_path)
    assert (broken.layers, broken.pooling) == ("?", "?")
