"""The files of a result."""

from __future__ import annotations

import pytest

from pairlens import study
from studies import tree

# Random weights leave much of a score to the reference.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


def test_pictures_and_tables_are_the_same_bytes_every_time(everything, tmp_path):
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        study.run("cumulative", everything).save(folder)
    assert tree(folders[0]) == tree(folders[1])
