"""The ground truth: exact values against the mean over all orders, and sampled values against exact ones."""

from __future__ import annotations

import itertools

import numpy as np

from judging import deletable_texts
from pairlens.study.faithfulness.ground_truth import (
    AGREEMENT,
    can_be_sampled,
    ground_truth,
    sampler,
    shapley_values,
)
from pairlens.study.statistics import spearman

TEXTS = "He sings well, and she reads.", "I do not drink the old coffee here."


def test_exact_values_are_the_mean_over_all_orders(lens):
    (text,) = deletable_texts(lens, "The museum is open")
    assert text.count == 4
    expected = np.zeros((text.count, len(text.whole())))
    orders = list(itertools.permutations(range(text.count)))
    for order in orders:
        left = np.zeros((text.count + 1, text.count), dtype=bool)
        for step, unit in enumerate(order):
            left[step + 1 :, unit] = True
        expected[list(order)] += np.diff(text.embed(left), axis=0) / len(orders)
    contributions = shapley_values(text, sampler(text, seed=1), passes=0)
    assert np.allclose(contributions.values[text.players], expected, atol=1e-9)
    assert contributions.gap < 1e-9
    assert not np.delete(contributions.values, text.players, axis=0).any()


def test_sampled_values_agree_with_exact_ones(lens):
    text_a, text_b = deletable_texts(lens, *TEXTS)
    assert can_be_sampled(text_a, text_b)
    assert not can_be_sampled(text_a, deletable_texts(lens, "one two")[0])
    exact = ground_truth(lens, text_a, text_b, "cosine", exact=4096)
    text_a, text_b = deletable_texts(lens, *TEXTS)  # without the embeddings that the exact values needed
    sampled = ground_truth(lens, text_a, text_b, "cosine", exact=0)
    assert (exact.exact, exact.agreement, exact.passes) == (True, 1.0, 0)
    assert not sampled.exact
    assert sampled.agreement is not None
    assert sampled.agreement >= AGREEMENT
    agreement = spearman(sampled.matrix, exact.matrix)
    assert agreement is not None
    assert agreement >= 0.95


def test_more_passes_keep_the_subsets_tried_before(lens):
    text = deletable_texts(lens, TEXTS[0])[0]
    drawn = sampler(text, seed=1)
    shapley_values(text, drawn, 64, exact=0)
    first = {row.tobytes() for row in drawn.tried}
    shapley_values(text, drawn, 128, exact=0)
    both = [row.tobytes() for row in drawn.tried]
    assert len(both) == len(set(both)) == 128
    assert first < set(both)


def test_sampler_depends_on_seed_and_text_alone(lens):
    def tried(text: str, seed: int) -> bytes:
        return sampler(deletable_texts(lens, text)[0], seed).grow(64).tobytes()

    assert tried(TEXTS[0], 1) == tried(TEXTS[0], 1)
    assert tried(TEXTS[0], 1) != tried(TEXTS[0], 2)
    assert tried(TEXTS[0], 1) != tried(TEXTS[0].replace("He", "It"), 1)
