"""The judge: candidates whose verdict is known, resuming, the costly checks, and the verdict on paper."""

from __future__ import annotations

import csv
import itertools
import json
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from pairlens.study.faithfulness.deletions import score
from pairlens.study.faithfulness.randomised import randomise
from scipy.stats import spearmanr

import zoo
from judging import PAIRS, QUICK, sides_of
from pairlens import InputError, Lens, ModelError
from pairlens.attribution.explanation import Explanation
from pairlens.io.files import require_pyarrow
from pairlens.io.journal import Journal
from pairlens.study.faithfulness import Candidate, JudgeSettings, FaithfulnessResult, court, judge, make_candidates, yardstick
from pairlens.study.faithfulness.cost import count
from pairlens.study.faithfulness.picture import draw, front, place_labels
from pairlens.study.faithfulness.rewording import CLOSE, compare, edits, reword
from pairlens.study.faithfulness.text_at_layer import layered_encoder


@pytest.fixture(scope="module")
def lens() -> Lens:
    return Lens(zoo.encoder())


@pytest.fixture(scope="module")
def verdict(lens) -> FaithfulnessResult:
    chosen = make_candidates(lens, methods=[*QUICK, "integrated-jacobian"], layers=[2], passes=[32])
    return judge(lens, PAIRS, chosen, settings=JudgeSettings(checks=2), progress=False)


@dataclass(frozen=True)
class Told(Candidate):
    """A candidate that is told what to say: a function of the two texts' deletions gives its matrix."""

    matrix: Any = None

    def explain(self, lens: Lens, a: str, b: str, measure: str) -> Explanation:
        e = lens.explain(a, b, method="output", measure=measure)
        one, other = sides_of(lens, a, b)
        matrix = np.zeros_like(e.matrix)
        matrix[np.ix_(one.units, other.units)] = self.matrix(lens, one, other)
        return replace(e, matrix=matrix)


def told(name: str, matrix: Any) -> Told:
    return Told(name, "random", matrix=matrix)


# The judge.


def test_the_perfect_candidate_its_negation_and_noise(lens):
    def truth(lens, a, b):
        return yardstick.measure_pair(lens, a, b, "cosine").matrix

    noise = np.random.default_rng(0)
    chosen = [
        told("perfect", truth),
        told("negated", lambda *parts: -truth(*parts)),
        told("noise", lambda _, a, b: noise.standard_normal((a.count, b.count))),
    ]
    found = judge(lens, PAIRS * 4, chosen, settings=JudgeSettings(checks=0), progress=False)
    perfect, negated, random = (next(r for r in found.table if r["candidate"] == c.name) for c in chosen)
    assert (perfect["shapley"], perfect["shapley_low"]) == (pytest.approx(1.0), pytest.approx(1.0))
    assert negated["shapley"] == pytest.approx(-1.0)
    assert abs(random["shapley"]) < 0.2
    assert [row["candidate"] for row in found.table] == ["perfect", "noise", "negated"]
    # The opposite order is the negation's own order.
    assert perfect["deletion_reverse"] == pytest.approx(-negated["deletion_reverse"])
    assert perfect["deletion"] - negated["deletion"] == pytest.approx(perfect["deletion_reverse"])
    behind = found.behind["shapley"]
    assert behind["negated"] == {"first": "perfect", "behind": 2.0, "low": 2.0, "high": 2.0}


def test_leave_one_out_is_measured_by_real_deletions(lens):
    def drops(lens, a, b):
        own = evaluation.PairEvaluator(lens, make_candidates(lens, methods=["random"]), JudgeSettings())._effects(a, b)
        return own[0][:, None] / b.count + own[1][None] / a.count

    chosen = [told("drops", drops), told("negated", lambda *parts: -drops(*parts))]
    found = judge(lens, PAIRS[:1], chosen, settings=JudgeSettings(checks=0), progress=False)
    values = {row["candidate"]: row["leave_one_out"] for row in found.table}
    assert values == {"drops": pytest.approx(1.0), "negated": pytest.approx(-1.0)}


def test_what_a_unit_is_worth_is_the_models_own_fall(lens):
    sides = sides_of(lens, *PAIRS[0])
    lost, _ = evaluation.PairEvaluator(lens, make_candidates(lens, methods=["random"]), JudgeSettings())._effects(*sides)
    left = np.ones((1, sides[0].count), dtype=bool)
    left[0, 3] = False
    scores = [score(own, sides[1].whole(), "cosine") for own in (sides[0].whole(), sides[0].embed(left)[0])]
    assert lost[3] == pytest.approx(float(scores[0] - scores[1]))


