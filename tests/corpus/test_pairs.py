"""Many pairs at once: the same numbers as one explanation after the other, in files that a killed run goes on with."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from pyarrow import parquet

import corpora
import zoo
from pairlens import Lens
from pairlens.corpus import Index
from pairlens.corpus import pairs as many
from pairlens.corpus.pairs import PairRequests, explain_pairs
from pairlens.errors import InputError
from pairlens.io.tables import InputTable

TEXTS = corpora.texts(12)
NUMBERS = ("score", "base", "gap", "gap_a", "gap_b")


def table(path, header: tuple[str, str], rows) -> PairRequests:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file).writerows([header, *rows])
    return PairRequests.of(InputTable(str(path)))


def found(folder) -> list[dict]:
    return [row for path in sorted(folder.glob("*.parquet")) for row in parquet.read_table(path).to_pylist()]


def make(folder, model, **options) -> Index:
    index = Index.create(folder / "index", Lens(model), **options)
    index.add({"id": f"t{i}", "text": text} for i, text in enumerate(TEXTS))
    return index


@pytest.mark.parametrize("terms", ["project", "keep", "ignore", "shift"])
@pytest.mark.parametrize("measure", ["cosine", "dot"])
def test_numbers_are_those_of_single_explanations(terms, measure, tmp_path):
    # References of the padding path differ from text to text, so that planes have two directions.
    index = make(tmp_path, zoo.encoder("bert", normalize=False), layer=3, reference_terms=terms, measure=measure)
    references = np.array([c.reference / np.linalg.norm(c.reference) for c in index.contributions(["t0", "t1", "t2"])])
    assert (references @ references.T)[0, 1:].max() < 1 - 1e-4
    asked = [(f"t{i}", f"t{j}") for i in range(6) for j in range(4, 12)]
    outcome = explain_pairs(index, table(tmp_path / "pairs.csv", ("id_a", "id_b"), asked), tmp_path / "out")
    assert (outcome.explained, outcome.rejected) == (len(asked), 0)
    rows = found(tmp_path / "out")
    assert [(row["a"], row["b"]) for row in rows] == asked
    for row in rows:
        e = index.compare(row["a"], row["b"])
        scale = max(1.0, abs(e.score), np.abs(e.matrix).max())
        for name in NUMBERS:
            assert row[name] == pytest.approx(getattr(e, name), abs=1e-5 * scale)
        assert row["pairs"] == pytest.approx(e.matrix.sum(), abs=1e-5 * scale)
        for side in "ab":
            assert row[f"effects_{side}"] == pytest.approx(getattr(e, f"effects_{side}").sum(), abs=1e-5 * scale)
        total = sum(row[name] for name in ("base", "effects_a", "effects_b", "pairs", "gap"))
        assert total == pytest.approx(row["score"], abs=1e-9 * scale)
        best = e.top(8)
        assert [top["value"] for top in row["top"]] == pytest.approx([pair.value for pair in best], abs=1e-5 * scale)
        strongest = row["top"][0]
        assert TEXTS[int(row["b"][1:])][strongest["b_start"] : strongest["b_end"]] in {pair.b.text for pair in best}


def test_references_that_are_all_the_same_or_nothing(tmp_path):
    for name, model in (("empty", zoo.encoder("bert")), ("static", zoo.static())):
        folder = tmp_path / name
        folder.mkdir()
        index = make(folder, model)
        explain_pairs(
            index, table(folder / "pairs.csv", ("id_a", "id_b"), [("t1", "t2"), ("t3", "t3")]), folder / "out"
        )
        for row in found(folder / "out"):
            e = index.compare(row["a"], row["b"])
            assert [row["score"], row["base"], row["pairs"]] == pytest.approx(
                [e.score, e.base, e.matrix.sum()], abs=1e-5
            )


def test_queries(tmp_path):
    index = make(tmp_path, zoo.encoder("bert", prompts={"query": "query: ", "document": "passage: "}))
    asked = [
        ("Is the coffee good?", "t1"),
        ("Where do the trains go?", "t2"),
        ("Is the coffee good?", "t3"),
        (" . ", "t4"),
    ]
    outcome = explain_pairs(index, table(tmp_path / "pairs.csv", ("query", "id"), asked), tmp_path / "out")
    rows = found(tmp_path / "out")
    assert [(row["a"], row["b"]) for row in rows[:3]] == asked[:3]
    for row in rows[:3]:
        e = index.explain(row["a"], row["b"], zoom=False)
        assert [row["score"], row["base"], row["pairs"]] == pytest.approx([e.score, e.base, e.matrix.sum()], abs=1e-5)
        first = row["top"][0]
        assert row["a"][first["a_start"] : first["a_end"]] == e.top(1)[0].a.text
    assert outcome.explained + outcome.rejected == 4


def test_what_cannot_be_explained_is_listed(tmp_path):
    index = make(tmp_path, zoo.encoder("bert"), method="output")
    path = tmp_path / "pairs.jsonl"
    lines = [
        {"id_a": "t1", "id_b": "t2"},
        {"id_a": "t1", "id_b": "nobody"},
        {"id_a": "t1"},
        {"id_a": " ", "id_b": True},
    ]
    path.write_text("\n".join([*map(json.dumps, lines), "{"]))
    outcome = explain_pairs(index, PairRequests.of(InputTable(str(path))), tmp_path / "out")
    assert (outcome.explained, outcome.rejected) == (1, 4)
    rejects = {r["line"]: r["reason"] for r in map(json.loads, outcome.rejects.read_text().splitlines())}
    assert rejects[2] == "the index has no text 'nobody'"
    assert rejects[3] == "id_b is missing"
    assert rejects[4] == "id_a is empty; id_b is True"
    assert rejects[5].startswith("not JSON")


def test_numbers_as_names(tmp_path):
    index = Index.create(tmp_path / "index", Lens(zoo.encoder("bert")), method="output")
    index.add({"text": text} for text in TEXTS)
    path = tmp_path / "pairs.jsonl"
    path.write_text('{"id_a": 1, "id_b": 2}\n')
    assert explain_pairs(index, PairRequests.of(InputTable(str(path))), tmp_path / "out").explained == 1


def test_columns(tmp_path):
    path = tmp_path / "pairs.csv"
    path.write_text("left,right\nt1,t2\n")
    with pytest.raises(InputError, match="neither id_a and id_b nor query and id"):
        PairRequests.of(InputTable(str(path)))
    assert not PairRequests.of(InputTable(str(path)), ("left", "right")).queries
    assert PairRequests.of(InputTable(str(path)), ("left", "right"), queries=True).queries


def test_a_run_that_was_cut_off_goes_on(tmp_path, monkeypatch):
    monkeypatch.setattr(many, "PART", 10)
    index = make(tmp_path, zoo.encoder("bert"), method="output")
    asked = [(f"t{i % 12}", f"t{(i * 5) % 12}") for i in range(35)]
    pairs = table(tmp_path / "pairs.csv", ("id_a", "id_b"), asked)
    whole = explain_pairs(index, pairs, tmp_path / "whole")
    assert whole.explained == 35
    assert len(list((tmp_path / "whole").glob("*.parquet"))) == 4

    class Cut(Exception):
        pass

    def cut(rows: int) -> None:
        raise Cut

    with pytest.raises(Cut):
        explain_pairs(index, pairs, tmp_path / "out", progress=cut)
    first = tmp_path / "out" / "part-00000000.parquet"
    (tmp_path / "out" / ".half.tmp").write_bytes(b"half")
    before = first.stat().st_mtime_ns
    seen: list[int] = []
    assert explain_pairs(index, pairs, tmp_path / "out", progress=seen.append).explained == 35
    assert sum(seen) == 35
    assert first.stat().st_mtime_ns == before
    assert found(tmp_path / "out") == found(tmp_path / "whole")
    assert not list((tmp_path / "out").glob(".*.tmp"))
    with pytest.raises(InputError, match="holds the beginning of another run: top was 8 and is 3"):
        explain_pairs(index, pairs, tmp_path / "out", top=3)
    assert explain_pairs(index, pairs, tmp_path / "out", top=3, restart=True).explained == 35
    assert {len(row["top"]) for row in found(tmp_path / "out")} <= {1, 2, 3}
    index.delete(["t3"])
    with pytest.raises(InputError, match=r"index was 'index, version \d+' and is 'index, version \d+'.*--restart"):
        explain_pairs(index, pairs, tmp_path / "out", top=3)


def test_a_folder_of_something_else_is_left_alone(tmp_path):
    index = make(tmp_path, zoo.encoder("bert"), method="output")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "thesis.txt").write_text("years of work")
    pairs = table(tmp_path / "pairs.csv", ("id_a", "id_b"), [("t1", "t2")])
    with pytest.raises(InputError, match="holds files that are not of this command"):
        explain_pairs(index, pairs, tmp_path / "out", restart=True)
    assert (tmp_path / "out" / "thesis.txt").exists()


def test_queries_of_an_index_made_with_a_relative_folder_are_explained(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    zoo.encoder("bert").save_pretrained("model")
    path = make(tmp_path, "model", method="output").path
    # The index loads the model by its full name, the texts were stored with the relative one.
    index = Index.open(path)
    outcome = explain_pairs(index, table(tmp_path / "pairs.csv", ("query", "id"), [(TEXTS[0], "t1")]), tmp_path / "out")
    assert (outcome.explained, outcome.rejected) == (1, 0)
