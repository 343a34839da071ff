"""The cache of contributions: what it counts, and what it drops."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from pairlens import (
    Lens,
    Shapley,
)
from pairlens.attribution import decomposer
from pairlens.attribution.decomposer import Job

A, B = "The coffee here is not good.", "This coffee is bad."


@pytest.fixture(scope="module")
def tiny():
    return Lens(zoo.encoder("bert"), dtype="float64")


def test_the_cache_counts_all_arrays_and_drops_the_oldest_text(tiny, monkeypatch):
    texts = [f"the {word} dog and one cat ran over a long red road here" for word in ("big", "old", "sad", "new")]
    work = tiny._decomposer(tiny.resolve(method=Shapley(passes=40)))
    jobs = [Job.of(text, None, "token") for text in texts]
    for some in (jobs[:2], jobs[2:]):
        work.decompose(some)
    sampled = work.decompose(jobs)[jobs[0]]
    assert sampled.noise_residuals is not None
    sizes = [sum(array.nbytes for array in vars(c).values() if hasattr(array, "nbytes")) for c in work._cache.values()]
    assert min(sizes) > sampled.noise_residuals.nbytes + sampled.tried_embeddings.nbytes
    assert work._cached_bytes == sum(sizes)
    monkeypatch.setattr(decomposer, "CACHE_BYTES", sum(sizes) - 1)
    assert list(work.decompose(jobs[3:])) == jobs[1:]  # the oldest is gone
    assert work._cached_bytes == sum(sizes[1:])
    again = work.decompose(jobs)[jobs[0]]
    np.testing.assert_allclose(again.values, sampled.values, atol=1e-12)
