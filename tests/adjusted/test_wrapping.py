"""Explanations of adjusted models: matrices that sum to the model's own score."""

from __future__ import annotations

import numpy as np
import pytest
import torch.nn.functional as F  # noqa: N812

from adjusting import A, B, encode, tiny
from pairlens import Lens

SLOW = pytest.mark.slow


@pytest.mark.parametrize(
    "family", ["bert", *(pytest.param(name, marks=pytest.mark.slow) for name in ("roberta", "mpnet"))]
)
@pytest.mark.parametrize(("normalize", "similarity"), [(True, "cosine"), (False, "dot"), (False, "cosine")])
def test_the_matrix_sums_to_the_score_of_the_model(family, normalize, similarity):
    _, model = tiny(family, normalize=normalize, similarity=similarity)
    one, other = encode(model, [A, B])
    score = float(one @ other if similarity == "dot" else F.cosine_similarity(one, other, dim=0))
    lens = Lens(model, dtype="float64")
    assert lens.adjusted
    for layer in (0, 2, 3):
        e = lens.explain(A, B, layer=layer, tol=1e-6)
        size = max(1.0, float(one.norm() * other.norm())) if similarity == "dot" else 1.0
        assert (e.base, abs(e.effects_a).max(), abs(e.effects_b).max()) == (0.0, 0.0, 0.0)
        assert e.score == pytest.approx(score, abs=1e-9 * size)
        assert e.matrix.sum() == pytest.approx(score, abs=3e-6 * size)


@pytest.mark.parametrize("normalize", [True, False])
def test_all_treatments_of_the_reference_agree(normalize):
    lens = Lens(tiny("roberta", normalize=normalize)[1], dtype="float64")
    expected = lens.explain(A, B, layer=1, tol=1e-6)
    for treatment in ("shift", "project", "keep", "ignore"):
        e = lens.explain(A, B, layer=1, tol=1e-6, reference_terms=treatment)
        assert e.base == 0.0
        assert e.score == pytest.approx(expected.score, abs=1e-12)
        assert np.allclose(e.matrix, expected.matrix, atol=1e-12)


@pytest.mark.parametrize("method", ["shapley", "fade", "output"])
def test_other_methods_sum_to_the_score_too(method):
    lens = Lens(tiny("bert")[1], dtype="float64")
    e = lens.explain(A, B, method=method, level="word")
    total = e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum()
    assert total == pytest.approx(e.score, abs=3e-3)
    assert e.base == pytest.approx(0.0, abs=1e-9)
