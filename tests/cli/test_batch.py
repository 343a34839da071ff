"""`pairlens batch`: what it writes, what it says when something is wrong, and that it resumes."""

from __future__ import annotations

import csv
import json
import os
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path
from typing import Any

import pandas as pd
import pytest

import zoo
from commands import ENVIRONMENT, command
from pairlens.cli import batch
from pairlens.errors import NotConverged


@pytest.fixture
def table(tmp_path) -> Path:
    """Eleven rows, one of which cannot be used and two of which are the same."""
    texts = zoo.TEXTS
    pairs = [(texts[i % 8], texts[(3 * i + 1) % 8]) for i in range(9)] + [(" ", texts[0]), ("coffee " * 99, texts[1])]
    with (tmp_path / "pairs.csv").open("w", encoding="utf-8", newline="") as file:
        csv.writer(file).writerows([("a", "b"), *pairs])
    return tmp_path / "pairs.csv"


def test_batch(invoke, table, tmp_path):
    done = invoke("batch", table, "-o", tmp_path / "out.jsonl", "--chunk", 4, "--top", 3)
    assert done.exit_code == 0
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    assert [record["row"] for record in records] == [1, 2, 3, 4, 5, 6, 7, 8, 9, 11]
    assert [record["truncated"] for record in records] == [False] * 9 + [True]
    for record in records:
        total = sum(record[name] for name in ("base", "effects_a", "effects_b", "pairs", "gap"))
        assert total == pytest.approx(record["score"], abs=1e-12)
        assert len(record["top"]) == 3
    single = json.loads(invoke("explain", records[0]["a"], records[0]["b"], "--json").stdout)
    assert records[0]["score"] == pytest.approx(single["score"], abs=1e-6)
    with (tmp_path / "out.jsonl.rejects.csv").open(encoding="utf-8", newline="") as file:
        assert [(row["line"], row["reason"]) for row in csv.DictReader(file)] == [("11", "text a is empty")]
    assert "10 pairs explained" in done.stderr
    assert "rows that could not be used: 1, such as line 11: text a is empty (" in done.stderr
    assert "longer than the model takes" in done.stderr
    assert not (tmp_path / "out.jsonl.part").exists()


