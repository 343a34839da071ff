"""Deletions of tokens: the players, and which tokens each subset keeps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pairlens import Banzhaf, Lens
from pairlens.model.deletion import TokenDeletions
from pairlens.model.protocol import FIXED, Deletions
from pairlens.model.tokenize import Text
from pairlens.text import Unit


def text_of(kept: Sequence[bool]) -> Text:
    """Return a text with tokens of which the reference keeps some."""
    units = tuple(Unit("x", i, i + 1) for i in range(len(kept)))
    return Text("x" * len(kept), None, "", {}, ("x",) * len(kept), units, truncated=False, kept=tuple(kept))


def test_subsets_keep_special_tokens_and_the_tokens_of_their_units():
    passes: list[tuple[int, list[bool]]] = []

    def embed(rows: Sequence[int], keeps: Sequence[np.ndarray]) -> np.ndarray:
        passes.extend((row, keep.tolist()) for row, keep in zip(rows, keeps, strict=True))
        return np.array([[row, keep.sum()] for row, keep in zip(rows, keeps, strict=True)], dtype=float)

    texts = [text_of([True, False, False, False, True]), text_of([False, False])]
    deletions = TokenDeletions(embed, texts, [[0, 1, 1, 2, 3], [0, 1]])
    assert isinstance(deletions, Deletions)
    assert deletions.players == [[1, 2], [0, 1]]
    first, second = deletions.embeddings(
        [np.array([[True, False], [False, False], [True, True]]), np.array([[False, True]])]
    )
    assert passes == [
        (0, [True, True, True, False, True]),
        (0, [True, False, False, False, True]),
        (0, [True] * 5),
        (1, [False, True]),
    ]
    np.testing.assert_array_equal(first, [[0, 4], [0, 2], [0, 5]])
    np.testing.assert_array_equal(second, [[1, 1]])


def test_tokens_outside_all_units_always_stay():
    deletions = TokenDeletions(
        lambda _, keeps: np.array([keep.tolist() for keep in keeps]), [text_of([False] * 4)], [[FIXED, 0, 0, 1]]
    )
    assert (deletions.players, deletions.fixed) == ([[0, 1]], [1])
    np.testing.assert_array_equal(deletions.sizes[0], [2, 1])
    (left,) = deletions.embeddings([np.array([[False, False], [True, False]])])
    np.testing.assert_array_equal(left, [[True, False, False, False], [True, True, True, False]])


def test_bfloat16_keeps_scores_and_moves_deletions_by_less_than_their_errors(minilm):
    a, b = "Who was hurt in the storm?", "The storm broke the roof of the old church. " * 3 + "No one was hurt."
    options: Any = {"level": ("word", "zoom"), "method": Banzhaf(passes=24)}
    exact, rounded = (lens.explain(a, b, **options) for lens in (minilm, Lens(precision="bf16")))
    assert rounded.score == exact.score
    assert rounded.units_b == exact.units_b
    assert not np.array_equal(rounded.matrix, exact.matrix)
    sampled = exact.entry_error > 0
    assert np.sqrt(np.mean(((rounded.matrix - exact.matrix)[sampled] / exact.entry_error[sampled]) ** 2)) < 0.5
    assert np.corrcoef(rounded.matrix.ravel(), exact.matrix.ravel())[0, 1] > 0.99
