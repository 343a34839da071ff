"""`pairlens study`: one study, all studies, interrupted and started again, and their report."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from typer.testing import CliRunner, Result

import zoo
from browser import faults, visit
from pairlens.cli import app
from pairlens.study.archive import Archive
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.papers import convergence
from studies import tree

PAIRS = """\
sentence1,sentence2,score
The tea was cold.,The tea wasn't hot.,4.5
A man is playing the guitar.,Nobody plays a guitar.,2.0
"The <b>""coffee""</b> & cake",Coffee and cake,3.0
"""
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}


@pytest.fixture(scope="module")
def inputs(tmp_path_factory) -> list[str]:
    """Arguments of a small run: a tiny model, three pairs."""
    folder = tmp_path_factory.mktemp("inputs")
    zoo.encoder("bert").save(str(folder / "tiny"))
    (folder / "pairs.csv").write_text(PAIRS, encoding="utf-8")
    data = ["--data", str(folder / "pairs.csv"), "--model", str(folder / "tiny")]
    return [*data, "--sweep", "2", "--points", "4", "--tol", "0.01"]


@pytest.fixture(scope="module")
def few_points():
    """Fewer rules in the study of convergence, which would otherwise take most of the time."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(convergence, "TOLERANCES", (1e-1, 1e-3))
        patch.setattr(convergence, "GAUSS", (1, 8, 32))
        yield


@pytest.fixture(scope="module")
def finished(inputs, few_points, tmp_path_factory) -> Path:
    """The folder of an undisturbed run of all studies, in this process."""
    out = tmp_path_factory.mktemp("undisturbed") / "out"
    done = run_all(inputs, out)
    assert done.exit_code == 0, done.output
    return out


def run_all(inputs: list[str], out: Path) -> Result:
    return CliRunner().invoke(app, ["study", "all", *inputs, "--out", str(out)], catch_exceptions=False)