def test_batch_formats_agree(invoke, table, tmp_path):
    for suffix in ("jsonl", "csv", "parquet"):
        assert invoke("batch", table, "-o", tmp_path / f"out.{suffix}").exit_code == 0
    records = [json.loads(line) for line in (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()]
    found = import_module("pyarrow.parquet").read_table(tmp_path / "out.parquet")
    assert found.to_pylist() == records
    assert json.loads(found.schema.metadata[b"pairlens"])["layer"] == -1
    with (tmp_path / "out.csv").open(encoding="utf-8", newline="") as file:
        for row, record in zip(csv.DictReader(file), records, strict=True):
            assert json.loads(row["top"]) == record["top"]
            assert float(row["score"]) == record["score"]


def test_batch_resumes_from_any_byte(invoke, table, tmp_path):
    whole, out, part = tmp_path / "whole.jsonl", tmp_path / "out.jsonl", tmp_path / "out.jsonl.part"
    options = ["--chunk", "4"]
    assert invoke("batch", table, "-o", whole, *options).exit_code == 0
    # The journal of a whole run, as it is before the output is written.
    kept: list[bytes] = []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pairlens.cli.batch._finish", lambda *_: kept.append(part.read_bytes()))
        assert invoke("batch", table, "-o", out, *options).exit_code == 0
    journal = kept[0]
    ends = [i + 1 for i, byte in enumerate(journal) if byte == 10]
    for size in (0, 5, ends[0], ends[0] + 7, ends[4] - 1, ends[4], ends[6] + 20, ends[-1] - 1, ends[-1]):
        part.write_bytes(journal[:size])
        done = invoke("batch", table, "-o", out, "--overwrite", *options)
        assert done.exit_code == 0
        assert out.read_bytes() == whole.read_bytes()
        rejects = out.with_name("out.jsonl.rejects.csv")
        assert rejects.read_bytes() == whole.with_name("whole.jsonl.rejects.csv").read_bytes()
        assert ("going on after row" in done.stderr) == (size >= ends[4])
        assert not part.exists()


def test_batch_refuses_what_has_changed(invoke, table, tmp_path):
    out, part = tmp_path / "out.csv", tmp_path / "out.csv.part"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("pairlens.cli.batch._finish", lambda *_: os.link(part, tmp_path / "kept"))
        invoke("batch", table, "-o", out)
    (tmp_path / "kept").rename(part)
    done = invoke("batch", table, "-o", out, "--level", "sentence")
    assert done.exit_code == 2
    assert "level was None and is 'sentence'" in done.stderr
    assert "--restart" in done.stderr
    table.write_text(table.read_text(encoding="utf-8") + "x,y\n", encoding="utf-8")
    done = invoke("batch", table, "-o", out)
    assert "input was" in done.stderr
    assert invoke("batch", table, "-o", out, "--restart").exit_code == 0
    assert not part.exists()


def test_batch_keeps_an_existing_output(invoke, table, tmp_path):
    out = tmp_path / "out.csv"
    out.write_text("precious")
    done = invoke("batch", table, "-o", out)
    assert done.exit_code == 2
    assert "--overwrite" in done.stderr
    assert out.read_text() == "precious"
    assert invoke("batch", table, "-o", out, "--overwrite").exit_code == 0
    done = invoke("batch", table, "-o", table, "--overwrite")
    assert done.exit_code == 2
    assert "itself" in done.stderr


def test_a_foreign_part_file_is_left_alone(invoke, table, tmp_path):
    for content in ("my notes", "[1, 2]\n"):
        (tmp_path / "out.csv.part").write_text(content)
        done = invoke("batch", table, "-o", tmp_path / "out.csv")
        assert done.exit_code == 2
        assert "not written by pairlens" in done.stderr
        assert (tmp_path / "out.csv.part").read_text() == content


def test_bad_options_reject_no_rows(invoke, table, tmp_path):
    for options, message in (
        (["--layer", "9"], "3 layers"),
        (["--column-a", "a"], "go together"),
        (["--measure", "x"], "cosine"),
    ):
        done = invoke("batch", table, "-o", tmp_path / "out.csv", *options, layer=None)
        assert done.exit_code == 2
        assert message in done.stderr
        assert [path.name for path in tmp_path.iterdir()] == ["pairs.csv"]


def test_strict_batch_stops_at_the_line(invoke, loaded, table, tmp_path):
    done = invoke("batch", table, "-o", tmp_path / "out.csv", "--strict")
    assert done.exit_code == 2
    assert "line 11: text a is empty" in done.stderr
    assert not loaded
    (tmp_path / "long.csv").write_text(f"a,b\nx,y\n{'coffee ' * 99},z\n", encoding="utf-8")
    done = invoke("batch", tmp_path / "long.csv", "-o", tmp_path / "out.csv", "--strict")
    assert done.exit_code == 2
    assert "line 3: " in done.stderr


def test_a_row_that_fails_is_rejected_alone(invoke, table, tmp_path, monkeypatch):
    from pairlens.attribution.decomposer import Decomposer

    real = Decomposer.decompose

    def decompose(self, jobs):
        if any(job.text == zoo.TEXTS[5] for job in jobs):
            raise NotConverged("the gap is 1e-2.", gap=1e-2, tol=1e-3)
        return real(self, jobs)

    monkeypatch.setattr(Decomposer, "decompose", decompose)
    done = invoke("batch", table, "-o", tmp_path / "out.jsonl")
    assert done.exit_code == 0
    with (tmp_path / "out.jsonl.rejects.csv").open(encoding="utf-8", newline="") as file:
        rejects = [row["reason"] for row in csv.DictReader(file)]
    assert "the gap is 1e-2." in rejects
    assert "text a is empty" in rejects
    explained = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(explained) + len(rejects) == 11


def test_first_an_interruption_before_the_first_chunk_names_no_file(invoke, table, tmp_path):
    def explain(*_):
        raise KeyboardInterrupt

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "_explain", explain)
        done = invoke("batch", table, "-o", tmp_path / "out.csv")
    assert done.exit_code == 130
    assert "interrupted; nothing was done yet." in done.stderr
    assert ".part" not in done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["pairs.csv"]


def test_first_an_interruption_loses_few_pairs(invoke, tmp_path, monkeypatch):
    sizes, real = [], batch._explain
    monkeypatch.setattr(batch, "_explain", lambda lens, rows, *rest: sizes.append(len(rows)) or real(lens, rows, *rest))
    assert invoke("batch", many(tmp_path / "pairs.csv", 40), "-o", tmp_path / "out.csv").exit_code == 0
    assert sizes == [16, 16, 8]


def test_first_the_columns_that_are_taken_are_named(invoke, tmp_path):
    (tmp_path / "pairs.csv").write_text("id;Sentence 1;Sentence 2\n7;A cat, asleep.;A dog; awake\n8;A cat.;A dog.\n")
    done = invoke("batch", tmp_path / "pairs.csv", "-o", tmp_path / "out.csv")
    assert "pairs.csv: the texts are in the columns Sentence 1 and Sentence 2" in done.stderr
    assert pd.read_csv(tmp_path / "out.csv")["id"].tolist() == [7, 8]