def test_resuming_gives_the_same_and_does_nothing_twice(lens, tmp_path, monkeypatch):
    chosen = make_candidates(lens, methods=["output", "shapley", "random"], passes=[16])
    settings = JudgeSettings(checks=1)
    whole = judge(lens, PAIRS, chosen, settings=settings, progress=False)
    heard: list[str] = []
    hear = evaluation.PairEvaluator.evaluate

    def watched(self, a, b, *, check):
        if len(heard) == 2 and a not in heard:
            heard.append("cut off")
            raise KeyboardInterrupt
        heard.append(a)
        return hear(self, a, b, check=check)

    monkeypatch.setattr(evaluation.PairEvaluator, "evaluate", watched)
    with Journal(tmp_path / "journal", {}) as journal, pytest.raises(KeyboardInterrupt):
        judge(lens, PAIRS, chosen, settings=settings, journal=journal, progress=False)
    with Journal(tmp_path / "journal", {}) as journal:
        resumed = judge(lens, PAIRS, chosen, settings=settings, journal=journal, progress=False)
    assert heard == [PAIRS[0][0], PAIRS[1][0], "cut off", PAIRS[2][0]]

    def timeless(verdict: FaithfulnessResult) -> list[Any]:
        return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in verdict.table]

    assert timeless(resumed) == timeless(whole)
    assert timeless(whole)[0]["shapley"] > 0.5


def test_pairs_and_candidates_that_cannot_be_used():
    lens = Lens(zoo.encoder(pooling="max"))
    pairs = [PAIRS[0], ("word " * 200, "x"), (" ", "x")]
    chosen = make_candidates(lens, methods=["rollout", "fade", "output"])
    found = judge(lens, pairs, chosen, settings=JudgeSettings(checks=0), progress=False)
    assert [skip["pair"] for skip in found.summary["pairs"]["skipped"]] == [1, 2]
    assert "longer than the model takes" in found.summary["pairs"]["skipped"][0]["reason"]
    rows = {row["candidate"]: row for row in found.table}
    assert (rows["output"]["pairs"], rows["output"]["skipped"]) == (1, "")
    assert (rows["rollout"]["pairs"], rows["rollout"]["shapley"]) == (0, None)
    assert "max pooling" in rows["rollout"]["skipped"]
    assert "pooling" in rows["fade"]["skipped"]
    assert found.table[0]["candidate"] == "output"


def test_static_embeddings_can_be_judged():
    lens = Lens(zoo.static())
    found = judge(lens, PAIRS[:1], make_candidates(lens, methods=["occlusion", "bilrp"]), progress=False)
    rows = {row["candidate"]: row for row in found.table}
    assert rows["occlusion"]["shapley"] > 0.9  # units of a mean do next to nothing together
    assert "no layers" in rows["bilrp"]["skipped"]


def test_what_the_judge_refuses(lens):
    twice = make_candidates(lens, methods=["random"]) * 2
    with pytest.raises(InputError, match="names differ"):
        judge(lens, PAIRS, twice)
    with pytest.raises(InputError, match="one pair at least"):
        judge(lens, [])
    with pytest.raises(ModelError, match="black box"):
        judge(Lens.from_function(lambda texts: [[1.0, len(t)] for t in texts]), PAIRS, twice[:1])
    with pytest.raises(InputError, match="checks must be a whole number"):
        JudgeSettings(checks=-1)


def test_the_line_up(lens):
    names = [candidate.name for candidate in make_candidates(lens)]
    assert len(names) == len(set(names))
    for name in ("integrated-jacobian/0/project", "integrated-jacobian/1/ignore", "integrated-jacobian/2/project"):
        assert name in names
    assert {"fade", "fade/keep", "shapley", "shapley/64", "shapley/200", "bilrp", "random"} < set(names)
    few = make_candidates(lens, methods=["integrated-jacobian"], layers=[-1], reference_terms=["keep"])
    assert [candidate.name for candidate in few] == ["integrated-jacobian/-1/keep"]
    assert make_candidates(lens, methods=["fade"], paths=[4])[-1].name == "fade/4 paths"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"methods": ["shapely"]}, "Did you mean 'shapley'"),
        ({"layers": [9]}, "layer 9 does not exist: this model has the layers 0 to 3"),
        ({"reference_terms": ["drop"]}, "unknown reference_terms 'drop'"),
        ({"passes": [0]}, "passes must be a whole number of at least 1"),
        ({"paths": [1]}, "paths must be a whole number of at least 2"),
        ({"methods": []}, "nothing to judge"),
    ]
    for wrong, message in cases:
        with pytest.raises(InputError, match=message):
            make_candidates(lens, **wrong)


