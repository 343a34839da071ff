"""The study of convergence."""

from __future__ import annotations

from itertools import pairwise

import pytest

from pairlens import Riemann, study
from pairlens.study.papers import convergence
from pairlens.study.views import Choice, View
from studies import PAIRS, materials

# Random weights leave much of a score to the reference.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


def test_means_and_deviations_for_every_rule_layer_and_number_of_points():
    raw = [
        {"rule": "riemann", "layer": 0, "asked": 2, "points": 2.0, "error": 0.1, "gap": 0.2},
        {"rule": "riemann", "layer": 0, "asked": 2, "points": 2.0, "error": 0.3, "gap": 0.6},
        {"rule": "adaptive", "layer": 0, "asked": 1e-3, "points": 10.0, "error": 0.0, "gap": 0.001},
    ]
    first, second = convergence.describe(raw)
    assert (first["pairs"], first["points_mean"]) == (2, 2.0)
    assert (first["error_mean"], first["error_sd"]) == pytest.approx((0.2, 0.1))
    assert (first["gap_mean"], first["gap_sd"]) == pytest.approx((0.4, 0.2))
    assert (second["rule"], second["points_mean"], second["error_sd"]) == ("adaptive", 10.0, 0.0)


def test_equal_steps_give_the_error_of_the_riemann_rule(lens):
    given = materials(lens, pairs=PAIRS[:1], points=8, choice=Choice(layers=(0, 1)))
    raw = convergence.study(given).raw
    for layer in (0, 1):
        row = next(r for r in raw if (r["rule"], r["asked"], r["layer"]) == ("riemann", 8, layer))
        e = lens.explain(*PAIRS[0][:2], layer=layer, rule=Riemann(8))
        assert row["error"] == pytest.approx(abs(e.gap), rel=1e-3, abs=1e-6)
        assert row["gap"] == pytest.approx((e.gap_a + e.gap_b) / 2, rel=1e-3)
    steps = [row["gap"] for row in raw if row["rule"] == "gauss-legendre" and row["layer"] == 1]
    assert all(after < before for before, after in pairwise(steps[:5]))
    assert all(row["gap"] <= row["asked"] for row in raw if row["rule"] == "adaptive")


@pytest.mark.slow
def test_a_batch_of_pairs_converges_like_each_pair_alone(lens, monkeypatch):
    """As on a GPU, where texts of one length share a batch; a text that does not converge affects no other."""
    monkeypatch.setattr(convergence, "TOLERANCES", (1e-2, 1e-9))
    monkeypatch.setattr(convergence, "GAUSS", (1, 4))
    monkeypatch.setattr(convergence, "MOST", 96)
    given, view = materials(lens), View("integrated-jacobian", 0, "project")
    many = convergence.apply_rules(given, view, given.rows)
    for row, together in zip(given.rows, many, strict=True):
        (alone,) = convergence.apply_rules(given, view, [row])
        assert isinstance(together, list)
        assert isinstance(alone, list)
        assert [line["points"] for line in together] == [line["points"] for line in alone]
        for name in ("error", "gap"):
            assert [line[name] for line in together] == pytest.approx([line[name] for line in alone], abs=2e-6)
        reached, unreached = together[-2:]
        assert (reached["asked"], unreached["asked"]) == (1e-2, 1e-9)
        assert unreached["gap"] == reached["gap"] > 1e-9


def test_pairs_that_cannot_be_read_are_left_out(lens):
    given = materials(lens, pairs=[("", "b"), *PAIRS[:1]], sweep=2, choice=Choice(layers=(2,)))
    result = convergence.study(given)
    assert {row["pair"] for row in result.raw} == {2}
    assert result.settings["pairs"] == 1
    assert "text a: " in next(iter(result.settings["left_out"].values()))["1"]
    empty = materials(lens, pairs=[("", "b")], choice=Choice(layers=(2,)))
    assert "none of the 1 pairs can be read. The first one: text a: " in study.run("convergence", empty).skipped
