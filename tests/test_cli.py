"""The command line: what it prints, what it writes, what it says when something is wrong, and that it resumes."""

from __future__ import annotations

import csv
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from importlib import import_module
from pathlib import Path

import pytest
from typer.testing import CliRunner

import pairlens
import zoo
from pairlens.cli import app, batch
from pairlens.cli.models import describe
from pairlens.errors import InputError, NotConverged
from pairlens.explanation import Explanation
from pairlens.journal import Journal
from pairlens.loading import offline_model
from pairlens.tables import Source

A, B = "The coffee here is not good.", "This coffee is bad."
SOURCE = str(Path(pairlens.__file__).parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCE, "HF_HUB_OFFLINE": "1", "COLUMNS": "80"}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    zoo.encoder("bert").save(str(folder))
    return str(folder)


@pytest.fixture(scope="module")
def lens(tiny) -> pairlens.Lens:
    return pairlens.Lens(tiny)


@pytest.fixture
def loaded() -> list[bool]:
    """Grows when a command asks for the model."""
    return []


@pytest.fixture
def invoke(lens, loaded, monkeypatch):
    """Run a command in this process with the tiny model at its last layer, which is quick."""

    def load(request):
        loaded.append(True)
        lens.strict = request.strict
        return lens

    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("pairlens.cli.options.Request.load", load)

    def run(*arguments, layer="-1", text=None):
        given = [str(argument) for argument in arguments]
        if given[0] in ("explain", "batch") and layer:
            given += ["--layer", layer]
        return CliRunner().invoke(app, given, input=text, catch_exceptions=False)

    return run


def command(*arguments, **options) -> subprocess.CompletedProcess[str]:
    """Run a command as a user does."""
    line = [sys.executable, "-m", "pairlens.cli", *map(str, arguments)]
    return subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT, check=False, timeout=120, **options)


# Starting.


def test_nothing_heavy_is_imported():
    code = (
        "import sys, pairlens.cli; print(sorted({'torch', 'numpy', 'transformers', 'rich.table'} & set(sys.modules)))"
    )
    line = [sys.executable, "-c", code]
    done = subprocess.run(line, capture_output=True, text=True, env=ENVIRONMENT, check=True)
    assert done.stdout.strip() == "[]"


def test_help_answers_at_once():
    def seconds() -> float:
        start = time.perf_counter()
        assert "explain" in command("--help").stdout
        return time.perf_counter() - start

    assert min(seconds() for _ in range(3)) < 1.0


def test_version(invoke):
    assert invoke("--version").stdout == f"pairlens {pairlens.__version__}\n"


# Explain.


def test_explain(invoke):
    done = invoke("explain", A, B)
    assert done.exit_code == 0
    assert done.stdout.startswith(f"a  {A}")
    for text in (B, "coffee", "strongest pairs", "score ", "gap of the texts", "level word", "layer 3"):
        assert text in done.stdout
    assert "\x1b" not in done.stdout


def test_explain_json_is_the_explanation(invoke, tmp_path):
    done = invoke(
        "explain", A, B, "--json", "--level", "token", "--save", tmp_path / "why.json", "-s", tmp_path / "w.csv"
    )
    document = json.loads(done.stdout)
    assert document["format"] == "pairlens.explanation"
    assert document["settings"]["level"] == "token"
    assert (tmp_path / "why.json").read_text(encoding="utf-8") == done.stdout
    assert Explanation.load(tmp_path / "w.csv").score == document["score"]


def test_options_reach_the_lens(invoke):
    options = ["--level", "sentence", "--reference", "mask", "--reference-terms", "ignore", "--measure", "dot"]
    done = invoke("explain", A, B, *options, "--tol", "1e-2", "--json", layer="2")
    settings = json.loads(done.stdout)["settings"]
    assert (settings["level"], settings["reference"], settings["reference_terms"]) == ("sentence", "mask", "ignore")
    assert (settings["measure"], settings["layer"]) == ("dot", 2)
    assert "0.01" in settings["rule"]


@pytest.mark.parametrize(
    ("options", "expected"),
    [
        ([], {"method": "shapley", "layer": None, "seed": 0}),
        (["--passes", "20", "--seed", "4"], {"method": "shapley", "seed": 4}),
        (["--method", "occlusion"], {"method": "occlusion"}),
        (["--method", "fade"], {"method": "fade"}),
        (["--layer", "1"], {"method": "integrated-jacobian", "layer": 1}),
        (
            ["--exact-to-paper"],
            {"method": "integrated-jacobian", "layer": 2, "rule": "Riemann(n=50)", "reference_terms": "ignore"},
        ),
        (["--exact-to-paper", "--layer", "1"], {"layer": 1, "rule": "Riemann(n=50)"}),
    ],
    ids=str,
)
def test_methods_and_presets(invoke, options, expected):
    settings = json.loads(invoke("explain", A, B, *options, "--json", layer=None).stdout)["settings"]
    assert {name: settings[name] for name in expected} == expected


