"""Tables of texts: every format, row by row, with what is wrong said beside a row and reading going on behind it."""

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

from pairlens.corpus import inputs
from pairlens.corpus.inputs import Input
from pairlens.corpus.layout import Layout
from pairlens.corpus.records import Reject, Text
from pairlens.errors import InputError

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


def read(path, **columns):
    table = Input(str(path))
    layout = Layout.of(table, columns.get("text"), columns.get("id"), columns.get("metadata"))
    return [layout.read(raw) for raw in table.rows()]


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_formats(suffix, tmp_path):
    path = write(tmp_path, suffix)
    metadata = {"year": "int"} if suffix == ".csv" else None
    found = read(path, id="id", metadata=metadata)
    expected = [Text(r["id"], r["text"], {"year": r["year"]}, i) for i, r in enumerate(RECORDS, 1)]
    assert [Text(t.id, t.text, t.metadata, t.row) for t in found if isinstance(t, Text)] == expected
    assert [t.line for t in found] == {".csv": [2, 3, 5], ".jsonl": [1, 2, 4], ".parquet": [1, 2, 3]}[suffix]
    assert Input(str(path)).count() == 3


def test_a_quotation_mark_in_a_tsv_is_a_character(tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text('text\tyear\nhe said "no\t3\n"so" it is\t4\n', encoding="utf-8")
    assert [t.text for t in read(path) if isinstance(t, Text)] == ['he said "no', '"so" it is']


def test_a_folder_is_read_in_order(tmp_path):
    for name, rows in (("b.parquet", RECORDS[2:]), ("a.parquet", RECORDS[:2])):
        parquet.write_table(pa.Table.from_pylist(rows), tmp_path / name)
    (tmp_path / "README.md").write_text("not a table")
    assert [(t.id, t.row) for t in read(tmp_path, id="id")] == [("a", 1), ("b", 2), ("c", 3)]
    assert Input(str(tmp_path)).count() == 3


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_reading_goes_on_from_any_row(suffix, tmp_path):
    table = Input(str(write(tmp_path, suffix)))
    whole = list(table.rows())
    for start in range(4):
        assert list(table.rows(start)) == whole[start:]


def test_rows_without_a_name_are_numbered(tmp_path):
    assert [t.id for t in read(write(tmp_path, ".csv"))] == ["1", "2", "3"]


# Columns.


def test_the_column_of_texts_is_found_or_asked_for(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("Abstract,title\nA text.,T\n")
    assert Layout.of(Input(str(path)), None, None, None) == Layout("Abstract", None, {"title": "text"})
    path.write_text("one,two\nA text.,T\n")
    with pytest.raises(InputError, match=r"which of the columns one, two of data\.csv holds the texts"):
        Layout.of(Input(str(path)), None, None, None)
    with pytest.raises(InputError, match=r"unknown column 'tow'\. Did you mean 'two'"):
        Layout.of(Input(str(path)), "tow", None, None)


def test_types_of_metadata(tmp_path):
    rows: list[dict[str, Any]] = [{"text": "x", "n": 1, "x": 0.5, "ok": True, "s": "a", "deep": {"k": [1]}, "mixed": 1}]
    rows.append({"text": "y", "n": 2, "x": 3, "ok": None, "s": "b", "deep": None, "mixed": "z"})
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    kinds = {"n": "int", "x": "float", "ok": "bool", "s": "text", "deep": "text", "mixed": "text"}
    assert Layout.of(Input(str(path)), None, None, None).metadata == kinds
    first, second = read(path)
    assert isinstance(first, Text)
    assert isinstance(second, Text)
    assert first.metadata == {"n": 1, "x": 0.5, "ok": True, "s": "a", "deep": '{"k": [1]}', "mixed": "1"}
    assert second.metadata == {"n": 2, "x": 3.0, "ok": None, "s": "b", "deep": None, "mixed": "z"}
    with pytest.raises(InputError, match="unknown type of metadata 'integer'"):
        Layout.of(Input(str(path)), None, None, {"n": "integer"})


def test_numbers_in_a_csv_are_texts_unless_told(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("text,zip,year\nA.,00123,1999\nB.,4,\nC.,5,soon\n")
    assert next(t.metadata for t in read(path) if isinstance(t, Text)) == {"zip": "00123", "year": "1999"}
    found = read(path, metadata={"zip": None, "year": "int"})
    assert [t.metadata for t in found if isinstance(t, Text)] == [
        {"zip": "00123", "year": 1999},
        {"zip": "4", "year": None},
    ]
    assert isinstance(found[2], Reject)
    assert found[2].reason == "metadata year is 'soon', which is no int"


# What is wrong with a row.


def reasons(path) -> dict[int, str]:
    return {t.line: t.reason for t in read(path) if isinstance(t, Reject)}


def test_bad_lines_of_json(tmp_path):
    path = tmp_path / "data.jsonl"
    lines = [
        b'{"text": "Good."}',
        b'{"text": "cut',
        b"[1, 2]",
        b'{"text": 5}',
        b'{"other": "x"}',
        b'{"text": "\xff\xfe"}',
    ]
    path.write_bytes(b"\n".join([*lines, b'{"text": "\\ud83d"}', b'{"text": "Good too."}', b"[" * 10_000]))
    found = reasons(path)
    assert "not JSON: Unterminated string" in found[2]
    assert found[3] == "not a record but list [1, 2]"
    assert found[4] == "not a text but int 5"
    assert found[5] == "the text is missing"
    assert found[6] == found[7] == "the text is not UTF-8"
    assert "not JSON" in found[9]
    assert sorted(found) == [2, 3, 4, 5, 6, 7, 9]


def test_a_quotation_mark_that_nothing_closes_costs_one_row(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('text,n\nOne.,1\n"never closed,2\nThree.,3\n"Four, quoted.",4\n"Five" and more,5\nSix.,6\n')
    assert [t.text for t in read(path) if isinstance(t, Text)] == [
        "One.",
        "Three.",
        "Four, quoted.",
        "Five and more",
        "Six.",
    ]
    assert list(reasons(path)) == [3]
    path.write_text('text,n\nOne.,1\nTwo.,2\n"never closed,3\nFour.,4\n')
    assert [t.text for t in read(path) if isinstance(t, Text)] == ["One.", "Two.", "Four."]
    assert "unexpected end of data" in reasons(path)[4]


def test_rows_of_a_csv_with_too_many_fields_or_bytes_that_are_no_text(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"text,n\nOne.,1,2\nCaf\xe9.,3\nTwo.\n")
    assert reasons(path) == {2: "3 fields, and the header has 2", 3: "the text is not UTF-8"}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_line_without_end_takes_no_memory(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(inputs, "LONGEST", 1000)
    path = tmp_path / f"data{suffix}"
    row = "{},1\n" if suffix == ".csv" else '{{"text": "{}"}}\n'
    path.write_text(
        ("text,n\n" if suffix == ".csv" else "") + row.format("One.") + row.format("x" * 5000) + row.format("Two.")
    )
    assert [t.text for t in read(path) if isinstance(t, Text)] == ["One.", "Two."]
    (found,) = reasons(path).values()
    assert "a line of more than 1000 bytes" in found


def test_what_is_no_table(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        Input(str(tmp_path / "nowhere.csv"))
    with pytest.raises(InputError, match=r"unknown suffix of a table '\.txt'"):
        Input(str(tmp_path / "a.txt"))
    with pytest.raises(InputError, match="holds no table"):
        Input(str(tmp_path))
    (tmp_path / "a.parquet").write_bytes(b"PAR1 not really")
    with pytest.raises(InputError, match="cannot be read as Parquet"):
        list(Input(str(tmp_path / "a.parquet")).rows())


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
from pairlens.corpus.inputs import Input
table = Input("nobody/tiny")
print(table.name, table.count(), table.columns, [(raw.row, raw.values["text"]) for raw in table.rows(1)])
"""


def test_a_hub_dataset(tmp_path):
    """One that was fetched before, in a cache of its own."""
    data, cache = write(tmp_path, ".parquet"), tmp_path / "cache"
    environment = {**os.environ, "HF_DATASETS_CACHE": str(cache), "HF_HUB_OFFLINE": "1"}
    line = [sys.executable, "-c", HUB, str(cache), str(data)]
    done = subprocess.run(line, capture_output=True, text=True, check=True, env=environment, timeout=120)
    columns = {"id": "text", "text": "text", "year": "int"}
    rows = [(2, RECORDS[1]["text"]), (3, RECORDS[2]["text"])]
    assert done.stdout.splitlines()[-1] == f"nobody/tiny:train 3 {columns} {rows}"


def test_a_hub_dataset_that_is_not_there():
    with pytest.raises(InputError, match="nobody/nothing is no file, and as a hub dataset it cannot be loaded"):
        _ = Input("nobody/nothing").columns


def test_the_fingerprint_is_of_the_content(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("text\nOne.\n")
    before = Input(str(path)).fingerprint()
    assert Input(str(path)).fingerprint() == before
    path.write_text("text\nTwo.\n")
    assert Input(str(path)).fingerprint() != before


def test_a_large_file_that_was_changed_between_the_samples_is_another_one(tmp_path):
    path = tmp_path / "data.csv"
    with path.open("wb") as file:
        file.truncate(2**27)  # takes no room
    before = Input(str(path)).fingerprint()
    assert Input(str(path)).fingerprint() == before
    with path.open("r+b") as file:
        file.seek(2**20 + 2**19)
        file.write(b"changed")
    assert Input(str(path)).fingerprint() != before
