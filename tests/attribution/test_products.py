"""Products of two texts' contributions: projections are shared between pairs, and errors follow from both texts."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from handmade import contributions, sampled
from pairlens.attribution.products import _span
from pairlens.attribution.similarity import explain


def test_the_span_of_two_references_is_orthonormal_and_holds_both():
    random = np.random.default_rng(0)
    a, b = random.normal(size=(2, 9))
    basis = _span(a, b)
    assert np.allclose(basis.T @ basis, np.eye(2), atol=1e-14)
    for vector in (a, b):
        assert np.allclose(basis @ basis.T @ vector, vector, atol=1e-13)


@pytest.mark.parametrize(("a", "b", "directions"), [(1.0, 1.0, 1), (1.0, -2.0, 1), (0.0, 1.0, 1), (0.0, 0.0, 0)])
def test_parallel_references_span_one_direction_and_zero_ones_none(a, b, directions):
    vector = np.random.default_rng(1).normal(size=5)
    assert _span(a * vector, b * vector).shape == (5, directions)


def test_nearly_parallel_references_span_one_direction():
    vector, other = np.random.default_rng(2).normal(size=(2, 5))
    assert _span(vector, vector + 1e-9 * other).shape == (5, 1)
    assert _span(vector, vector + 1e-2 * other).shape == (5, 2)


def test_the_matrix_does_not_depend_on_other_pairs_of_the_text():
    a, b, c = (contributions(seed, space="unit") for seed in (1, 2, 3))
    first = explain(a, b, reference_terms="project", measure="cosine")
    explain(a, c, reference_terms="project", measure="cosine")
    again = explain(a, b, reference_terms="project", measure="cosine")
    assert np.array_equal(first.matrix, again.matrix)
    assert first.matrix.base is None or first.matrix.base.size == first.matrix.size


def test_entry_error_bounds_what_an_error_of_the_rows_does():
    a, b = contributions(1, space="unit"), contributions(2, space="unit")
    a, b = (replace(c, error=np.full(len(c.units), 1e-2)) for c in (a, b))
    claimed = explain(a, b, reference_terms="keep", measure="cosine")
    random = np.random.default_rng(0)
    for _ in range(20):
        off = []
        for c in (a, b):
            step = random.normal(size=c.values.shape)
            step *= c.error[:, None] / np.linalg.norm(step, axis=1, keepdims=True)
            off.append(replace(c, values=c.values + step))
        moved = explain(*off, reference_terms="keep", measure="cosine")
        assert (abs(moved.matrix - claimed.matrix) <= claimed.entry_error + 1e-12).all()


def test_standard_errors_are_those_of_the_draws():
    a, b = sampled(1, space="unit"), contributions(2, space="unit")
    claimed = explain(a, b, reference_terms="keep", measure="cosine").entry_error
    assert a.noise_weights is not None
    assert a.noise_residuals is not None
    signs = np.random.default_rng(0).choice([-1.0, 1.0], size=(4000, len(a.noise_weights)))
    scale = 1 / (np.linalg.norm(a.embedding) * np.linalg.norm(b.embedding))
    hits = a.noise_residuals @ b.values.T  # (draws, units_b)
    spread = np.einsum("nd,du,dv->nuv", signs, a.noise_weights, hits).std(0) * scale
    plain = explain(replace(a, noise_weights=None, noise_residuals=None), b, reference_terms="keep", measure="cosine")
    bound = np.outer(np.linalg.norm(a.values, axis=1), b.error) * scale
    assert np.allclose(claimed, spread + bound, rtol=0.1, atol=1e-9)
    assert plain.entry_error.shape == claimed.shape
