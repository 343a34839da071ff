"""`pairlens index`, `search` and `explain-pairs`, as a user gives them."""

from __future__ import annotations

import json
import re
import shutil
from dataclasses import replace

import numpy as np
import pytest
from pyarrow import parquet
from typer.testing import CliRunner

import corpora
import zoo
from pairlens.cli import app
from pairlens.cli.search import listing
from pairlens.corpus import Index
from pairlens.corpus.parts import IngestStage


@pytest.fixture
def invoke(model, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")

    def run(*arguments, code: int = 0):
        given = [str(argument) for argument in arguments]
        done = CliRunner().invoke(app, given, catch_exceptions=False)
        assert done.exit_code == code, done.output
        return done

    return run


@pytest.fixture(scope="module")
def made(model, tmp_path_factory):
    """A file and its index, by the command."""
    folder = tmp_path_factory.mktemp("made")
    data = corpora.write_jsonl(folder / "data.jsonl", 40)
    arguments = ["index", data, "--out", folder / "index", "--model", model, "--id-column", "id", "--chunk", "16"]
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    assert done.exit_code == 0, done.output
    return data, folder / "index", done


@pytest.fixture
def own(made, tmp_path):
    """A copy of it to be changed."""
    shutil.copytree(made[1], tmp_path / "index")
    return tmp_path / "index"


# Index.


def test_index(made):
    _, path, done = made
    assert f"34 texts in {path}: 34 added, 0 updated, 0 there before" in done.stderr
    assert "warning: rows that could not be used: 6, such as line 4" in done.stderr
    assert "rejects.jsonl)" in done.stderr
    index = Index.open(path)
    assert len(index) == 34
    assert index.metadata == {"year": "int"}
    assert index.settings.level == "sentence"


def test_index_again_goes_on_with_the_model_that_it_knows(made, invoke):
    data, path, _ = made
    done = invoke("index", data, "--out", path, "--id-column", "id", "--chunk", "16")
    assert "34 texts in" in done.stderr
    assert "nothing to do, this table was indexed before: 34 added, 0 updated, 0 there before" in done.stderr


def test_options_reach_the_index(model, invoke, tmp_path):
    (tmp_path / "d.csv").write_text("body,title,year\nA text. And more.,T,1999\nAnother one.,U,2001\n")
    options = ["--text-column", "body", "--metadata", "year:int", "--level", "word", "--layer", "2", "--tol", "0.01"]
    options += ["--reference", "mask", "--reference-terms", "keep", "--measure", "dot", "--precision", "float32"]
    invoke("index", tmp_path / "d.csv", "-o", tmp_path / "index", "--model", model, *options)
    index = Index.open(tmp_path / "index")
    settings = index.settings.to_json()
    assert settings["method"] == {"kind": "IntegratedJacobian", "layer": 2, "reference": "mask"}
    assert settings["rule"]["tol"] == 0.01
    names = ("level", "reference_terms", "measure", "precision")
    assert [settings[name] for name in names] == ["word", "keep", "dot", "float32"]
    assert index.metadata == {"year": "int"}
    assert len(index) == 2


def test_other_settings_and_columns_are_refused(made, invoke):
    data, path, _ = made
    done = invoke("index", data, "--out", path, "--id-column", "id", "--passes", "16", code=2)
    assert "method is Banzhaf(), not Banzhaf(passes=16)" in done.stderr
    done = invoke("index", data, "--out", path, "--id-column", "id", "--metadata", "text", code=2)
    assert "the index keeps no metadata 'text'; it was made with year" in done.stderr


def test_another_model_is_refused(made, invoke, tmp_path):
    _, path, _ = made
    zoo.encoder("mpnet").save(str(tmp_path / "other"))
    done = invoke("search", path, "coffee", "--model", tmp_path / "other", code=2)
    assert "the index was made with the model" in done.stderr


def test_delete_verify_and_approximate(own, invoke):
    done = invoke("index", "--out", own, "--delete", "t0", "--delete", "nobody", "--verify", "--sample", "3")
    assert "1 texts deleted, 2 named" in done.stderr
    assert "3 texts decomposed again: the largest difference is" in done.stderr
    assert "approximate search is ready" in invoke("index", "--out", own, "--approximate").stderr
    assert "  1  " in invoke("search", own, "coffee", "--approximate", "-k", "2").stdout
    index = Index.open(own)
    index.store.write(index.store._table.to_arrow().take([1]), replace=False)
    done = invoke("index", "--out", own, "--verify", "--sample", "2", code=1)
    assert "is there more than once" in done.stderr


def test_update(own, invoke, tmp_path):
    (tmp_path / "new.csv").write_text("id,text,year\nt1,A changed text.,1\nnew,A new one.,2\n")
    refused = invoke("index", tmp_path / "new.csv", "--out", own, "--id-column", "id")
    assert "1 added, 0 updated" in refused.stderr
    assert "rows that could not be used: 1" in refused.stderr
    assert (
        "0 added, 1 updated, 1 there before"
        in invoke("index", tmp_path / "new.csv", "--out", own, "--id-column", "id", "--update").stderr
    )


def test_long_texts_are_cut_or_split(model, invoke, tmp_path):
    (tmp_path / "d.csv").write_text(f"text\n{'The coffee here is not so good. ' * 12}\n")
    command = "index", tmp_path / "d.csv", "--model", model, "--out"
    said = invoke(*command, tmp_path / "a").stderr
    assert "of which only the beginning is indexed: 1; --passages splits them" in said
    said = invoke(*command, tmp_path / "b", "--passages").stderr
    assert "2 added" in said
    assert "warning" not in said
    assert {c.text for c in Index.open(tmp_path / "b").fetch(["1#1", "1#2"]).values()} < {
        " ".join(["The coffee here is not so good."] * n) for n in range(12)
    }


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["index", "--out", "x"], "nothing to do: give a table of texts, or --delete, --verify or --approximate"),
        (["index", "nowhere.csv", "--out", "x"], "there is no file nowhere.csv"),
        (["index", "--out", "nowhere", "--verify"], "there is no index in nowhere"),
        (
            ["search", "nowhere", "query"],
            "there is no index in nowhere. Make one with: pairlens index DATA --out nowhere",
        ),
        (["search", "nowhere", "query", "--save", "a.pdf"], "unknown file suffix '.pdf'"),
        (["explain-pairs", "a.csv", "-i", "nowhere", "-o", "x"], "there is no file a.csv"),
    ],
)
def test_what_is_wrong_is_said(invoke, arguments, said, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert said in invoke(*arguments, code=2).stderr


def test_workers_need_a_cluster(made, invoke):
    data, path, _ = made
    assert "--workers is for a cluster" in invoke("index", data, "--out", path, "--workers", "2", code=2).stderr


# Search.


def test_search(made, invoke):
    _, path, _ = made
    done = invoke("search", path, "the coffee is good", "-k", "3", "--where", "metadata.year > 1995")
    hits = Index.open(path).search("the coffee is good", 3, where="metadata.year > 1995")
    for hit in hits:
        assert f"{hit.rank:>3}  {hit.score:.4f}  {hit.id}" in done.stdout
        assert hit.passage[0].text.split()[0] in done.stdout
        assert " · " in done.stdout
    assert "\x1b" not in done.stdout
    assert "nothing was found" in invoke("search", path, "coffee", "--where", "metadata.year > 3000").stderr


def test_search_json(made, invoke):
    _, path, _ = made
    hits = json.loads(invoke("search", path, "the coffee is good", "-k", "2", "--json").stdout)
    expected = Index.open(path).search("the coffee is good", 2)
    assert [hit["id"] for hit in hits] == [hit.id for hit in expected]
    first = hits[0]
    assert first["score"] == expected[0].score
    assert first["text"][first["passage"]["start"] : first["passage"]["end"]] == first["passage"]["text"]
    assert first["pairs"][0]["value"] == expected[0].top(1)[0].value
    assert first["metadata"] == dict(expected[0].metadata)


def test_search_zooms_unless_told_otherwise(made, invoke):
    _, path, _ = made
    for option, zoom in (("--zoom", True), ("--no-zoom", False)):
        shown = json.loads(invoke("search", path, "the coffee is good", "-k", "2", "--json", option).stdout)
        hits = Index.open(path).search("the coffee is good", 2, zoom=zoom)
        expected = [[pair.b.text for pair in hit.top(8)] for hit in hits]
        assert [[pair["b"] for pair in hit["pairs"]] for hit in shown] == expected
        assert any(unit.kind == "sentence" for unit in hits[0].explanation.units_b) == zoom


def test_search_save(made, invoke, tmp_path):
    _, path, _ = made
    invoke("search", path, "the coffee is good", "-k", "3", "--save", tmp_path / "hits.html")
    page = (tmp_path / "hits.html").read_text(encoding="utf-8")
    for hit in Index.open(path).search("the coffee is good", 3):
        assert f'"label":"{hit.id}"' in page.replace(": ", ":")


def test_why_not(made, invoke):
    _, path, _ = made
    ranked = Index.open(path).search("the coffee is good", 34)
    done = invoke("search", path, "the coffee is good", "-k", "3", "--why-not", ranked[9].id)
    assert done.stdout.startswith("a is closer")
    assert done.stdout.endswith(f"a is the last of the hits, b is {ranked[9].id}\n")
    done = invoke("search", path, "the coffee is good", "-k", "3", "--why-not", ranked[1].id, code=2)
    assert "is hit 2 of 3: nothing keeps it below the last one" in done.stderr


ONE_SENTENCE = "The coffee here is not good."


@pytest.fixture(scope="module")
def titled(model, tmp_path_factory):
    """An index whose ids and titles are in columns that the command finds by itself, and what the command said."""
    folder = tmp_path_factory.mktemp("titled")
    rows = [("d1", "On coffee", ONE_SENTENCE), ("d2", "", "The tea is hot. It rains."), ("d3", "Cats", "A cat sleeps.")]
    lines = [json.dumps({"doc_id": name, "title": title, "text": text}) for name, title, text in rows]
    (folder / "texts.jsonl").write_text("\n".join(lines))
    arguments = ["index", folder / "texts.jsonl", "--out", folder / "index", "--model", model]
    done = CliRunner().invoke(app, list(map(str, arguments)), catch_exceptions=False)
    return folder / "index", done.stderr


def test_first_the_column_of_ids_is_found_and_named(titled, invoke):
    path, said = titled
    assert "texts.jsonl: the texts are in the column text, named by doc_id" in said
    assert {hit.id for hit in Index.open(path).search("coffee", 3)} == {"d1", "d2", "d3"}


def test_first_hits_have_their_titles(titled, invoke, tmp_path):
    path, _ = titled
    shown = invoke("search", path, "Is the coffee bad?", "-k", "3", "--save", tmp_path / "hits.html").stdout
    assert re.search(r"^ +\d  0\.\d{4}  d1  On coffee$", shown, re.MULTILINE)
    assert re.search(r"^ +\d  0\.\d{4}  d2 *$", shown, re.MULTILINE)
    assert json.dumps("d1 · On coffee") in (tmp_path / "hits.html").read_text(encoding="utf-8")


def test_first_a_text_of_one_sentence_is_printed_once(titled, invoke):
    shown = invoke("search", titled[0], "Is the coffee bad?", "-k", "3", "--no-zoom").stdout
    assert shown.count(ONE_SENTENCE) == 1
    assert "coffee · this sentence" in shown


@pytest.mark.parametrize(
    ("values", "errors", "shown"),
    [
        ((0.30, 0.28, 0.10), (0.001, 0.001, 0.03), ["+0.3000   one ·", "+0.2800   two ·", "+0.1000   three ·"]),
        ((0.30, 0.28, 0.10), (0.03, 0.03, 0.03), ["±0.0300  one ·", "±0.0300  two ·", "+0.1000   three ·"]),
        ((0.30, 0.28, 0.10), (0.2, 0.2, 0.2), ["no pair stands out from the noise"]),
    ],
)
def test_first_errors_are_shown_where_they_decide_the_order(titled, values, errors, shown):
    (hit,) = Index.open(titled[0]).search("one two three", 1, zoom=False)
    e = hit.explanation
    texts = [i for i, unit in enumerate(e.units_a) if unit.kind == "text"]
    column = next(j for j, unit in enumerate(e.units_b) if unit.text == hit.passage[0].text)
    matrix, error = np.zeros_like(e.matrix), np.zeros_like(e.matrix)
    matrix[texts, column], error[texts, column] = values, errors
    vars(hit)["explanation"] = replace(e, matrix=matrix, entry_error=error)
    lines = [line.plain.rstrip() for line in listing(hit, 80)][-len(shown) :]
    assert all(expected in line for expected, line in zip(shown, lines, strict=True)), lines


def test_first_an_interrupted_index_names_nothing_that_is_not_there(titled, invoke, model, tmp_path, monkeypatch):
    (tmp_path / "d.csv").write_text("text\n" + "A text.\n" * 40)
    real, calls = IngestStage.__call__, []

    def interrupted(self, block):
        calls.append(block)
        if len(calls) in (1, 3):
            raise KeyboardInterrupt
        return real(self, block)

    monkeypatch.setattr(IngestStage, "__call__", interrupted)
    line = "index", tmp_path / "d.csv", "--out", tmp_path / "index", "--model", model
    assert "interrupted; nothing was done yet." in invoke(*line, code=130).stderr
    assert "interrupted; what is done is kept. Give the same command again" in invoke(*line, code=130).stderr
    assert len(calls[1][1]) == 16, "few texts are lost"
    assert "40 texts in" in invoke(*line).stderr


# Explain-pairs.


def test_explain_pairs(made, invoke, tmp_path):
    _, path, _ = made
    (tmp_path / "pairs.csv").write_text("id_a,id_b\nt1,t2\nt2,nobody\n")
    done = invoke("explain-pairs", tmp_path / "pairs.csv", "--index", path, "-o", tmp_path / "out", "--top", "2")
    assert "1 pair explained" in done.stderr
    assert "rows that could not be used: 1" in done.stderr
    (row,) = parquet.read_table(tmp_path / "out" / "part-00000000.parquet").to_pylist()
    assert row["score"] == pytest.approx(Index.open(path).compare("t1", "t2").score, abs=1e-6)
    assert "such as line 3: the index has no text 'nobody' (" in done.stderr
    done = invoke("explain-pairs", tmp_path / "pairs.csv", "--index", path, "-o", tmp_path / "out", code=2)
    assert "top was 2 and is 8" in done.stderr
