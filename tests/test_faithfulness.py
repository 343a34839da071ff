"""The judge: each measure where its value is known, the yardstick against all orders, the command from end to end."""

from __future__ import annotations

import csv
import itertools
import json
import math
from dataclasses import dataclass, replace
from typing import Any

import matplotlib as mpl
import numpy as np
import pytest
import torch
from scipy.stats import spearmanr
from typer.testing import CliRunner

import zoo
from pairlens import InputError, Lens, ModelError
from pairlens.cli import app
from pairlens.explanation import Explanation
from pairlens.journal import Journal
from pairlens.storage import require_pyarrow
from pairlens.study.faithfulness import Candidate, Settings, Verdict, court, judge, line_up, measures, yardstick
from pairlens.study.faithfulness.cost import count
from pairlens.study.faithfulness.deletions import Deletions, score
from pairlens.study.faithfulness.picture import draw, front, place_labels
from pairlens.study.faithfulness.randomised import randomise
from pairlens.study.faithfulness.rewording import CLOSE, compare, edits, reword
from pairlens.study.faithfulness.rivals import transformer

PAIRS = [
    ("The coffee here is not good.", "This coffee is bad."),
    ("The tea was cold.", "The coffee was not hot."),
    ("The shop is closed.", "Is the museum open today?"),
]
QUICK = ["output", "occlusion", "shapley", "bertscore", "random"]


@pytest.fixture(scope="module")
def lens() -> Lens:
    return Lens(zoo.encoder())


@pytest.fixture
def sides(lens) -> list[Deletions]:
    return sides_of(lens, *PAIRS[0])


def sides_of(lens: Lens, *texts: str) -> list[Deletions]:
    encoder = transformer(lens)
    return [Deletions(encoder, encoder.read(text), "cosine") for text in texts]


@pytest.fixture(scope="module")
def verdict(lens) -> Verdict:
    chosen = line_up(lens, methods=[*QUICK, "integrated-jacobian"], layers=[2], passes=[32])
    return judge(lens, PAIRS, chosen, settings=Settings(checks=2), progress=False)


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


# Measures.


def test_spearman_is_the_rank_correlation():
    random = np.random.default_rng(0)
    x, y = random.integers(0, 5, 30).astype(float), random.standard_normal(30)
    assert measures.spearman(x, y) == pytest.approx(spearmanr(x, y)[0])
    assert measures.spearman(y, np.exp(y)) == pytest.approx(1.0)
    assert measures.spearman(y, -(y**3)) == pytest.approx(-1.0)
    assert measures.spearman(y.reshape(5, 6), y.reshape(5, 6)) == pytest.approx(1.0)


def test_a_rank_correlation_that_means_nothing():
    assert measures.spearman(np.ones(5), np.arange(5)) is None
    assert measures.spearman(np.array([1.0, 2.0]), np.array([3.0, 4.0])) is None
    assert measures.mean_of([None, 0.5, 1.0]) == 0.75
    assert measures.mean_of([None]) is None


def test_a_walk_deletes_the_units_of_each_pair_once():
    # Pairs (0, 1), (0, 0), (1, 1), (3, 2), …: b's units 1 and 0 fill b's half; a loses 0 and 1.
    order = np.array([1, 0, 4, 11, 2, 3, 5, 6, 7, 8, 9, 10])
    steps = measures.walk(order, 4, 3)
    assert [step.gone for step in steps] == [0, 2, 3]
    assert steps[1].left_a.tolist() == [False, True, True, True]
    assert steps[1].left_b.tolist() == [True, False, True]
    assert steps[2].left_a.tolist() == [False, False, True, True]
    assert steps[2].left_b.tolist() == [True, False, True]


