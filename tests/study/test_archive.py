"""The archive of a study's computed parts."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.errors import InputError
from pairlens.study.archive import Archive, pack, unpack
from studies import PAIRS

# Random weights leave much of a score to the reference.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


def test_pieces_come_back_as_they_were(lens, tmp_path):
    entries = [lens.explain(*PAIRS[0][:2], layer=1), "no reason", lens.explain(*PAIRS[1][:2], layer=2)]
    archive = Archive(tmp_path)
    archive.keep({"key": 1}, pack(entries))
    kept = archive.recall({"key": 1})
    assert kept is not None
    back = unpack(kept)
    assert back[1] == "no reason"
    for one, other in ((entries[0], back[0]), (entries[2], back[2])):
        assert np.array_equal(one.matrix, other.matrix)  # pyright: ignore[reportAttributeAccessIssue]
        assert one.settings == other.settings  # pyright: ignore[reportAttributeAccessIssue]
    assert archive.recall({"key": 2}) is None
    (piece,) = tmp_path.iterdir()
    piece.write_bytes(piece.read_bytes()[:100])
    with pytest.raises(InputError, match="Delete it, and start again"):
        archive.recall({"key": 1})


def test_half_written_files_of_a_killed_run_are_deleted(tmp_path):
    (tmp_path / ".0123456789ab.tmp").write_text("half")
    (tmp_path / "kept.npz").write_text("whole")
    Archive(tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["kept.npz"]
