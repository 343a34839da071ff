"""`pairlens study faithfulness`: the files it writes, that it resumes, and what it refuses."""

from __future__ import annotations

import csv
import sys

import pytest
from typer.testing import CliRunner

from judging import PAIRS
from pairlens.cli import app
from pairlens.cli.study.papers import sample_pairs
from pairlens.io.pairs import PairTable
from pairlens.study.faithfulness import JudgeSettings, judge, make_candidates
from pairlens.study.faithfulness.evaluation import PairEvaluator


@pytest.fixture
def invoke(model, tmp_path):
    data = tmp_path / "pairs.csv"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([*((a, b, "3.5") for a, b in PAIRS), ("", "x", "1")])

    def run(*arguments, data=data):
        command = ["study", "faithfulness", "--data", data, "--out", tmp_path / "out", "-m", model, *arguments]
        return CliRunner().invoke(app, [str(argument) for argument in command], catch_exceptions=False)

    return run


def test_command_writes_its_files_and_a_second_run_resumes_or_refuses_other_settings(invoke, tmp_path, monkeypatch):
    options = ["--method", "output, shapley,random", "--passes", "16", "--checks", "1", "--limit", "3"]
    done = invoke(*options)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "out" / "faithfulness"
    expected = {
        "journal.jsonl",
        "pairs.parquet",
        "pareto.png",
        "pareto.svg",
        "summary.json",
        "table.csv",
        "lengths.csv",
    }
    assert {path.name for path in folder.iterdir()} == expected
    assert "shapley/16" in done.output
    assert f"saved {folder / 'summary.json'}" in done.output.replace("\n", "")
    first = (folder / "summary.json").read_text()

    monkeypatch.setattr(PairEvaluator, "evaluate", None)  # no pair is left to evaluate
    again = invoke(*options)
    assert "going on after 3 of 3 pairs" in again.output
    assert (folder / "summary.json").read_text() == first

    other = invoke(*options, "--seed", "1")
    assert other.exit_code == 2
    assert "holds the beginning of another run: seed was 0 and is 1" in other.output.replace("\n", " ")


@pytest.mark.parametrize("package", ["matplotlib", "pyarrow"])
def test_first_a_missing_package_is_named_before_the_work(invoke, monkeypatch, package):
    for name in (package, "matplotlib.figure" if package == "matplotlib" else "pyarrow.parquet"):
        monkeypatch.setitem(sys.modules, name, None)
    monkeypatch.setattr("pairlens.cli.options.load_lens", None)  # the model is not even loaded
    done = invoke()
    assert done.exit_code == 1
    assert "pip install 'pairlens[study]'" in done.output.replace("\n", " ")


def test_larger_limit_begins_with_the_same_pairs(tmp_path):
    path = tmp_path / "many.csv"
    path.write_text("".join(f"text {i},other {i}\n" for i in range(50)))
    few, many = (sample_pairs(PairTable(path), limit, 0) for limit in (5, 20))
    assert many[:5] == few
    assert len(set(many)) == 20
    assert sample_pairs(PairTable(path), 5, 1) != few


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--method", "shapely"], "Did you mean 'shapley'"),
        (["--layer", "0,top"], "--layer takes whole numbers"),
        (["--layer", "7"], "layer 7 does not exist"),
        (["--reference-terms", "drop"], "unknown reference_terms 'drop'"),
        (["--measure", "cosinus"], "Did you mean 'cosine'"),
        (["--level", "words"], "Did you mean 'word'"),
        (["--column-a", "x"], "--column-a and --column-b go together"),
    ],
)
def test_wrong_options_are_refused(invoke, options, message):
    done = invoke(*options)
    assert done.exit_code == 2
    assert message in done.output.replace("\n", " ")


def test_missing_and_empty_data_are_refused(invoke, tmp_path):
    assert "there is no file" in invoke(data=tmp_path / "none.csv").output
    (tmp_path / "empty.csv").write_text(" ,x\n")
    done = invoke(data=tmp_path / "empty.csv")
    assert done.exit_code == 2
    assert "holds no pairs that can be used" in done.output.replace("\n", " ")


@pytest.mark.slow
@pytest.mark.slow
def test_banzhaf_predicts_best_and_shapley_agrees_with_shapley_values_on_the_bundled_model(minilm):
    pairs = [("A man plays guitar on a small stage.", "A person plays old music for some people.")]
    methods = ["banzhaf", "shapley", "output", "rollout", "random"]
    candidates = make_candidates(minilm, methods=methods, passes=[128])
    result = judge(minilm, pairs, candidates, settings=JudgeSettings(checks=0), progress=False)
    rows = {row["candidate"]: row for row in result.table}
    assert rows["shapley/128/keep"]["shapley"] > 0.9
    assert rows["shapley/128/keep"]["shapley"] > rows["output/keep"]["shapley"]
    assert result.table[0]["family"] == "banzhaf"
    assert rows["banzhaf"]["r2_75"] > rows["shapley/keep"]["r2_75"]
    assert abs(rows["random"]["shapley"]) < 0.5
    assert result.summary["yardstick"]["exact"] == 1
