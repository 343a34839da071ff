"""Leaving one unit out: what deletion means, and a forecast that is exact for single deletions."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from pairlens import Lens

A, B = "A cat sleeps on the sofa today.", "The dog is sleeping."


def test_deletion_is_what_the_model_makes_of_the_shorter_text():
    model = zoo.encoder("bert", normalize=False)
    lens = Lens(model)
    texts = lens.decompose(
        ["The dog sleeps."], method="occlusion", reference_terms="shift", level="word", progress=False
    )
    text = next(texts)
    assert [unit.text for unit in text.units] == ["[CLS]", "The", "dog", "sleeps", ".", "[SEP]"]
    full, without = model.encode(["The dog sleeps.", "The sleeps."])
    np.testing.assert_allclose(text.values[2], full - without, atol=1e-5)
    assert not text.values[[0, -1]].any()


def test_it_predicts_single_deletions_exactly(minilm):
    e = minilm.explain(A, B, method="occlusion", level="word")
    assert e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum() == pytest.approx(e.score, abs=1e-12)
    model = minilm.encoder.sentence_transformer
    shorter = [A[: unit.start] + A[unit.end :] for unit in e.units_a if unit.kind == "text"]
    scores = model.encode(shorter, normalize_embeddings=True) @ model.encode(B, normalize_embeddings=True)
    predicted = [e.without([i]) for i, unit in enumerate(e.units_a) if unit.kind == "text"]
    np.testing.assert_allclose(predicted, scores, atol=1e-6)
    np.testing.assert_allclose(e.measured_a[1:-1], scores, atol=1e-6)
    assert e.forecast is None  # every deletion that was tried is one that it was made of
