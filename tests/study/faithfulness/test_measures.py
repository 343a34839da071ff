"""The judge's measures where their value is known, and its yardstick against all orders."""

from __future__ import annotations

import itertools
import math
from typing import Any

import numpy as np
import pytest
import torch
from pairlens.study.faithfulness.deletions import Deletions

import zoo
from judging import PAIRS, sides_of
from pairlens import Lens
from pairlens.study.faithfulness import measures, yardstick
from pairlens.study.faithfulness.text_at_layer import layered_encoder
from pairlens.study.statistics import spearman


@pytest.fixture(scope="module")
def lens() -> Lens:
    return Lens(zoo.encoder())


@pytest.fixture
def sides(lens) -> list[Deletions]:
    return sides_of(lens, *PAIRS[0])


# Measures.


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
    encoder = layered_encoder(lens)
    left = np.ones((2, side.count), dtype=bool)
    left[1, 2] = False
    ids = side.text.features["input_ids"][0].tolist()
    del ids[int(np.flatnonzero(side.units)[2])]
    model: Any = encoder.sentence_transformer
    features = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    with torch.no_grad():
        wanted = model(features)["sentence_embedding"][0].numpy()
    found = side.embed(left)
    assert np.allclose(found[1], wanted, atol=1e-6)
    assert np.allclose(found[0], model.encode(side.text.text), atol=1e-6)
    monkeypatch.setattr(type(encoder), "encode", None)
    assert np.array_equal(side.embed(left[::-1]), found[::-1])


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
    agreement = spearman(sampled.matrix, exact.matrix)
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
