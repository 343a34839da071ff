"""The options that commands share reach the lens, and bad ones are one line."""

from __future__ import annotations

import json

import numpy as np
import pytest

from commands import A, B
from pairlens import Banzhaf, Shapley


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
        ([], {"method": "banzhaf", "layer": None, "seed": 0, "keep": 0.82, "reference_terms": "keep"}),
        (["--passes", "20", "--seed", "4"], {"method": "banzhaf", "passes": 20, "seed": 4}),
        (["--method", "shapley", "--passes", "20"], {"method": "shapley", "passes": 20}),
        (["--compounds", "2"], {"method": "banzhaf", "compounds": 2}),
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
def test_methods_and_presets_set_the_settings(invoke, options, expected):
    settings = json.loads(invoke("explain", A, B, *options, "--json", layer=None).stdout)["settings"]
    assert {name: settings[name] for name in expected} == expected


MORE = {"passes": 300}, {"error": 0.05}
WORDS = "The coffee here is not good at all.", "This coffee is really very bad, sadly."


@pytest.mark.parametrize("kind", [Banzhaf, Shapley])
def test_first_more_precision_estimates_the_same_quantity(invoke, commanded, kind):
    def ask(*more: str):
        done = invoke("explain", *WORDS, "--method", kind.__name__.lower(), *more, "--json", layer=None)
        return json.loads(done.stdout)

    default = commanded.explain(*WORDS, method=kind())
    others = [ask("--passes", "300"), *(commanded.explain(*WORDS, method=kind(**more)).to_dict() for more in MORE)]
    for more in others:
        same = {name: value for name, value in more["settings"].items() if name not in ("passes", "error", "nodes")}
        assert same == {name: default.settings[name] for name in same}
        differ = np.abs(np.array(more["matrix"]) - default.matrix)
        assert (differ <= 5 * default.entry_error + 0.01).all()
        assert differ.max() > 0


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
        (["explain", "a", "b", "--method", "fade", "--passes", "9"], "'banzhaf' and 'shapley', not of 'fade'"),
        (["explain", "a", "b", "--method", "shapley", "--compounds", "2"], "here 'banzhaf'"),
        (["explain", "a", "b", "--exact-to-paper", "--method", "fade"], "leave one of them out"),
        (["explain", "a", "b", "--exact-to-paper", "--tol", "0.1"], "leave one of them out"),
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


def test_first_a_tolerance_that_would_be_ignored_is_refused(invoke):
    done = invoke("explain", A, B, "--tol", "0.1", layer=None)
    assert (done.exit_code, done.stderr.count("\n")) == (2, 1)
    assert "tol=0.1 is for methods that integrate, and the default deletes words" in done.stderr