# The costly checks.


def test_operations_are_counted_in_every_mode(lens):
    encoder = layered_encoder(lens)
    text = encoder.read(PAIRS[0][0])
    tokens, width, inner, layers = len(text.units), zoo.HIDDEN, 48, zoo.LAYERS
    wanted = layers * (2 * tokens * width * (4 * width + 2 * inner) + 4 * tokens**2 * width)
    pooler = 2 * width**2  # BERT's own, which sentence encoders do not use
    assert count(lambda: encoder.outputs([text]))[1] == wanted + pooler
    heads, weight = torch.randn(1, tokens, width), torch.randn(width, width)
    plain = count(lambda: heads @ weight)[1]
    assert plain == 2 * tokens * width**2
    # The value, its tangent, and a product with the weight's tangent, which PyTorch computes though it is zero.
    tangent = count(lambda: torch.func.jvp(lambda x: x @ weight, (heads,), (heads,)))[1]
    assert tangent in (2 * plain, 3 * plain)
    batch = torch.randn(5, 1, tokens, width)
    assert count(lambda: torch.func.vmap(lambda x: x @ weight)(batch))[1] == 5 * plain


def test_cost_is_in_passes(verdict):
    rows = {row["candidate"]: row for row in verdict.table}
    assert rows["bertscore"]["cost"] == pytest.approx(2.0, rel=0.05)  # the text and its reference
    units = np.mean([sum(record["units"]) for record in verdict.judged[:2]]) / 2
    # One unit less in each; the embedding of the whole, that of nothing and the output are asked for too.
    assert units * 0.8 < rows["occlusion"]["cost"] < units + 3
    assert rows["shapley/32"]["cost"] < 32


def test_random_weights_leave_the_callers_model_alone(lens):
    encoder = layered_encoder(lens)
    before = {name: value.clone() for name, value in encoder.sentence_transformer.state_dict().items()}
    changed = {}
    for depth in (1, 3):
        other = layered_encoder(randomise(lens, depth, seed=0))
        pairs = zip(encoder._twin.named_parameters(), other._twin.parameters(), strict=False)
        changed[depth] = {name for (name, one), two in pairs if not torch.equal(one, two)}
    # The two twins name their layers alike once both have run.
    assert all(torch.equal(value, before[name]) for name, value in encoder.sentence_transformer.state_dict().items())
    assert {name.split("layer.")[1][0] for name in changed[1]} == {"2"}
    assert {name.split("layer.")[1][0] for name in changed[3]} == {"0", "1", "2"}
    assert randomise(lens, 1, seed=0).explain(*PAIRS[0], method="output").score == pytest.approx(
        randomise(lens, 1, seed=0).explain(*PAIRS[0], method="output").score
    )


def test_random_weights_destroy_an_explanation(verdict):
    for name in ("shapley", "integrated-jacobian/2/project"):
        cascade = verdict.summary["sanity"][name]
        assert list(cascade) == ["1", "3"]
        assert abs(cascade["3"]) < 0.6
    assert max(abs(value) for value in verdict.summary["sanity"]["random"].values()) < 0.4


def test_edits_and_what_comes_of_them(minilm):
    assert "It isn't here" in edits("It isn't here.")
    assert "It is not here." in edits("It isn't here.")
    assert "It isn't here." not in edits("It isn't here.")
    encoder = layered_encoder(minilm)
    text = encoder.read("A man is playing a guitar and a woman isn't listening to him.")
    other = reword(encoder, text)
    assert other is not None
    assert encoder.read(other).tokens != text.tokens
    one, two = (minilm.encoder.sentence_transformer.encode(t) for t in (text.text, other))
    assert one @ two >= CLOSE


