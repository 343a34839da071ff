"""Contributions made by hand."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from pairlens import Contributions, Unit

DIM = 7


def contributions(
    seed: int, units: int = 4, *, space: str = "raw", gap: float = 0.0, reference: str = "some", dim: int = DIM
):
    """A text whose contributions add up but for a relative error of `gap`."""
    rng = np.random.default_rng(seed)
    values, start = rng.normal(size=(units, dim)), rng.normal(size=dim)
    if reference == "none":
        start = np.zeros(dim)
    embedding = start + values.sum(0)
    if space == "unit":
        # A split of the normalised embedding: rescale the parts so that they add up to it.
        start = start / np.linalg.norm(start)
        embedding = embedding / np.linalg.norm(embedding)
        values = values + (embedding - start - values.sum(0)) / units
    error = rng.normal(size=dim)
    error *= gap * np.linalg.norm(embedding - start) / np.linalg.norm(error)
    values = values + error / units
    return Contributions(
        text=f"text {seed}",
        units=tuple(Unit(f"u{i}", i, i + 1) for i in range(units)),
        tokens=tuple(f"u{i}" for i in range(units)),
        values=values,
        error=np.full(units, 1e-3),
        reference=start,
        embedding=embedding,
        output=embedding,
        gap=gap,
        settings={"model": "m", "space": space, "level": "token"},
    )


def space_of(terms: str, measure: str) -> str:
    return "unit" if terms in ("project", "keep") and measure == "cosine" else "raw"


def sampled(seed: int, space: str, units: int = 4) -> Contributions:
    """A text whose contributions were sampled."""
    rng, own = np.random.default_rng(seed), contributions(seed, units, space=space)
    return replace(own, noise_weights=rng.normal(size=(9, units)), noise_residuals=rng.normal(size=(9, DIM)))
