"""Journals: records in whole chunks, refused where the settings differ, one writer at a time."""

from __future__ import annotations

import resource

import pytest

from pairlens.errors import InputError, StoreError
from pairlens.io.journal import Journal, differences


def test_two_runs_do_not_share_a_journal(tmp_path):
    pytest.importorskip("fcntl")
    with Journal(tmp_path / "x.part", {}), pytest.raises(InputError, match="another run"):
        Journal(tmp_path / "x.part", {})


def test_records_are_kept_in_whole_chunks(tmp_path):
    path = tmp_path / "x.part"
    with Journal(path, {"seed": 1}) as journal:
        journal.append([{"n": n} for n in range(5)])
    with Journal(path, {"seed": 1}) as journal:
        assert journal.keep(2, 5) == 5  # complete: the last chunk may be shorter
        assert journal.keep(2, 9) == 4
        assert [record["n"] for record in journal.records()] == [0, 1, 2, 3]


def test_other_settings_are_refused_unless_restarted(tmp_path):
    path = tmp_path / "x.part"
    with Journal(path, {"seed": 1}) as journal:
        journal.append([{"n": 0}])
    with pytest.raises(InputError, match=r"holds the beginning of another run: seed was 1 and is 2\..*--restart"):
        Journal(path, {"seed": 2})
    with Journal(path, {"seed": 2}, restart=True) as journal:
        assert list(journal.records()) == []
    assert not path.exists()  # a journal without records is deleted


def test_differences_are_those_of_json():
    assert differences({"a": [1, 2], "b": 3}, {"a": (1, 2), "c": None}) == ["b was 3 and is None"]


def test_a_full_disk_raises_and_loses_no_record(tmp_path):
    path = tmp_path / "journal.jsonl"
    with Journal(path, {"source": "x"}) as journal:
        journal.append([{"block": 1}])
    size, limits = path.stat().st_size, resource.getrlimit(resource.RLIMIT_FSIZE)
    try:
        resource.setrlimit(resource.RLIMIT_FSIZE, (size + 5, limits[1]))
        with (
            pytest.raises(StoreError, match=r"journal.jsonl cannot be written: .*nothing that was done is lost"),
            Journal(path, {"source": "x"}) as journal,
        ):
            journal.append([{"block": 2}])
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    with Journal(path, {"source": "x"}) as journal:
        assert journal.keep(1, 2**63) == 1
        assert list(journal.records()) == [{"block": 1}]
    assert path.stat().st_size == size
