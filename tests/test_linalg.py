"""Products of arrays in pieces: the same numbers, whichever way they are taken."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.linalg import LARGE, SMALL, product


@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [(3, 5, 4), (246, 41, 384), (20, 384, 512), (512, 384, 20), (1, 600, 600), (600, 600, 1), (300, 300, 60)],
)
def test_a_product_is_the_product(rows, inner, columns):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
    for left, right in ((a, b), (np.asfortranarray(a), b[:, ::-1]), (a[::-1], b.copy(order="F"))):
        np.testing.assert_allclose(product(left, right), left @ right, atol=1e-10)


def test_the_cases_above_are_of_all_sizes():
    assert 3 * 5 * 4 <= SMALL < 246 * 41 * 384 < LARGE <= 300 * 300 * 60
