"""Tables: rows of every format, folders of files, hub datasets, fingerprints."""

from __future__ import annotations

import csv
import json
import os
import subprocess
import sys
from typing import Any

import pyarrow as pa
import pytest
from pyarrow import parquet

from pairlens.errors import InputError
from pairlens.io.tables import InputTable

RECORDS: list[dict[str, Any]] = [
    {"id": "a", "text": "One text, with a comma.", "year": 1999},
    {"id": "b", "text": 'Another, "quoted",\nover two lines.', "year": 2004},
    {"id": "c", "text": "Œuvre 東京 🙂", "year": None},
]


def write(folder, suffix: str):
    path = folder / f"data{suffix}"
    if suffix == ".parquet":
        parquet.write_table(pa.Table.from_pylist(RECORDS), path)
    elif suffix == ".jsonl":
        path.write_text(
            "\n".join(json.dumps(r) for r in RECORDS[:2]) + "\n\n" + json.dumps(RECORDS[2]), encoding="utf-8"
        )
    else:
        with path.open("w", encoding="utf-8-sig", newline="") as file:
            writer = csv.DictWriter(file, list(RECORDS[0]), delimiter="\t" if suffix == ".tsv" else ",")
            writer.writeheader()
            writer.writerows(r if suffix == ".csv" else {**r, "text": r["text"].replace("\n", " ")} for r in RECORDS)
    return path


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_rows_have_the_cells_and_lines_of_the_file(suffix, tmp_path):
    table = InputTable(str(write(tmp_path, suffix)))
    rows = list(table.rows())
    expected = [{k: str(v or "") for k, v in r.items()} for r in RECORDS] if suffix == ".csv" else RECORDS
    assert [(row.row, row.values, row.reason) for row in rows] == [(i, r, "") for i, r in enumerate(expected, 1)]
    assert [row.line for row in rows] == {".csv": [2, 3, 5], ".jsonl": [1, 2, 4], ".parquet": [1, 2, 3]}[suffix]
    assert table.count() == 3


def test_columns_have_types_where_the_file_says_so(tmp_path):
    typed = {"id": "text", "text": "text", "year": "int"}
    assert InputTable(str(write(tmp_path, ".csv"))).columns == dict.fromkeys(typed, "text")
    assert InputTable(str(write(tmp_path, ".jsonl"))).columns == typed
    assert InputTable(str(write(tmp_path, ".parquet"))).columns == typed


def test_a_folder_is_read_in_the_order_of_its_names(tmp_path):
    for name, rows in (("b.parquet", RECORDS[2:]), ("a.parquet", RECORDS[:2])):
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    (tmp_path / "README.md").write_text("not a table")
    assert [(row.values["id"], row.row) for row in InputTable(str(tmp_path)).rows()] == [("a", 1), ("b", 2), ("c", 3)]
    assert InputTable(str(tmp_path)).count() == 3


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_rows_start_behind_any_row(suffix, tmp_path):
    table = InputTable(str(write(tmp_path, suffix)))
    whole = list(table.rows())
    for start in range(4):
        assert list(table.rows(start)) == whole[start:]


def test_paths_that_are_not_tables_raise(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        InputTable(str(tmp_path / "nowhere.csv"))
    with pytest.raises(InputError, match=r"unknown suffix of a table '\.txt'"):
        InputTable(str(tmp_path / "a.txt"))
    with pytest.raises(InputError, match="holds no table"):
        InputTable(str(tmp_path))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        list(InputTable(str(tmp_path / "a.parquet")).rows())


HUB = """
import shutil, sys
from pathlib import Path
from datasets import load_dataset
cache, data = map(Path, sys.argv[1:])
load_dataset("parquet", data_files={"train": str(data)})
made = next((cache / "parquet").glob("*/*/*/dataset_info.json")).parent
kept = cache / "nobody___tiny" / "default" / "0.0.0" / "abc"
shutil.copytree(made, kept)
for file in kept.glob("*.arrow"):
    file.rename(kept / file.name.replace("parquet-", "tiny-"))
from pairlens.io.tables import InputTable
table = InputTable("nobody/tiny")
print(table.name, table.count(), table.columns, [(row.row, row.values["text"]) for row in table.rows(1)])
"""


def test_a_cached_hub_dataset_is_read_offline(tmp_path):
    """The dataset was fetched before, into a cache of its own."""
    data, cache = write(tmp_path, ".parquet"), tmp_path / "cache"
    environment = {**os.environ, "HF_DATASETS_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    line = [sys.executable, "-c", HUB, str(cache), str(data)]
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=environment, timeout=120)
    columns = {"id": "text", "text": "text", "year": "int"}
    rows = [(2, RECORDS[1]["text"]), (3, RECORDS[2]["text"])]
    assert done.stdout.splitlines()[-1] == f"nobody/tiny:train 3 {columns} {rows}"


def test_a_missing_hub_dataset_raises():
    with pytest.raises(InputError, match="nobody/nothing is no file, and as a hub dataset it cannot be loaded"):
        _ = InputTable("nobody/nothing").columns


def test_fingerprint_follows_the_content(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("text\nOne.\n")
    before = InputTable(str(path)).fingerprint()
    assert InputTable(str(path)).fingerprint() == before
    path.write_text("text\nTwo.\n")
    assert InputTable(str(path)).fingerprint() != before


def test_fingerprint_of_a_large_file_follows_changes_between_the_samples(tmp_path):
    path = tmp_path / "data.csv"
    with path.open("wb") as file:
        file.truncate(2**27)  # sparse: takes no disk space
    before = InputTable(str(path)).fingerprint()
    assert InputTable(str(path)).fingerprint() == before
    with path.open("r+b") as file:
        file.seek(2**20 + 2**19)
        file.write(b"changed")
    assert InputTable(str(path)).fingerprint() != before
