"""Adjusted models on disk: only modules of sentence-transformers are loaded by name."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from adjusting import tiny
from pairlens import Lens, ModelError
from pairlens.cli.models import describe
from pairlens.model.adjusted_layout import CONFIG


def test_other_classes_are_never_imported(tmp_path: Path):
    _, model = tiny(double=False)
    model.save(str(tmp_path))
    (tmp_path / CONFIG).write_text(json.dumps({"body": ["os.path.Evil"]}))
    with pytest.raises(ModelError, match="not part of sentence-transformers"):
        Lens(str(tmp_path))
    (tmp_path / CONFIG).write_text("{}")
    with pytest.raises(ModelError, match="does not name the modules"):
        Lens(str(tmp_path))


def test_models_command_describes_an_adjusted_model(tmp_path: Path):
    _, model = tiny(double=False, pooling="cls", similarity="dot")
    model.save(str(tmp_path))
    description = describe("me/mine", tmp_path)
    assert vars(description) == {
        "name": "me/mine (adjusted)",
        "layers": "3",
        "width": "32",
        "pooling": "cls",
        "similarity": "dot",
    }
    (tmp_path / CONFIG).unlink()
    assert describe("me/mine", tmp_path).layers == "?"
