"""`pairlens explain`: what it prints, the files it writes, and where texts come from."""

from __future__ import annotations

import json

import pytest

from commands import A, B, command
from pairlens.attribution.explanation import Explanation


def test_explain_prints_the_texts_the_pairs_and_the_settings(invoke):
    done = invoke("explain", A, B)
    assert done.exit_code == 0
    assert f"\na  {A}\n" in done.stdout
    for text in (B, "coffee", "strongest pairs", "score ", "gap of the texts", "by words", "layer 3"):
        assert text in done.stdout
    assert "\x1b" not in done.stdout


def test_explain_json_prints_what_save_writes(invoke, tmp_path):
    done = invoke(
        "explain", A, B, "--json", "--level", "token", "--save", tmp_path / "why.json", "-s", tmp_path / "w.csv"
    )
    document = json.loads(done.stdout)
    assert document["format"] == "pairlens.explanation"
    assert document["settings"]["level"] == "token"
    assert (tmp_path / "why.json").read_text(encoding="utf-8") == done.stdout
    assert Explanation.load(tmp_path / "w.csv").score == document["score"]


def test_texts_come_from_files_and_standard_input(invoke, tmp_path):
    (tmp_path / "a.txt").write_bytes("\ufeffDie Züge fahren.\r\n".encode())
    document = json.loads(invoke("explain", f"@{tmp_path / 'a.txt'}", "-", "--json", text="Züge\nund Autos\n").stdout)
    assert (document["text_a"], document["text_b"]) == ("Die Züge fahren.", "Züge\nund Autos")
    assert json.loads(invoke("explain", "@@me", "b", "--json").stdout)["text_a"] == "@me"


def test_markup_in_texts_is_printed_as_text(invoke):
    done = invoke("explain", "[bold]good[/bold] [/]", "[red]coffee")
    assert done.exit_code == 0
    assert "[bold]good[/bold] [/]" in done.stdout


@pytest.mark.slow
def test_explain_in_a_process_of_its_own(model):
    done = command("explain", A, B, "--model", model, "--layer", "-1")
    assert done.returncode == 0
    assert "coffee" in done.stdout
    assert "\x1b" not in done.stdout
    assert "Loading" not in done.stderr  # a progress bar of transformers
    warned = [line for line in done.stderr.splitlines() if not line.startswith("warning: ")]
    assert warned == []
