import re
from dataclasses import replace

import numpy as np
import pytest
from typer.testing import CliRunner

from explanations import COFFEE, make
from pairlens.attribution.forecast import Forecast
from pairlens.cli import app
from terminal_output import pairs_of, show, table


def test_view_has_texts_pairs_matrix_sums_and_settings():
    shown = show(make(*COFFEE), 120)
    for text in (*COFFEE, "strongest pairs", "what the score is made of", "gap of the texts 3e-04 and 5e-04"):
        assert text in shown
    assert re.search(r"base +0\.0041  what the texts share whatever the words", shown)
    assert re.search(r"gap +2e-07", shown)
    assert "all-MiniLM-L6-v2, integrated Jacobians, layer 0" in shown
    labels, rows = table(shown)
    assert labels == ["This", "coffee", "is", "bad", ".", "special", "sum"]
    assert len(rows) == 7 + 2


def test_strongest_pairs_have_signed_bars():
    matrix = np.zeros((3, 3))
    matrix[1, 1], matrix[0, 2] = 0.5, -0.25
    shown = show(make("one two three", "one two three", matrix=matrix, special=False), top=2)
    first, second = pairs_of(shown)
    assert first.split()[:5] == ["1", "two", "·", "two", "+0.500"]
    assert second.split()[:5] == ["2", "one", "·", "three", "-0.250"]
    axis = first.index("│")
    assert second.index("│") == axis
    assert first[axis + 1 :].count("█") > 15
    assert second[:axis].endswith("█")
    assert not second[axis + 1 :].strip()


@pytest.mark.parametrize("value", [0.0, 1e-12])
def test_matrix_of_zeros_is_shown(value):
    assert "0.0000" in show(make(*COFFEE, matrix=np.full((9, 7), value)))


def test_markup_and_escape_sequences_of_texts_have_no_effect():
    evil = "[bold red]x[/] \\[y] \x1b[31mred\x1b[0m \u202eabc"
    shown = show(make(evil, "b [/] c"), colour="truecolor")
    assert "[bold red]x[/]" in re.sub(r"\x1b\[[\d;]*m", "", shown)
    assert "\x1b[31m" not in shown
    assert "\u202e" not in shown
    assert "\x1b" not in show(make(evil, "b"))
    assert "[/]" in shown


def test_ascii_only_writes_ascii_and_lines_up():
    shown = show(make(*COFFEE), ascii_only=True)
    assert shown.isascii()
    assert "##" in shown
    wide = show(make("東京 café", "🙂 ok"), ascii_only=True)
    assert wide.isascii()
    lines = wide.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith("a \\ b"))
    assert (
        len({len(line) for line in lines[start : start + 5]}) == 1
    )  # columns line up where ? stands for wide characters


@pytest.mark.parametrize("width", [60, 80, 120])
def test_first_a_terminal_without_unicode_shows_the_same_sentence(guitar, width):
    shown = show(guitar, width, ascii_only=True)
    said = " ".join(shown.partition("\n\n")[0].split())
    assert said.startswith(f"{guitar.score:.4f} cosine similarity Mostly ")
    assert re.search(r"Mostly \w+-\w+ \(\+0\.\d\d\), then \w+-\w+ .*; without \"\w+\"", said)
    assert "predicts deletions to +-0.0" in shown
    assert "?" not in shown
    assert max(map(len, shown.splitlines())) <= width


@pytest.mark.parametrize("colour", ["standard", "256", "truecolor"])
def test_colour_changes_no_character(colour):
    e = make(*COFFEE)
    assert re.sub(r"\x1b\[[\d;]*m", "", show(e, colour=colour)) == show(e)


def test_command_writes_colour_only_to_terminals(minilm, monkeypatch):
    monkeypatch.setattr("pairlens.cli.options.Request.load", lambda request: minilm)
    for name in ("FORCE_COLOR", "NO_COLOR", "TERM"):
        monkeypatch.delenv(name, raising=False)

    def explain(*more: str, **environment: str) -> str:
        given = ["explain", *COFFEE, "--method", "output", *more]
        done = CliRunner().invoke(app, given, env={"COLUMNS": "80", **environment})
        assert done.exit_code == 0, done.output
        return done.stdout

    piped, watched = explain(), explain(FORCE_COLOR="1", COLORTERM="truecolor", TERM="xterm-256color")
    assert "\x1b" not in piped
    assert "\x1b[38;2;" in watched
    assert re.sub(r"\x1b\[[\d;]*m", "", watched) == piped
    plain = explain(FORCE_COLOR="1", NO_COLOR="1", COLORTERM="truecolor", TERM="xterm-256color")
    assert not re.search(r"\x1b\[[\d;]*[34]8;", plain)
    assert len(pairs_of(piped)) == 8
    assert len(pairs_of(explain("--top", "3"))) == 3
    assert max(map(len, explain(COLUMNS="40").splitlines())) <= 40


def test_numbers_of_the_sum_add_up_as_they_are_shown(guitar):
    shown = show(guitar, 80)
    listed = shown[shown.index("what the score is made of") :].splitlines()[1:6]
    *terms, score = (round(1e4 * float(re.findall(r"-?\d+\.\d{4}", line)[0])) for line in listed)
    assert sum(terms) == score == round(1e4 * guitar.score)


def test_forecast_and_its_errors_are_named(guitar):
    shown = show(guitar)
    assert f"predicts deletions to ±{guitar.forecast.error:.2f} (R² {guitar.forecast.r2:.2f})" in shown
    assert "standard error of a pair: at most" in shown
    assert "fitted to 48 and 48 shortened texts (weighted Banzhaf values)" in shown
    low = replace(guitar, forecast=Forecast(0.55, 0.08, 0.8, 0.96))
    assert "a poor forecast of deletions: R² 0.55, ±0.08; with rows for words that act" in show(low)
    assert "with compounds" not in show(replace(guitar, forecast=Forecast(0.9, 0.03, 0.8, 0.93)))
    assert "deletions" not in show(make(*COFFEE))