def test_texts_from_files_and_standard_input(invoke, tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffDie Züge fahren.\r\n".encode())
    document = json.loads(invoke("explain", f"@{tmp_path / 'a.txt'}", "-", "--json", text="Züge\nund Autos\n").stdout)
    assert (document["text_a"], document["text_b"]) == ("Die Züge fahren.", "Züge\nund Autos")
    assert json.loads(invoke("explain", "@@me", "b", "--json").stdout)["text_a"] == "@me"


def test_markup_is_text(invoke):
    done = invoke("explain", "[bold]good[/bold] [/]", "[red]coffee")
    assert done.exit_code == 0
    assert "[bold]good[/bold] [/]" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["explain", "  ", "b"], "empty"),
        (["explain", "-", "-"], "only one"),
        (["explain", "@nowhere.txt", "b"], "@@nowhere.txt"),
        (["explain", "a \udcff", "b"], "UTF-8"),
        (["explain", "a", "b", "--save", "why.jsn"], "Did you mean '.json'"),
        (["explain", "a", "b", "--save", "nowhere/why.json"], "does not exist"),
        (["explain", "a", "b", "--level", "words"], "Did you mean 'word'"),
        (["explain", "a", "b", "--method", "gradcam"], "integrated-jacobian"),
        (["explain", "a", "b", "--reference", "pad"], "padding"),
        (["explain", "a", "b", "--measure", "cosinus"], "Did you mean 'cosine'"),
        (["explain", "a", "b", "--reference-terms", "projekt"], "Did you mean 'project'"),
        (["explain", "a", "b", "--layer", "9"], "3 layers"),
        (["explain", "a", "b", "--tol", "-1"], "tol"),
        (["explain", "a", "b", "--method", "fade", "--layer", "1"], "for integrated-jacobian"),
        (["explain", "a", "b", "--method", "fade", "--passes", "9"], "--method shapley"),
        (["explain", "a", "b", "--exact-to-paper", "--method", "fade"], "leave one of them out"),
    ],
)
def test_bad_input_is_one_line(invoke, arguments, message, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    done = invoke(*arguments, layer=None)
    assert done.exit_code == 2
    assert done.stdout == ""
    assert done.stderr.startswith("error: ")
    assert done.stderr.count("\n") == 1
    assert message in done.stderr


def test_long_texts_warn_and_strict_refuses(invoke):
    done = invoke("explain", "coffee " * 200, B)
    assert done.exit_code == 0
    assert "warning: " in done.stderr
    assert "longer than the model takes" in done.stderr
    assert "only its beginning is explained" in done.stdout
    strict = invoke("explain", "coffee " * 200, B, "--strict")
    assert strict.exit_code == 2
    assert "error: " in strict.stderr


def test_not_converging_is_exit_code_1(invoke, monkeypatch):
    def explain(*_, **__):
        raise NotConverged("the gap is 1e-2.", gap=1e-2, tol=1e-3)

    monkeypatch.setattr("pairlens.lens.Lens.explain", explain)
    done = invoke("explain", A, B)
    assert (done.exit_code, done.stderr) == (1, "error: the gap is 1e-2.\n")


def test_an_interruption_is_exit_code_130(invoke, monkeypatch):
    def explain(*_, **__):
        raise KeyboardInterrupt

    monkeypatch.setattr("pairlens.lens.Lens.explain", explain)
    done = invoke("explain", A, B)
    assert (done.exit_code, done.stderr) == (130, "interrupted\n")


def test_a_bug_keeps_its_traceback(invoke, monkeypatch):
    def explain(*_, **__):
        raise ZeroDivisionError

    monkeypatch.setattr("pairlens.lens.Lens.explain", explain)
    with pytest.raises(ZeroDivisionError):
        invoke("explain", A, B)


def test_explain_as_a_user_does(tiny):
    done = command("explain", A, B, "--model", tiny, "--layer", "-1")
    assert done.returncode == 0
    assert "coffee" in done.stdout
    assert "\x1b" not in done.stdout
    assert "Loading" not in done.stderr  # a progress bar of transformers
    warned = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert warned == []


def test_a_closed_pipe_is_no_traceback(tiny):
    line = [sys.executable, "-m", "pairlens.cli", "explain", A, B, "--model", tiny, "--layer", "-1", "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_a_model_that_is_not_there():
    done = command("explain", "a", "b", "--model", "nobody/nothing")
    assert done.returncode == 1
    assert done.stderr.startswith("error: ")
    assert "pairlens[offline]" in done.stderr
    assert done.stderr.count("\n") == 1


# Tables of pairs.


def rows(path: Path, text: str | bytes, columns=None):
    path.write_bytes(text.encode() if isinstance(text, str) else text)
    return [(row.number, row.line, row.a, row.b, row.reason) for row in Source(path, columns).rows()]


def test_csv_with_a_known_header(tmp_path):
    text = '\ufeffid,Sentence2,sentence1\r\n1,"x, ""y""\nz",w\r\n\r\n2,v\r\n3,,u\r\n'
    assert rows(tmp_path / "p.csv", text) == [
        (1, 2, "w", 'x, "y"\nz', ""),
        (2, 5, "", "v", "text a is missing"),
        (3, 6, "u", "", "text b is empty"),
    ]


def test_csv_without_a_header(tmp_path):
    assert rows(tmp_path / "p.csv", "x,y\nz,w,v\n") == [(1, 1, "x", "y", ""), (2, 2, "z", "w", "")]
    assert not Source(tmp_path / "p.csv").header()


def test_tsv_has_no_quotes(tmp_path):
    assert rows(tmp_path / "p.tsv", 'a\tb\n"x\ty"\n') == [(1, 2, '"x', 'y"', "")]


def test_named_columns(tmp_path):
    assert rows(tmp_path / "p.csv", "left,right\nx,y\n", ("right", "left")) == [(1, 2, "y", "x", "")]
    with pytest.raises(InputError, match="Did you mean 'left'"):
        rows(tmp_path / "p.csv", "left,right\nx,y\n", ("lefd", "right"))


def test_jsonl(tmp_path):
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


def test_parquet(tmp_path):
    pa, parquet = import_module("pyarrow"), import_module("pyarrow.parquet")
    parquet.write_table(pa.table({"id": [1, 2], "left": ["x", None], "right": ["y", "z"]}), tmp_path / "p.parquet")
    found = [(row.a, row.b, row.reason) for row in Source(tmp_path / "p.parquet").rows()]
    assert found == [("x", "y", ""), ("", "z", "text a is missing")]


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


# Batch.


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
    assert "rows that could not be used: 1" in done.stderr
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
    assert "level was 'word' and is 'sentence'" in done.stderr
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


def test_two_runs_do_not_share_a_journal(tmp_path):
    pytest.importorskip("fcntl")
    with Journal(tmp_path / "x.part", {}), pytest.raises(InputError, match="another run"):
        Journal(tmp_path / "x.part", {})


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
    from pairlens.lens import Lens

    real = Lens.explain_many

    def explain_many(self, pairs, **options):
        for pair in pairs:
            if zoo.TEXTS[5] in pair:
                raise NotConverged("the gap is 1e-2.", gap=1e-2, tol=1e-3)
            yield from real(self, [pair], **options)

    monkeypatch.setattr(Lens, "explain_many", explain_many)
    done = invoke("batch", table, "-o", tmp_path / "out.jsonl")
    assert done.exit_code == 0
    with (tmp_path / "out.jsonl.rejects.csv").open(encoding="utf-8", newline="") as file:
        rejects = [row["reason"] for row in csv.DictReader(file)]
    assert "the gap is 1e-2." in rejects
    assert "text a is empty" in rejects
    explained = (tmp_path / "out.jsonl").read_text(encoding="utf-8").splitlines()
    assert len(explained) + len(rejects) == 11


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
def test_killed_and_started_again_as_a_user_does(how, tiny, tmp_path):
    line = ["batch", many(tmp_path / "pairs.csv", 100), "--model", tiny, "--layer", "-1", "--chunk", "2", "-o"]
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


# Models.


def test_models_lists_the_bundled_model(invoke, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    done = invoke("models")
    assert done.exit_code == 0
    line = next(line for line in done.stdout.splitlines() if "all-MiniLM-L6-v2" in line)
    assert line.split()[-4:] == ["6", "384", "mean", "cosine"]


def test_models_reads_the_cache(invoke, tiny, tmp_path, monkeypatch):
    snapshot = tmp_path / "models--me--tiny" / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir(parents=True)
    (tmp_path / "models--me--tiny" / "blobs").mkdir()
    shutil.copytree(tiny, snapshot)
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(tmp_path))
    line = next(line for line in invoke("models").stdout.splitlines() if "me/tiny" in line)
    assert line.split() == ["me/tiny", "3", "32", "mean", "cosine"]


def test_models_when_there_are_none(invoke, tmp_path, monkeypatch):
    monkeypatch.setattr("pairlens.loading.offline_model", lambda: None)
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(tmp_path / "nothing"))
    done = invoke("models")
    assert done.exit_code == 0
    assert "pairlens[offline]" in done.stderr


def test_describe_old_and_broken_configurations(tmp_path, tiny):
    bundled = offline_model()
    assert bundled is not None
    assert describe("x", bundled).pooling == "mean"
    assert describe("x", Path(tiny)).layers == "3"
    (tmp_path / "modules.json").write_text("{oops")
    found = describe("x", tmp_path)
    assert (found.layers, found.pooling) == ("?", "?")