@pytest.fixture(scope="module")
def finished_process(inputs, tmp_path_factory) -> Path:
    """The folder of an undisturbed run of all studies, in a process of its own."""
    out = tmp_path_factory.mktemp("process") / "out"
    done = subprocess.run(command(inputs, out), env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "Traceback" not in done.stderr
    return out


def command(inputs: list[str], out: Path) -> list[str]:
    return [sys.executable, "-m", "pairlens.cli", "study", "all", *inputs, "--out", str(out)]


def assert_same_files(out: Path, expected: Path) -> None:
    there, wanted = tree(out), tree(expected)
    assert there.keys() == wanted.keys()
    assert [name for name in wanted if there[name] != wanted[name]] == []


@pytest.mark.slow
def test_all_writes_every_study_and_a_report(finished):
    lacking = {"parts-of-speech", "syntactic-roles", "models"}
    for name in CATALOGUE:
        files = {path.name for path in (finished / name).iterdir()}
        summary = json.loads((finished / name / "summary.json").read_text(encoding="utf-8"))
        if name in lacking:
            assert files == {"summary.json"}
            assert summary["skipped"]
        else:
            assert files == {"summary.json", "table.csv", "pairs.parquet", f"{name}.png", f"{name}.svg"}
            assert "skipped" not in summary
            assert summary["sentences"]
    assert (finished / "report.html").is_file()


@pytest.mark.slow
def test_interrupted_and_started_again_it_gives_the_same_files(inputs, finished, tmp_path, monkeypatch):
    out = tmp_path / "out"
    explanations = out / "explanations"
    # In the middle of the first study, of a later one, and after some results are saved.
    moments = [
        lambda: len(list(explanations.glob("*.npz"))) >= 3,
        lambda: len(list(explanations.glob("*.npz"))) >= 12,
        lambda: (out / "layers" / "summary.json").exists(),
    ]
    keep = Archive.keep
    for moment in moments:

        def interrupt(archive, key, parts, moment=moment):
            if moment():
                raise KeyboardInterrupt
            keep(archive, key, parts)

        monkeypatch.setattr(Archive, "keep", interrupt)
        run = run_all(inputs, out)
        assert run.exit_code == 130
        assert "Give the same command again" in run.output
        assert not (out / "report.html").exists()
    monkeypatch.setattr(Archive, "keep", keep)
    done = run_all(inputs, out)
    assert done.exit_code == 0, done.output
    assert_same_files(out, finished)


@pytest.mark.slow
def test_killed_and_started_again_it_gives_the_same_files(inputs, finished_process, tmp_path):
    out = tmp_path / "out"
    # In the middle of the first study, of a later one, and after some results are saved.
    moments = [
        lambda: len(list((out / "explanations").glob("*.npz"))) >= 3,
        lambda: len(list((out / "explanations").glob("*.npz"))) >= 12,
        lambda: (out / "layers" / "summary.json").exists(),
    ]
    for moment in moments:
        run = subprocess.Popen(
            command(inputs, out), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
        )
        while not moment():
            assert run.poll() is None, "it ended before it could be killed"
            time.sleep(0.02)
        run.send_signal(signal.SIGKILL)
        assert run.wait() == -signal.SIGKILL
        assert not (out / "report.html").exists()
    done = subprocess.run(command(inputs, out), env=ENVIRONMENT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert_same_files(out, finished_process)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(6))
def test_killed_at_random_moments_it_gives_the_same_files(inputs, finished_process, tmp_path, seed):
    random = np.random.default_rng(seed)
    out, killed = tmp_path / "out", 0
    while True:
        run = subprocess.Popen(command(inputs, out), env=ENVIRONMENT, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
        # The first attempts are killed at any moment, so that every study is interrupted; later ones may finish.
        try:
            _, messages = run.communicate(timeout=random.uniform(4, 12) + killed)
        except subprocess.TimeoutExpired:
            run.kill()
            run.communicate()
            killed += 1
            continue
        assert run.returncode == 0, messages
        break
    print(f"seed {seed}: killed {killed} times")
    assert killed
    assert_same_files(out, finished_process)


@pytest.mark.slow
@pytest.mark.parametrize(("width", "scheme"), [(1440, "light"), (400, "dark")])
def test_the_report_in_a_browser(finished, chromium, width, scheme):
    options = {"viewport": {"width": width, "height": 900}, "color_scheme": scheme}
    with visit(chromium, (finished / "report.html").as_uri(), **options) as page:
        assert page.locator("section").count() == len(CATALOGUE)
        for name, about in CATALOGUE.items():
            assert page.locator(f"#{name} h2").inner_text() == about.title
        images = page.evaluate("[...document.images].map((image) => [image.naturalWidth, image.alt.length])")
        assert len(images) == len(CATALOGUE) - 3
        assert all(size > 300 and alt > 40 for size, alt in images)
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        # Markup in a text is shown as text.
        page.locator("#failures summary").click()
        assert '<b>"coffee"</b>' in page.locator("#failures").inner_text()
        assert faults(page) == []


def test_one_study_prints_its_sentences(inputs, tmp_path):
    done = CliRunner().invoke(
        app, ["study", "cumulative", *_without(inputs, "--sweep", "--points"), "--out", str(tmp_path)]
    )
    assert done.exit_code == 0, done.output
    assert "the strongest 5 % of the token pairs" in done.stdout
    summary = json.loads((tmp_path / "cumulative" / "summary.json").read_text(encoding="utf-8"))
    assert summary["settings"]["explained_by"] == ["banzhaf, keep", "layer 2, project", "layer 2, ignore"]
    assert summary["settings"]["pairs"] == 3


def _without(inputs: list[str], *names: str) -> list[str]:
    kept = [(name, value) for name, value in zip(inputs[::2], inputs[1::2], strict=True) if name not in names]
    return [part for pair in kept for part in pair]


def test_a_study_has_only_the_options_that_it_uses(inputs, tmp_path):
    run = CliRunner().invoke(app, ["study", "cumulative", *inputs, "--out", str(tmp_path)])
    assert run.exit_code == 2
    assert "No such option" in run.output
    for name, about in CATALOGUE.items():
        shown = CliRunner().invoke(app, ["study", name, "--help"], env={"COLUMNS": "300"}).output
        for option in ("data", "limit", *about.options):
            assert f"--{option.replace('_', '-')}" in shown, (name, option)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--layer", "first"], "whole numbers with commas"),
        (["--layer", "99"], "layer 99 does not exist"),
        (["--annotations", "a.conllu", "--spacy", "x"], "say the same thing twice"),
        (["--annotations", "missing.conllu"], "there is no file missing.conllu"),
        (["--wordnet", "nowhere"], "WordNet is not in nowhere"),
        (["--method", "shaply"], "Did you mean 'shapley'"),
        (["--column-a", "sentence1"], "go together"),
    ],
)
def test_wrong_options_are_refused_before_any_work(inputs, tmp_path, arguments, message):
    base = _without(inputs, "--sweep", "--points")
    run = CliRunner().invoke(app, ["study", "lexical-bias", *base, "--out", str(tmp_path), *arguments])
    assert run.exit_code == 2, run.output
    assert message in " ".join(run.output.split())


def test_a_study_annotates_its_texts_with_spacy(inputs, tmp_path):
    spacy = pytest.importorskip("spacy")
    nlp = spacy.blank("en")
    ruler = nlp.add_pipe("attribute_ruler")
    ruler.add([[{"LOWER": {"IN": ["tea", "guitar", "coffee", "cake"]}}]], {"POS": "NOUN"})
    nlp.to_disk(tmp_path / "tiny")
    base = [*_without(inputs, "--sweep", "--points"), "--method", "occlusion"]
    arguments = ["study", "parts-of-speech", *base, "--out", str(tmp_path), "--spacy", str(tmp_path / "tiny")]
    done = CliRunner().invoke(app, arguments)
    assert done.exit_code == 0, done.output
    assert (tmp_path / "annotations.conllu").is_file()
    table = (tmp_path / "parts-of-speech" / "table.csv").read_text(encoding="utf-8")
    assert "NOUN–NOUN" in table
    summary = json.loads((tmp_path / "parts-of-speech" / "summary.json").read_text(encoding="utf-8"))
    assert summary["settings"]["mismatches"]["texts_unannotated"] == 0
