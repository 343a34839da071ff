"""The command line: how it starts, what `explain` and `models` print, and what they say when something is wrong."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest

import pairlens
from commands import ENVIRONMENT, A, B, command
from pairlens.attribution.explanation import Explanation
from pairlens.cli.models import describe
from pairlens.errors import NotConverged
from pairlens.model.bundled import offline_model

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


def test_explain_as_a_user_does(model):
    done = command("explain", A, B, "--model", model, "--layer", "-1")
    assert done.returncode == 0
    assert "coffee" in done.stdout
    assert "\x1b" not in done.stdout
    assert "Loading" not in done.stderr  # a progress bar of transformers
    warned = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert warned == []


def test_a_closed_pipe_is_no_traceback(model):
    line = [sys.executable, "-m", "pairlens.cli", "explain", A, B, "--model", model, "--layer", "-1", "--json"]
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


# Models.


def test_models_lists_the_bundled_model(invoke, tmp_path, monkeypatch):
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    done = invoke("models")
    assert done.exit_code == 0
    line = next(line for line in done.stdout.splitlines() if "all-MiniLM-L6-v2" in line)
    assert line.split()[-4:] == ["6", "384", "mean", "cosine"]


def test_models_reads_the_cache(invoke, model, tmp_path, monkeypatch):
    snapshot = tmp_path / "models--me--tiny" / "snapshots" / ("0" * 40)
    snapshot.parent.mkdir(parents=True)
    (tmp_path / "models--me--tiny" / "blobs").mkdir()
    shutil.copytree(model, snapshot)
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(tmp_path))
    line = next(line for line in invoke("models").stdout.splitlines() if "me/tiny" in line)
    assert line.split() == ["me/tiny", "3", "32", "mean", "cosine"]


def test_models_when_there_are_none(invoke, tmp_path, monkeypatch):
    monkeypatch.setattr("pairlens.model.bundled.offline_model", lambda: None)
    monkeypatch.setattr("huggingface_hub.utils._cache_manager.HF_HUB_CACHE", str(tmp_path / "nothing"))
    done = invoke("models")
    assert done.exit_code == 0
    assert "pairlens[offline]" in done.stderr


def test_describe_old_and_broken_configurations(tmp_path, model):
    bundled = offline_model()
    assert bundled is not None
    assert describe("x", bundled).pooling == "mean"
    assert describe("x", Path(model)).layers == "3"
    (tmp_path / "modules.json").write_text("{oops")
    found = describe("x", tmp_path)
    assert (found.layers, found.pooling) == ("?", "?")
