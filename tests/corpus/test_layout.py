"""Layouts: which column is what, types of metadata, and why a row is rejected."""

from __future__ import annotations

import json
from typing import Any

import pytest

from pairlens.corpus.layout import Layout
from pairlens.corpus.records import Reject, TextRecord
from pairlens.errors import InputError
from pairlens.io.tables import InputTable


def read(path, **columns):
    table = InputTable(str(path))
    layout = Layout.of(table, columns.get("text"), columns.get("id"), columns.get("metadata"))
    return [layout.read(row) for row in table.rows()]


def test_ids_texts_and_metadata_come_from_their_columns(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("id,text,year\na,One.,1999\nb,Two.,\n")
    assert read(path, id="id", metadata={"year": "int"}) == [
        TextRecord("a", "One.", {"year": 1999}, 1, 2),
        TextRecord("b", "Two.", {"year": None}, 2, 3),
    ]


def test_rows_without_an_id_column_are_numbered(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("text\nOne.\nTwo.\nThree.\n")
    assert [t.id for t in read(path)] == ["1", "2", "3"]


def test_the_text_column_is_found_by_name_or_asked_for(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("Abstract,title\nA text.,T\n")
    assert Layout.of(InputTable(str(path)), None, None, None) == Layout("Abstract", None, {"title": "text"})
    (tmp_path / "ids.csv").write_text("uuid,Doc ID,text\n1,a,x\n")
    found = Layout.of(InputTable(str(tmp_path / "ids.csv")), None, None, None)
    assert found == Layout("text", "Doc ID", {"uuid": "text"})
    assert Layout.of(InputTable(str(tmp_path / "ids.csv")), None, "", None).id is None
    path.write_text("one,two\nA text.,T\n")
    with pytest.raises(InputError, match=r"which of the columns one, two of data\.csv holds the texts"):
        Layout.of(InputTable(str(path)), None, None, None)
    with pytest.raises(InputError, match=r"unknown column 'tow'\. Did you mean 'two'"):
        Layout.of(InputTable(str(path)), "tow", None, None)


def test_types_of_metadata(tmp_path):
    rows: list[dict[str, Any]] = [{"text": "x", "n": 1, "x": 0.5, "ok": True, "s": "a", "deep": {"k": [1]}, "mixed": 1}]
    rows.append({"text": "y", "n": 2, "x": 3, "ok": None, "s": "b", "deep": None, "mixed": "z"})
    path = tmp_path / "data.jsonl"
    path.write_text("\n".join(map(json.dumps, rows)))
    kinds = {"n": "int", "x": "float", "ok": "bool", "s": "text", "deep": "text", "mixed": "text"}
    assert Layout.of(InputTable(str(path)), None, None, None).metadata == kinds
    first, second = read(path)
    assert isinstance(first, TextRecord)
    assert isinstance(second, TextRecord)
    assert first.metadata == {"n": 1, "x": 0.5, "ok": True, "s": "a", "deep": '{"k": [1]}', "mixed": "1"}
    assert second.metadata == {"n": 2, "x": 3.0, "ok": None, "s": "b", "deep": None, "mixed": "z"}
    with pytest.raises(InputError, match="unknown type of metadata 'integer'"):
        Layout.of(InputTable(str(path)), None, None, {"n": "integer"})


def test_numbers_in_a_csv_are_text_unless_a_type_is_given(tmp_path):
    path = tmp_path / "data.csv"
    path.write_text("text,zip,year\nA.,00123,1999\nB.,4,\nC.,5,soon\n")
    assert next(t.metadata for t in read(path) if isinstance(t, TextRecord)) == {"zip": "00123", "year": "1999"}
    found = read(path, metadata={"zip": None, "year": "int"})
    assert [t.metadata for t in found if isinstance(t, TextRecord)] == [
        {"zip": "00123", "year": 1999},
        {"zip": "4", "year": None},
    ]
    assert isinstance(found[2], Reject)
    assert found[2].reason == "metadata year is 'soon', which is no int"


def test_unusable_texts_are_rejected_with_the_reason(tmp_path):
    path = tmp_path / "data.jsonl"
    lines = [b'{"text": "Good."}', b'{"text": 5}', b'{"other": "x"}', b'{"text": "\xff\xfe"}', b'{"text": "\\ud83d"}']
    path.write_bytes(b"\n".join([*lines, b'{"text": "Good too."}']))
    assert {t.line: t.reason for t in read(path) if isinstance(t, Reject)} == {
        2: "not a text but int 5",
        3: "the text is missing",
        4: "the text is not UTF-8",
        5: "the text is not UTF-8",
    }


def test_a_csv_cell_that_is_not_utf8_is_rejected(tmp_path):
    path = tmp_path / "data.csv"
    path.write_bytes(b"text,n\nOne.,1,2\nCaf\xe9.,3\nTwo.\n")
    reasons = {t.line: t.reason for t in read(path) if isinstance(t, Reject)}
    assert reasons == {2: "3 fields, and the header has 2", 3: "the text is not UTF-8"}