def test_an_interrupted_batch_says_how_to_go_on(invoke, table, tmp_path):
    real, calls = batch._explain, []

    def explain(*arguments):
        calls.append(1)
        if len(calls) > 1:
            raise KeyboardInterrupt
        return real(*arguments)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(batch, "_explain", explain)
        done = invoke("batch", table, "-o", tmp_path / "out.csv", "--chunk", 4)
    assert done.exit_code == 130
    assert "Give the same command again to go on" in done.stderr
    assert "going on after row 4 of 11" in invoke("batch", table, "-o", tmp_path / "out.csv", "--chunk", 4).stderr


def many(path: Path, count: int) -> Path:
    with path.open("w", encoding="utf-8", newline="") as file:
        pairs = ((f"{zoo.TEXTS[i % 8]} {i}", zoo.TEXTS[(3 * i) % 8]) for i in range(count))
        csv.writer(file).writerows([("a", "b"), *pairs])
    return path


def wait_for(part: Path, lines: int, alive) -> None:
    while alive() and not (part.exists() and part.read_bytes().count(b"\n") > lines):
        time.sleep(0.002)


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_killed_and_started_again(invoke, tmp_path):
    """A process killed in the middle of its work; the next one ends with the same bytes."""
    out, part = tmp_path / "out.parquet", tmp_path / "out.parquet.part"
    line = ["batch", many(tmp_path / "pairs.csv", 100), "--chunk", 3, "-o"]
    child = os.fork()
    if not child:
        invoke(*line, out)
        os._exit(0)
    wait_for(part, 8, lambda: os.waitpid(child, os.WNOHANG) == (0, 0))
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert not out.exists()
    assert 8 < part.read_bytes().count(b"\n") < 100
    assert "going on after row" in invoke(*line, out).stderr
    assert invoke(*line, tmp_path / "whole.parquet").exit_code == 0
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"pairs.csv", "out.parquet", "whole.parquet"}


@pytest.mark.slow
@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGINT])
def test_killed_and_started_again_as_a_user_does(how, model, tmp_path):
    line = ["batch", many(tmp_path / "pairs.csv", 100), "--model", model, "--layer", "-1", "--chunk", "2", "-o"]
    out, part = tmp_path / "out.parquet", tmp_path / "out.parquet.part"
    with subprocess.Popen(
        [sys.executable, "-m", "pairlens.cli", *map(str, line), str(out)],
        stderr=subprocess.PIPE,
        env=ENVIRONMENT,
        # What runs in the background ignores interrupts, and so would its children.
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    ) as process:
        wait_for(part, 6, lambda: process.poll() is None)
        process.send_signal(how)
        assert process.wait() == (130 if how == signal.SIGINT else -signal.SIGKILL)
    assert not out.exists()
    assert 6 < part.read_bytes().count(b"\n") < 100
    again = command(*line, out)
    assert again.returncode == 0
    assert "going on after row" in again.stderr
    assert command(*line, tmp_path / "whole.parquet").returncode == 0
    assert out.read_bytes() == (tmp_path / "whole.parquet").read_bytes()
    assert {path.name for path in tmp_path.iterdir()} == {"pairs.csv", "out.parquet", "whole.parquet"}


@pytest.mark.parametrize("suffix", [".csv", ".jsonl", ".parquet"])
def test_first_the_result_keeps_the_other_columns(invoke, tmp_path, suffix):
    (tmp_path / "pairs.jsonl").write_text(
        '{"id": 7, "a": "A cat.", "b": "A dog.", "score": 0.5, "tags": ["x"]}\n'
        '{"id": 8, "a": "A dog.", "b": "A cat.", "score": 0.25, "tags": null}\n'
    )
    out = tmp_path / f"out{suffix}"
    done = invoke("batch", tmp_path / "pairs.jsonl", "-o", out)
    assert done.exit_code == 0, done.stderr
    read = {".csv": pd.read_csv, ".jsonl": lambda path: pd.read_json(path, lines=True), ".parquet": pd.read_parquet}
    table: Any = read[suffix](out)
    assert table["id"].tolist() == [7, 8]
    assert table["input_score"].tolist() == [0.5, 0.25]
    assert table["tags"][0] == '["x"]'
    assert table["tags"].isna().tolist() == [False, True]
    assert table["score"][0] == pytest.approx(table["score"][1])


def test_first_a_large_base_beside_effects_is_no_warning(invoke, table, tmp_path):
    warning = "pairs whose base is more than half of the score"
    assert warning not in invoke("batch", table, "-o", tmp_path / "deletions.csv", layer=None).stderr
    assert warning in invoke("batch", table, "-o", tmp_path / "integrals.csv").stderr
