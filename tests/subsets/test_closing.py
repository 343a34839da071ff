"""The kernel of moved text against sums over all deletions."""

from __future__ import annotations

import numpy as np
import pytest

from games import subsets
from pairlens.subsets import banzhaf
from pairlens.subsets.closing import Closing

SIZES = np.array([1, 3, 2, 1, 1])
DELETE = 0.3


def test_expectations_equal_sums_over_all_deletions():
    members = np.concatenate([np.eye(5, dtype=bool), [[True, True, False, False, False]]])
    closing = Closing(SIZES, DELETE, members)
    deleted = ~subsets(5)
    chances = DELETE ** deleted.sum(1) * (1 - DELETE) ** (~deleted).sum(1)
    present = chances[:, None] * (deleted.astype(int) @ members.T == members.sum(1))
    kernel = closing.between(deleted)
    np.testing.assert_allclose(closing.with_features(deleted), kernel @ present, atol=1e-12)
    np.testing.assert_allclose(closing.of_features, present.T @ kernel @ present, atol=1e-12)


def test_deletions_of_equally_many_tokens_move_the_text_equally_far():
    closing = Closing(SIZES, DELETE, np.eye(5, dtype=bool))
    kernel = closing.between(np.array([[0, 0, 0, 0, 0], [1, 0, 1, 0, 0], [0, 1, 0, 0, 0], [0, 0, 0, 1, 0]]))
    assert not kernel[0].any()
    assert kernel[1, 1] == kernel[1, 2] == kernel[2, 2] > kernel[1, 3]
    assert np.linalg.eigvalsh(kernel).min() > -1e-12


@pytest.mark.parametrize("seed", range(3))
def test_effects_of_moving_on_are_not_blamed_on_single_words(seed):
    # Losses are a word's own plus a bumpy function of the number of deleted tokens.
    random = np.random.default_rng(seed)
    n, sizes = 14, np.ones(14, dtype=int)
    vectors, bumps = random.normal(size=(n, 4)), random.normal(size=(n + 1, 4)) * 2
    tried = np.concatenate([np.ones((1, n), dtype=bool), ~np.eye(n, dtype=bool), random.random((14, n)) < 0.8])
    tried = np.unique(tried, axis=0)
    every = np.concatenate([tried, random.random((3000, n)) < 0.8])

    def game(kept: np.ndarray) -> np.ndarray:
        return kept @ vectors + bumps[(~kept).sum(1)] * ((~kept).sum(1) > 0)[:, None]

    missing = (~every).astype(float)
    whole = game(np.ones((1, n), dtype=bool))
    truth = np.linalg.lstsq(missing, whole - game(every), rcond=None)[0]
    plain, closed = (banzhaf(tried, game(tried), 0.8, sizes=given).values for given in (None, sizes))
    assert np.linalg.norm(closed - truth) < 0.8 * np.linalg.norm(plain - truth)
