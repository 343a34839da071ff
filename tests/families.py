"""Explanations of tiny models of every family, and the checks that hold for all of them."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from sentence_transformers import SentenceTransformer

import zoo
from pairlens import Explanation, Lens

A, B = zoo.TEXTS[:2]
ROLES = ("query", "document")
# These compute in float32 inside, with any dtype of the model.
FLOAT32_INSIDE = ("modernbert", "t5", "qwen3", "gemma3", "embeddinggemma")


def families(*fast: str, without: str = "") -> list[Any]:
    """Return all families but one as parameters; those that are not named are marked slow."""
    chosen = [name for name in zoo.FAMILIES if name != without]
    return [name if name in fast else pytest.param(name, marks=pytest.mark.slow) for name in chosen]


@cache
def model_of(family: str) -> SentenceTransformer:
    """Return the family's encoder, made once."""
    return zoo.encoder(family)


@cache
def lens_of(family: str) -> Lens:
    """Return a float64 lens on the family's encoder, made once."""
    return Lens(model_of(family), dtype="float64")


def score_of(model: SentenceTransformer, roles: tuple[str | None, str | None] = (None, None)) -> float:
    """Return the similarity of A and B that the model itself computes."""
    encode: Any = {None: model.encode, "query": model.encode_query, "document": model.encode_document}
    return float(model.similarity(encode[roles[0]](A), encode[roles[1]](B)))


def total(e: Explanation) -> float:
    """Return the sum of all parts of an explanation."""
    return e.base + float(e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum()) + e.gap


def check(
    model: SentenceTransformer, *, tol: float | None = None, roles: Any = (None, None), **options: Any
) -> Explanation:
    """Explain A and B; check that the score is the model's, the parts add up to it, and gaps are below tol."""
    e = Lens(model, dtype="float64").explain(A, B, tol=tol, roles=roles, **options)
    assert e.score == pytest.approx(score_of(model, roles), rel=5e-6, abs=5e-6)
    assert total(e) == pytest.approx(e.score, rel=1e-12)
    assert max(e.gap_a, e.gap_b) <= (1e-3 if tol is None else tol)
    return e
