"""Readers: a record that cannot be parsed costs one row, with its line and the reason."""

from __future__ import annotations

import pytest

from pairlens.errors import InputError
from pairlens.io import readers
from pairlens.io.readers import read_records
from pairlens.io.tables import InputTable


def texts(path) -> list[str]:
    return [row.values["text"] for row in InputTable(str(path)).rows() if not row.reason]


def reasons(path) -> dict[int, str]:
    return {row.line: row.reason for row in InputTable(str(path)).rows() if row.reason}


def test_quotation_marks_in_a_tsv_are_plain_characters(tmp_path):
    path = tmp_path / "data.tsv"
    path.write_text('text\tyear\nhe said "no\t3\n"so" it is\t4\n', encoding="utf-8")
    assert texts(path) == ['he said "no', '"so" it is']


def test_bad_lines_of_json_cost_one_row_each(tmp_path):
    path = tmp_path / "data.jsonl"
    lines = [b'{"text": "Good."}', b'{"text": "cut', b"[1, 2]", b'{"text": 5}', b'{"text": "Good too."}', b"[" * 10_000]
    path.write_bytes(b"\n".join(lines))
    found = reasons(path)
    assert sorted(found) == [2, 3, 6]
    assert "not JSON: Unterminated string" in found[2]
    assert found[3] == "not a record but list [1, 2]"
    assert "not JSON" in found[6]
    assert texts(path) == ["Good.", 5, "Good too."]


@pytest.mark.parametrize("name", ["data.csv", "data.jsonl"])
def test_bytes_that_are_not_utf8_raise_on_request(name, tmp_path):
    path = tmp_path / name
    path.write_bytes(b'"Caf\xe9"\n')
    (record,) = read_records(path)
    assert "Caf\udce9" in record.content
    with pytest.raises(InputError, match=r"is not text in UTF-8"):
        list(read_records(path, utf8=True))


def test_a_parquet_file_is_read_by_column(tmp_path):
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": [1, 2], "b": [3, 4]}), tmp_path / "x.parquet")
    assert [record.content for record in read_records(tmp_path / "x.parquet", ["b"])] == [{"b": 3}, {"b": 4}]


def test_an_unclosed_quotation_mark_costs_one_row(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text('text,n\nOne.,1\n"never closed,2\nThree.,3\n"Four, quoted.",4\n"Five" and more,5\nSix.,6\n')
    assert texts(path) == [
        "One.",
        "Three.",
        "Four, quoted.",
        "Five and more",
        "Six.",
    ]
    assert list(reasons(path)) == [3]
    path.write_text('text,n\nOne.,1\nTwo.,2\n"never closed,3\nFour.,4\n')
    assert texts(path) == ["One.", "Two.", "Four."]
    assert "unexpected end of data" in reasons(path)[4]


def test_rows_of_a_csv_with_too_many_fields_have_a_reason(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"text,n\nOne.,1,2\nTwo.\n")
    assert reasons(path) == {2: "3 fields, and the header has 2"}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl"])
def test_a_line_without_end_is_skipped_in_bounded_memory(suffix, tmp_path, monkeypatch):
    monkeypatch.setattr(readers, "LONGEST", 1000)
    path = tmp_path / f"data{suffix}"
    row = "{},1\n" if suffix == ".csv" else '{{"text": "{}"}}\n'
    path.write_text(
        ("text,n\n" if suffix == ".csv" else "") + row.format("One.") + row.format("x" * 5000) + row.format("Two.")
    )
    assert texts(path) == ["One.", "Two."]
    (found,) = reasons(path).values()
    assert "a line of more than 1000 bytes" in found
