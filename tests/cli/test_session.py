"""Errors, warnings and interruptions of commands: one line on standard error, and an exit code."""

from __future__ import annotations

import subprocess
import sys

import pytest
from typer.testing import CliRunner

from commands import ENVIRONMENT, A, B
from pairlens.cli import app
from pairlens.errors import NotConverged


def test_long_texts_are_warned_about_and_refused_with_strict(invoke):
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


@pytest.mark.slow
def test_a_closed_pipe_ends_without_a_traceback(model):
    line = [sys.executable, "-m", "pairlens.cli", "explain", A, B, "--model", model, "--layer", "-1", "--json"]
    with subprocess.Popen(line, stdout=subprocess.PIPE, stderr=subprocess.PIPE, env=ENVIRONMENT) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert b"Traceback" not in process.stderr.read()


def test_a_model_that_does_not_exist_is_one_line(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_OFFLINE", True)
    done = CliRunner().invoke(app, ["explain", "a", "b", "--model", "nobody/nothing"])
    assert done.exit_code == 1
    assert done.stderr.startswith("error: ")
    assert "pairlens[offline]" in done.stderr
    assert done.stderr.count("\n") == 1
