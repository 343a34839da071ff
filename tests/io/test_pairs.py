"""Tables of pairs: headers, columns, scores, hub datasets, and the errors of files that cannot be read."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path

import pytest

from pairlens.errors import InputError
from pairlens.io.pairs import PairTable


def rows(path: Path, text: str | bytes, columns=None):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [(row.number, row.line, row.a, row.b, row.reason) for row in PairTable(path, columns).rows()]


def test_columns_of_a_csv_are_found_by_name(tmp_path):
    text = '\ufeffid,Sentence2,sentence1\r\n1,"x, ""y""\nz",w\r\n\r\n2,v\r\n3,,u\r\n'
    assert rows(tmp_path / "p.csv", text) == [
        (1, 2, "w", 'x, "y"\nz', ""),
        (2, 5, "", "v", "text a is missing"),
        (3, 6, "u", "", "text b is empty"),
    ]


def test_a_csv_without_a_header_starts_with_a_pair(tmp_path):
    assert rows(tmp_path / "p.csv", "x,y\nz,w,v\n") == [(1, 1, "x", "y", ""), (2, 2, "z", "w", "")]
    assert PairTable(tmp_path / "p.csv").text_columns() == ()


@pytest.mark.parametrize("separator", [";", "\t", ","])
def test_first_what_separates_the_cells_of_a_csv_is_found(tmp_path, separator):
    lines = ["id{0}sentence1{0}sentence2", '1{0}"x, y; z"{0}w', "2{0}v{0}u", "3{0}t{0}s{0}", "4{0}r{0}q, p; o\tn"]
    found = rows(tmp_path / "p.csv", "\n".join(lines).format(separator))
    assert found[:3] == [(1, 2, "x, y; z", "w", ""), (2, 3, "v", "u", ""), (3, 4, "t", "s", "")]
    assert found[3][2] == "r"


@pytest.mark.parametrize(
    "text",
    [
        "premise_text,hypo\nA cat sleeps.,A dog runs.\n",
        "id,left,right\n1,A cat.,A dog.\n",
        "1,A cat.,A dog.,5\n2,A bird.,A fish.,4\n",
        "1,A cat.\n2,A bird.\n",
        "id,text,label\n1,A cat.,0.5\n2,A bird.,0.25\n",
    ],
)
def test_first_columns_that_are_not_known_are_asked_for(tmp_path, text):
    with pytest.raises(InputError, match=r"which of the columns .* are the two texts\? Name them with --column-a"):
        rows(tmp_path / "p.csv", text)


@pytest.mark.parametrize("header", ["Sentence 1,Sentence 2", "sentence_1,sentence_2", " SENTENCE-1 ,Sentence2"])
def test_first_columns_are_found_however_they_are_spelled(tmp_path, header):
    (tmp_path / "p.csv").write_text(f"{header}\nA cat.,A dog.\n")
    table = PairTable(tmp_path / "p.csv")
    assert [(row.a, row.b) for row in table.rows()] == [("A cat.", "A dog.")]
    assert table.text_columns() == tuple(header.split(","))


def test_first_other_columns_are_kept(tmp_path):
    (tmp_path / "p.csv").write_text("id,a,b,label\nr1,x,y,yes\n")
    assert [row.others for row in PairTable(tmp_path / "p.csv").rows()] == [{"id": "r1", "label": "yes"}]


def test_quotation_marks_in_a_tsv_are_plain_characters(tmp_path):
    assert rows(tmp_path / "p.tsv", 'a\tb\n"x\ty"\n') == [(1, 2, '"x', 'y"', "")]


def test_columns_can_be_named(tmp_path):
    assert rows(tmp_path / "p.csv", "left,right\nx,y\n", ("right", "left")) == [(1, 2, "y", "x", "")]
    with pytest.raises(InputError, match="Did you mean 'left'"):
        rows(tmp_path / "p.csv", "left,right\nx,y\n", ("lefd", "right"))


def test_json_lines_hold_records_or_lists(tmp_path):
    lines = ['{"query": "x", "document": "y"}', "", '["z", "w"]', '{"query": 3, "document": null}', "{oops", "7"]
    text = "\n".join([*lines, '{"query": "\\ud800", "document": "y"}\n'])
    found = rows(tmp_path / "p.jsonl", text)
    assert [row[:4] for row in found[:2]] == [(1, 1, "x", "y"), (2, 3, "z", "w")]
    reasons = [row[4] for row in found[2:]]
    for reason, expected in zip(
        reasons, ["a is not a text but int", "not JSON", "not a pair", "half of a"], strict=True
    ):
        assert expected in reason
    assert "text b is missing" in reasons[0]
    with pytest.raises(InputError, match="--column-a"):
        rows(tmp_path / "p.jsonl", '{"left": "x", "right": "y"}\n')


def test_first_unknown_columns_of_other_formats_are_asked_for(tmp_path):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    path, columns = tmp_path / "p.parquet", ("left", "right")
    parquet.write_table(pa.table({"id": [1, 2], "left": ["x", None], "right": ["y", "z"]}), path)
    found = [(row.a, row.b, row.reason) for row in PairTable(path, columns).rows()]
    assert found == [("x", "y", ""), ("", "z", "text a is missing")]
    (tmp_path / "p.jsonl").write_text('{"id": 1, "left": "x", "right": "y"}\n')
    for table in (path, tmp_path / "p.jsonl"):
        with pytest.raises(InputError, match=r"columns id, left, right are the two texts\?.*--column-b\.$"):
            list(PairTable(table).rows())


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("p.csv", b"x\ny\n", "comma"),
        ("p.csv", b"a,b\n\xff,y\n", "UTF-8"),
        ("p.csv", b"", "no pairs"),
        ("p.csv", b"a,b\n", "no pairs"),
        ("p.parquet", b"PAR1", "Parquet"),
        ("p.xlsx", b"", "Valid: .csv"),
    ],
)
def test_tables_that_cannot_be_read(invoke, loaded, name, content, message, tmp_path):
    (tmp_path / name).write_bytes(content)
    done = invoke("batch", tmp_path / name, "-o", tmp_path / "out.csv")
    assert done.exit_code == 2
    assert message in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == [name]
    assert not loaded


# Scores and hub datasets.


def read(path: Path, content: str | None = None, **options):
    if content is not None:
        path.write_text(content, encoding="utf-8")
    return [(row.a, row.b, row.score, row.reason) for row in PairTable(path, **options).rows()]


def test_scores_are_the_third_column_of_a_table_without_a_header(tmp_path):
    found = read(tmp_path / "p.csv", "A cat.,A dog.,2.5\nx,y,\nv,w,high\n")
    assert found == [("A cat.", "A dog.", 2.5, ""), ("x", "y", None, ""), ("v", "w", None, "")]


def test_two_columns_without_a_header_have_no_scores(tmp_path):
    assert read(tmp_path / "p.tsv", "x\ty\n") == [("x", "y", None, "")]


@pytest.mark.parametrize("name", ["score", "label", "similarity_score", "Judgment"])
def test_scores_are_found_by_name(tmp_path, name):
    assert read(tmp_path / "p.csv", f"id,sentence1,sentence2,{name}\n7,x,y,0.5\n") == [("x", "y", 0.5, "")]


def test_a_score_that_was_asked_for_must_be_a_number(tmp_path):
    found = read(tmp_path / "p.csv", "a,b,gold\nx,y,3\nv,w,much\np,q,nan\n", score="gold")
    assert [row[2] for row in found] == [3.0, None, None]
    assert [row[3] for row in found] == [
        "",
        "the score is 'much', and not a number",
        "the score is 'nan', and not a number",
    ]
    with pytest.raises(InputError, match=r"unknown column 'golf'\. Did you mean 'gold'"):
        read(tmp_path / "p.csv", score="golf")
    with pytest.raises(InputError, match="no header"):
        read(tmp_path / "q.csv", "x,y,3\n", score="gold")


def test_scores_in_json_lines_and_parquet(tmp_path):
    lines = [{"a": "x", "b": "y", "score": 1}, {"a": "v", "b": "w"}]
    assert read(tmp_path / "p.jsonl", "\n".join(map(json.dumps, lines))) == [("x", "y", 1.0, ""), ("v", "w", None, "")]
    assert read(tmp_path / "q.jsonl", '["x", "y", 0.25]\n') == [("x", "y", 0.25, "")]
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    parquet.write_table(pa.table({"label": [0.5], "text1": ["x"], "text2": ["y"]}), tmp_path / "p.parquet")
    assert read(tmp_path / "p.parquet") == [("x", "y", 0.5, "")]


def test_hub_datasets_are_read_by_split(tmp_path, monkeypatch):
    # A dataset in a local folder takes the same path as one of the hub, without a network.
    datasets = pytest.importorskip("datasets")
    folder = tmp_path / "owner" / "name"
    folder.mkdir(parents=True)
    (folder / "test.csv").write_text("sentence1,sentence2,score\nx,y,0.5\nv,w,1.0\n")
    (folder / "train.csv").write_text("sentence1,sentence2,score\np,q,0.0\n")
    load = datasets.load_dataset
    monkeypatch.setattr(datasets, "load_dataset", lambda name, *rest, **more: load(str(tmp_path / name), *rest, **more))
    monkeypatch.setenv("HF_HOME", str(tmp_path / "cache"))
    source = PairTable(Path("owner/name"))
    assert source.dataset
    assert read(Path("owner/name")) == [("x", "y", 0.5, ""), ("v", "w", 1.0, "")]
    assert read(Path("owner/name"), split="train") == [("p", "q", 0.0, "")]
    assert source.fingerprint() != PairTable(Path("owner/name"), split="train").fingerprint()
    with pytest.raises(InputError, match="as a hub dataset it cannot be loaded"):
        read(Path("owner/name"), split="nonsense")


def test_a_missing_hub_dataset_raises():
    pytest.importorskip("datasets")
    with pytest.raises(InputError, match="as a hub dataset it cannot be loaded"):
        read(Path("nobody/nothing-of-the-kind"))


def test_paths_that_are_neither_a_file_nor_a_dataset_raise(tmp_path):
    with pytest.raises(InputError, match="there is no file"):
        PairTable(tmp_path / "missing.csv")
    with pytest.raises(InputError, match=r"Valid: \.csv"):
        PairTable(tmp_path / "table.xlsx")
