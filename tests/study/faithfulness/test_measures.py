"""The measures that are functions of arrays alone, where their value is known."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from pairlens.study.faithfulness.measures import bootstrap, deletion_steps, fall_area, insertion_steps


def test_deletion_steps_delete_the_units_of_each_pair_once():
    # Pairs (0, 1), (0, 0), (1, 1), (3, 2), …: half of b is its unit 1; half of a is its units 0 and 1.
    order = np.array([1, 0, 4, 11, 2, 3, 5, 6, 7, 8, 9, 10])
    steps = deletion_steps(order, 4, 3)
    assert [step.changed for step in steps] == [0, 2, 3]
    assert steps[1].left_a.tolist() == [False, True, True, True]
    assert steps[1].left_b.tolist() == [True, False, True]
    assert steps[2].left_a.tolist() == [False, False, True, True]
    assert steps[2].left_b.tolist() == [True, False, True]


@pytest.mark.parametrize(("count_a", "count_b"), [(1, 1), (1, 6), (5, 4)])
def test_deletion_steps_delete_half_of_both_texts_in_any_order(count_a, count_b):
    generator = np.random.default_rng(0)
    for _ in range(5):
        last = deletion_steps(generator.permutation(count_a * count_b), count_a, count_b)[-1]
        assert (~last.left_a).sum() == max(1, count_a // 2)
        assert (~last.left_b).sum() == max(1, count_b // 2)


def test_fall_area_of_an_additive_score_equals_the_area_by_hand():
    """With one unit in b, and the sum of the weights of a's units as the score."""
    weights = np.array([4.0, 2.0, 1.0, 0.0])

    def area(order: list[int]) -> float:
        steps = deletion_steps(np.array(order), 4, 1)
        scores = np.array([weights[step.left_a].sum() for step in steps])
        return fall_area(scores, np.array([step.changed for step in steps]))

    # The first pair deletes a unit of a and the only one of b, of three deletions in all: at 2/3 the fall is 4, at 1
    # it is 6.
    assert area([0, 1, 2, 3]) == pytest.approx(2 / 3 * 4 / 2 + 1 / 3 * (4 + 6) / 2)
    assert area([3, 2, 1, 0]) == pytest.approx(2 / 3 * 0 / 2 + 1 / 3 * (0 + 1) / 2)
    mean = np.mean([area(list(order)) for order in itertools.permutations(range(4))])
    assert area([3, 2, 1, 0]) < mean < area([0, 1, 2, 3])


def test_insertion_steps_put_missing_units_back_until_both_texts_are_whole():
    start_a, start_b = np.array([True, False, False, True]), np.array([False, True, True])
    # Pairs (1, 2), (0, 1), (1, 0), (2, 0), …: unit 1 of a, nothing new, unit 0 of b, unit 2 of a.
    steps = insertion_steps(np.array([5, 1, 3, 6, 0]), start_a, start_b)
    assert [step.changed for step in steps] == [0, 1, 2, 3]
    assert steps[0].left_a.tolist() == start_a.tolist()
    assert steps[1].left_a.tolist() == [True, True, False, True]
    assert steps[1].left_b.tolist() == start_b.tolist()
    assert steps[-1].left_a.all()
    assert steps[-1].left_b.all()


def test_bootstrap_interval_is_that_of_a_mean_and_depends_on_the_seed_alone():
    values = np.random.default_rng(0).standard_normal(400)
    mean, low, high = bootstrap(values, seed=1)
    assert mean == pytest.approx(values.mean())
    # The interval of a mean of n is ±1.96 σ/√n.
    assert high - low == pytest.approx(2 * 1.96 * values.std() / math.sqrt(400), rel=0.1)
    assert bootstrap(values, seed=1) == (mean, low, high) != bootstrap(values, seed=2)