@pytest.mark.parametrize(("count_a", "count_b"), [(1, 1), (1, 6), (5, 4)])
def test_every_walk_takes_half_of_both_texts(count_a, count_b):
    random = np.random.default_rng(0)
    for _ in range(5):
        last = measures.walk(random.permutation(count_a * count_b), count_a, count_b)[-1]
        assert (~last.left_a).sum() == max(1, count_a // 2)
        assert (~last.left_b).sum() == max(1, count_b // 2)


def test_the_area_of_a_known_additive_score():
    """With one unit of b, and a score that is the sum of a's weights, the orders' areas can be done by hand."""
    weights = np.array([4.0, 2.0, 1.0, 0.0])

    def area(order: list[int]) -> float:
        steps = measures.walk(np.array(order), 4, 1)
        return measures.fall_area(
            np.array([weights[step.left_a].sum() for step in steps]), np.array([s.gone for s in steps])
        )

    # The first pair takes a unit of a and b's only one, of three deletions in all: at 2/3 the fall is 4, at 1 it is 6.
    assert area([0, 1, 2, 3]) == pytest.approx(2 / 3 * 4 / 2 + 1 / 3 * (4 + 6) / 2)
    assert area([3, 2, 1, 0]) == pytest.approx(2 / 3 * 0 / 2 + 1 / 3 * (0 + 1) / 2)
    random = np.mean([area(list(order)) for order in itertools.permutations(range(4))])
    assert area([3, 2, 1, 0]) < random < area([0, 1, 2, 3])


def test_bootstrap():
    values = np.random.default_rng(0).standard_normal(400)
    mean, low, high = measures.bootstrap(values, seed=1)
    assert mean == pytest.approx(values.mean())
    # The interval of a mean of n is ±1.96 σ/√n.
    assert high - low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(400), rel=0.1)
    assert measures.bootstrap(values, seed=1) == (mean, low, high) != measures.bootstrap(values, seed=2)


# Deletions and the yardstick.


def test_deletions_are_deletions_and_remembered(lens, sides, monkeypatch):
    side = sides[1]
    encoder = transformer(lens)
    left = np.ones((2, side.count), dtype=bool)
    left[1, 2] = False
    ids = side.text.features["input_ids"][0].tolist()
    del ids[int(np.flatnonzero(side.units)[2])]
    model: Any = encoder._model
    features = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    with torch.no_grad():
        wanted = model(features)["sentence_embedding"][0].numpy()
    found = side.embed(left)
    assert np.allclose(found[1], wanted, atol=1e-6)
    assert np.allclose(found[0], model.encode(side.text.text), atol=1e-6)
    monkeypatch.setattr(type(encoder), "encode", None)
    assert np.array_equal(side.embed(left[::-1]), found[::-1])


def test_the_score_of_embeddings():
    a, b = np.array([[3.0, 4.0], [0.0, 0.0]]), np.array([1.0, 0.0])
    assert score(a, b, "cosine").tolist() == [0.6, 0.0]
    assert score(a, b, "dot").tolist() == [3.0, 0.0]


def test_the_exact_yardstick_is_the_mean_over_all_orders(lens):
    side = sides_of(lens, "The museum is open", "x")[0]
    assert side.count == 4
    values = np.zeros((side.count, len(side.whole())))
    orders = list(itertools.permutations(range(side.count)))
    for order in orders:
        left = np.zeros((side.count + 1, side.count), dtype=bool)
        for step, unit in enumerate(order):
            left[step + 1 :, unit] = True
        values[list(order)] += np.diff(side.embed(left), axis=0) / len(orders)
    found = yardstick.solve(side)
    assert np.allclose(found.values[side.units], values, atol=1e-9)
    assert found.gap < 1e-9
    assert not found.values[~side.units].any()


def test_the_sampled_yardstick_agrees_with_the_exact_one(lens):
    texts = "He sings well, and she reads.", "I do not drink coffee."
    one, other = sides_of(lens, *texts)
    assert 2**one.count > yardstick.FIRST_PASSES
    exact = yardstick.measure_pair(lens, one, other, "cosine", exact=4096)
    one, other = sides_of(lens, *texts)
    sampled = yardstick.measure_pair(lens, one, other, "cosine", exact=0)
    assert (exact.exact, exact.agreement, exact.passes) == (True, 1.0, 0)
    assert not sampled.exact
    assert sampled.agreement is not None
    assert sampled.agreement >= yardstick.AGREEMENT
    agreement = measures.spearman(sampled.matrix, exact.matrix)
    assert agreement is not None
    assert agreement >= yardstick.AGREEMENT


def test_a_run_of_the_yardstick_goes_on_from_what_it_has(lens):
    side = sides_of(lens, "He sings well, and she reads.", "x")[0]
    run = yardstick.Run(side, seed=1, limit=0)
    run.solve(64)
    first = {row.tobytes() for row in run._tried}
    run.solve(128)
    both = [row.tobytes() for row in run._tried]
    assert len(both) == len(set(both)) == 128
    assert first < set(both)


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
    found = judge(lens, PAIRS * 4, chosen, settings=Settings(checks=0), progress=False)
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
        own = court.Court(lens, line_up(lens, methods=["random"]), Settings())._effects(a, b)
        return own[0][:, None] / b.count + own[1][None] / a.count

    chosen = [told("drops", drops), told("negated", lambda *parts: -drops(*parts))]
    found = judge(lens, PAIRS[:1], chosen, settings=Settings(checks=0), progress=False)
    values = {row["candidate"]: row["leave_one_out"] for row in found.table}
    assert values == {"drops": pytest.approx(1.0), "negated": pytest.approx(-1.0)}


def test_what_a_unit_is_worth_is_the_models_own_fall(lens, sides):
    lost, _ = court.Court(lens, line_up(lens, methods=["random"]), Settings())._effects(*sides)
    left = np.ones((1, sides[0].count), dtype=bool)
    left[0, 3] = False
    scores = [score(own, sides[1].whole(), "cosine") for own in (sides[0].whole(), sides[0].embed(left)[0])]
    assert lost[3] == pytest.approx(float(scores[0] - scores[1]))


def test_resuming_gives_the_same_and_does_nothing_twice(lens, tmp_path, monkeypatch):
    chosen = line_up(lens, methods=["output", "shapley", "random"], passes=[16])
    settings = Settings(checks=1)
    whole = judge(lens, PAIRS, chosen, settings=settings, progress=False)
    heard: list[str] = []
    hear = court.Court.hear

    def watched(self, a, b, *, check):
        if len(heard) == 2 and a not in heard:
            heard.append("cut off")
            raise KeyboardInterrupt
        heard.append(a)
        return hear(self, a, b, check=check)

    monkeypatch.setattr(court.Court, "hear", watched)
    with Journal(tmp_path / "journal", {}) as journal, pytest.raises(KeyboardInterrupt):
        judge(lens, PAIRS, chosen, settings=settings, journal=journal, progress=False)
    with Journal(tmp_path / "journal", {}) as journal:
        resumed = judge(lens, PAIRS, chosen, settings=settings, journal=journal, progress=False)
    assert heard == [PAIRS[0][0], PAIRS[1][0], "cut off", PAIRS[2][0]]

    def timeless(verdict: Verdict) -> list[Any]:
        return [{k: v for k, v in row.items() if not k.startswith("seconds")} for row in verdict.table]

    assert timeless(resumed) == timeless(whole)
    assert timeless(whole)[0]["shapley"] > 0.5


def test_pairs_and_candidates_that_cannot_be_used():
    lens = Lens(zoo.encoder(pooling="max"))
    pairs = [PAIRS[0], ("word " * 200, "x"), (" ", "x")]
    chosen = line_up(lens, methods=["rollout", "fade", "output"])
    found = judge(lens, pairs, chosen, settings=Settings(checks=0), progress=False)
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
    found = judge(lens, PAIRS[:1], line_up(lens, methods=["occlusion", "bilrp"]), progress=False)
    rows = {row["candidate"]: row for row in found.table}
    assert rows["occlusion"]["shapley"] > 0.9  # units of a mean do next to nothing together
    assert "no layers" in rows["bilrp"]["skipped"]


def test_what_the_judge_refuses(lens):
    twice = line_up(lens, methods=["random"]) * 2
    with pytest.raises(InputError, match="names differ"):
        judge(lens, PAIRS, twice)
    with pytest.raises(InputError, match="one pair at least"):
        judge(lens, [])
    with pytest.raises(ModelError, match="black box"):
        judge(Lens.from_function(lambda texts: [[1.0, len(t)] for t in texts]), PAIRS, twice[:1])
    with pytest.raises(InputError, match="checks must be a whole number"):
        Settings(checks=-1)


def test_the_line_up(lens):
    names = [candidate.name for candidate in line_up(lens)]
    assert len(names) == len(set(names))
    for name in ("integrated-jacobian/0/project", "integrated-jacobian/1/ignore", "integrated-jacobian/2/project"):
        assert name in names
    assert {"fade", "fade/keep", "shapley", "shapley/64", "shapley/200", "bilrp", "random"} < set(names)
    few = line_up(lens, methods=["integrated-jacobian"], layers=[-1], reference_terms=["keep"])
    assert [candidate.name for candidate in few] == ["integrated-jacobian/-1/keep"]
    assert line_up(lens, methods=["fade"], paths=[4])[-1].name == "fade/4 paths"
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
            line_up(lens, **wrong)


# The costly checks.


def test_operations_are_counted_in_every_mode(lens):
    encoder = transformer(lens)
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
    encoder = transformer(lens)
    before = {name: value.clone() for name, value in encoder._model.state_dict().items()}
    changed = {}
    for depth in (1, 3):
        other = transformer(randomise(lens, depth, seed=0))
        pairs = zip(encoder._twin.named_parameters(), other._twin.parameters(), strict=False)
        changed[depth] = {name for (name, one), two in pairs if not torch.equal(one, two)}
    # The two twins name their layers alike once both have run.
    assert all(torch.equal(value, before[name]) for name, value in encoder._model.state_dict().items())
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
    encoder = transformer(minilm)
    text = encoder.read("A man is playing a guitar and a woman isn't listening to him.")
    other = reword(encoder, text)
    assert other is not None
    assert encoder.read(other).tokens != text.tokens
    one, two = (minilm._encoder._model.encode(t) for t in (text.text, other))
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


# The command.


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> str:
    folder = tmp_path_factory.mktemp("model") / "tiny"
    zoo.encoder().save(str(folder))
    return str(folder)


@pytest.fixture
def invoke(tiny, tmp_path):
    data = tmp_path / "pairs.csv"
    with data.open("w", newline="") as file:
        csv.writer(file).writerows([*((a, b, "3.5") for a, b in PAIRS), ("", "x", "1")])

    def run(*arguments, data=data):
        given = ["study", "faithfulness", "--data", data, "--out", tmp_path / "out", "-m", tiny, *arguments]
        return CliRunner().invoke(app, [str(argument) for argument in given], catch_exceptions=False)

    return run


def test_the_command_from_end_to_end_and_again(invoke, tmp_path, monkeypatch):
    options = ["--methods", "output, shapley,random", "--passes", "16", "--checks", "1", "--limit", "3"]
    done = invoke(*options)
    assert done.exit_code == 0, done.output
    folder = tmp_path / "out" / "faithfulness"
    wanted = {"journal.jsonl", "pairs.parquet", "pareto.png", "pareto.svg", "summary.json", "table.csv"}
    assert {path.name for path in folder.iterdir()} == wanted
    assert "shapley/16" in done.output
    assert f"saved {folder / 'summary.json'}" in done.output.replace("\n", "")
    first = (folder / "summary.json").read_text()

    monkeypatch.setattr(court.Court, "hear", None)  # nothing is left to do
    again = invoke(*options)
    assert "going on after 3 of 3 pairs" in again.output
    assert (folder / "summary.json").read_text() == first

    other = invoke(*options, "--seed", "1")
    assert other.exit_code == 2
    assert "holds the beginning of another run: seed was 0 and is 1" in other.output.replace("\n", " ")


def test_a_larger_limit_has_the_same_pairs_first(tmp_path):
    from pairlens.cli.studies import draw
    from pairlens.tables import Source

    path = tmp_path / "many.csv"
    path.write_text("".join(f"text {i},other {i}\n" for i in range(50)))
    few, many = (draw(Source(path), limit, 0) for limit in (5, 20))
    assert many[:5] == few
    assert len(set(many)) == 20
    assert draw(Source(path), 5, 1) != few


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--methods", "shapely"], "Did you mean 'shapley'"),
        (["--layers", "0,top"], "--layers takes whole numbers"),
        (["--layers", "7"], "layer 7 does not exist"),
        (["--reference-terms", "drop"], "unknown reference_terms 'drop'"),
        (["--measure", "cosinus"], "Did you mean 'cosine'"),
        (["--column-a", "x"], "--column-a and --column-b go together"),
    ],
)
def test_what_the_command_refuses(invoke, options, message):
    done = invoke(*options)
    assert done.exit_code == 2
    assert message in done.output.replace("\n", " ")


def test_data_that_cannot_be_used(invoke, tmp_path):
    assert "there is no file" in invoke(data=tmp_path / "none.csv").output
    (tmp_path / "empty.csv").write_text(" ,x\n")
    done = invoke(data=tmp_path / "empty.csv")
    assert done.exit_code == 2
    assert "holds no pairs that can be used" in done.output.replace("\n", " ")


def test_the_real_model(minilm):
    pairs = [("A man plays the guitar.", "A person plays music."), ("It is not cold today.", "The weather is warm.")]
    chosen = line_up(minilm, methods=["shapley", "output", "rollout", "random"], passes=[128])
    found = judge(minilm, pairs, chosen, settings=Settings(checks=0), progress=False)
    rows = {row["candidate"]: row for row in found.table}
    assert rows["shapley/128"]["shapley"] > 0.9
    assert rows["shapley/128"]["shapley"] > rows["output"]["shapley"]
    assert abs(rows["random"]["shapley"]) < 0.5
    assert found.summary["yardstick"]["exact"] == 2