def test_stability_compares_the_words_that_both_have(lens):
    a, b = PAIRS[0]
    before = lens.explain(a, b, method="output")
    assert compare(before, before) == pytest.approx(1.0)
    assert compare(before, replace(before, matrix=-before.matrix)) == pytest.approx(-1.0)
    # A word less in a: its row goes, the others stay.
    after = lens.explain(a.replace("here ", ""), b, method="output")
    words = before.at("word")
    kept = [i for i, unit in enumerate(words.units_a) if unit.kind == "text" and unit.text != "here"]
    columns = [i for i, unit in enumerate(words.units_b) if unit.kind == "text"]
    moved = after.at("word")
    rows = [i for i, unit in enumerate(moved.units_a) if unit.kind == "text"]
    wanted = spearmanr(words.matrix[np.ix_(kept, columns)].ravel(), moved.matrix[np.ix_(rows, columns)].ravel())[0]
    assert compare(before, after) == pytest.approx(wanted)


# The verdict.


def test_the_verdict_on_paper(verdict, tmp_path):
    pytest.importorskip("pyarrow")
    paths = verdict.save(tmp_path)
    assert [path.name for path in paths] == ["summary.json", "table.csv", "pairs.parquet", "pareto.png", "pareto.svg"]
    summary = json.loads(paths[0].read_text())
    assert summary["pairs"] == {"asked": 3, "judged": 3, "checked": 2, "reworded": 0, "skipped": []} | {
        "reworded": summary["pairs"]["reworded"]
    }
    assert "home advantage" in summary["measures"]["shapley"]
    assert summary["yardstick"]["exact"] + summary["yardstick"]["sampled"] == 3
    assert {"pairlens", "torch", "captum"} <= set(summary["versions"])
    with paths[1].open() as file:
        rows = list(csv.DictReader(file))
    assert [row["candidate"] for row in rows] == [row["candidate"] for row in verdict.table]
    assert float(rows[0]["shapley"]) == verdict.table[0]["shapley"]
    raw = require_pyarrow()[1].read_table(paths[2]).to_pylist()
    assert len(raw) == 3 * len(verdict.table)
    means = [row["shapley"] for row in raw if row["candidate"] == "shapley"]
    assert np.mean(means) == pytest.approx(next(r["shapley"] for r in verdict.table if r["candidate"] == "shapley"))


def test_the_table_for_pandas(verdict):
    pytest.importorskip("pandas")
    assert list(verdict.to_pandas()["candidate"]) == [row["candidate"] for row in verdict.table]


def made_up(count: int) -> list[dict[str, Any]]:
    random = np.random.default_rng(0)
    rows = []
    for place in range(count):
        row: dict[str, Any] = {"candidate": f"integrated-jacobian/{place}/x", "family": "fade", "rival": place % 2 == 0}
        for name in ("shapley", "leave_one_out", "deletion", "cost"):
            value = float(random.random()) * (100 if name == "cost" else 1) + 1
            row |= {name: value, f"{name}_low": value * 0.97, f"{name}_high": value * 1.03}
        rows.append(row)
    return rows


def overlapping(figure: Any) -> int:
    """How many pairs of labels in the first panel cover each other."""
    from matplotlib.text import Annotation, Text

    renderer = figure.canvas.get_renderer()
    labels = [t for t in figure.axes[0].texts if isinstance(t, Annotation)]
    figure.draw_without_rendering()
    boxes = [Text.get_window_extent(label, renderer) for label in labels]
    return sum(one.overlaps(other) for one, other in itertools.combinations(boxes, 2))


def test_no_label_covers_another(monkeypatch):
    before = dict(mpl.rcParams)
    figure = draw(made_up(20), "a model", 3)
    assert len(figure.axes[0].texts) == 20
    assert overlapping(figure) == 0
    assert dict(mpl.rcParams) == before
    # The check can fail: with one place only to stand, labels do cover each other.
    monkeypatch.setattr("pairlens.study.faithfulness.picture._offsets", lambda *_: [(0.0, 0.0)])
    place_labels(figure.axes[0], made_up(20))
    assert overlapping(figure) > 0


def test_the_front_is_what_no_one_beats():
    rows = made_up(20)
    best = front(rows)
    assert best[0]["cost"] == min(row["cost"] for row in rows)
    assert best[-1]["shapley"] == max(row["shapley"] for row in rows)
    for row in rows:
        beaten = any(o["cost"] < row["cost"] and o["shapley"] > row["shapley"] for o in rows)
        assert beaten is (row not in best)


def test_a_picture_without_costs():
    rows = [row | {"cost": None, "cost_low": None, "cost_high": None} for row in made_up(2)]
    assert "no cost is known" in draw(rows, "a model", 3).axes[0].texts[0].get_text()
