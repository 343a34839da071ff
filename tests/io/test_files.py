"""Files: written whole or not at all, and optional packages that name their extra."""

from __future__ import annotations

import hashlib
import os

import pytest

from pairlens.errors import InputError, MissingExtra
from pairlens.io.files import check_folder, make_folder, require, sha256, versions, write_file


def test_an_interrupted_write_keeps_the_old_content(tmp_path, monkeypatch):
    path = write_file(tmp_path / "why.json", b"before")

    def fail(_: int) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(KeyboardInterrupt):
        write_file(path, b"after")
    assert path.read_bytes() == b"before"
    assert [path.name for path in tmp_path.iterdir()] == ["why.json"]


def test_a_full_disk_is_an_input_error(tmp_path, monkeypatch):
    def fail(_: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InputError, match="No space left"):
        write_file(tmp_path / "why.json", b"content")
    assert [path.name for path in tmp_path.iterdir()] == []


def test_a_symbolic_link_stays_a_link(tmp_path):
    (tmp_path / "real.json").write_text("old")
    (tmp_path / "link.json").symlink_to(tmp_path / "real.json")
    write_file(tmp_path / "link.json", b"new")
    assert (tmp_path / "link.json").is_symlink()
    assert (tmp_path / "real.json").read_text() == "new"


def test_folders_are_made_or_refused(tmp_path):
    assert make_folder(tmp_path / "a" / "b", "--out").is_dir()
    (tmp_path / "file").write_text("")
    with pytest.raises(InputError, match=r"cannot be made: .* Give another --out\."):
        make_folder(tmp_path / "file" / "b", "--out")
    with pytest.raises(InputError, match="does not exist"):
        check_folder(tmp_path / "nowhere" / "x.json")
    with pytest.raises(InputError, match="is a folder"):
        check_folder(tmp_path / "a")


def test_sha256_is_that_of_the_content(tmp_path):
    assert sha256(write_file(tmp_path / "x", b"content")) == hashlib.sha256(b"content").hexdigest()


def test_a_missing_package_names_its_extra():
    assert require("json", "study").loads("1") == 1
    with pytest.raises(MissingExtra, match=r"nowhere is not installed.*pairlens\[study\]"):
        require("nowhere.at_all", "study")


def test_versions_leave_out_packages_that_are_missing():
    assert {"pairlens", "torch", "numpy"} <= set(versions("nowhere"))
    assert "nowhere" not in versions("nowhere")
