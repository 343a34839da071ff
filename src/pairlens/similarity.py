"""Two texts' contributions to their explanation: the matrix, and what becomes of the references' own share.

With V = e(x) as it enters the score, split as V = R + Σ_s U[s], the score V_a · V_b expands into four terms. The
treatments differ in what they do with those that hold a reference R; in all of them

    score = base + Σ effects_a + Σ effects_b + Σ matrix + gap
"""

from __future__ import annotations

import functools
import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens import algebra
from pairlens.contributions import Contributions
from pairlens.errors import InputError, ReferenceWarning, choose
from pairlens.explanation import Explanation
from pairlens.shapes import Array

TREATMENTS = ("project", "shift", "keep", "ignore")
MEASURES = ("cosine", "dot")


def space_for(reference_terms: str, measure: str) -> str:
    """Which embedding a treatment takes apart: before a final Normalize, of length one, or as the model gives it."""
    if reference_terms in ("shift", "ignore"):
        return "raw"
    return "unit" if measure == "cosine" else "output"


def explain(a: Contributions, b: Contributions, *, reference_terms: str, measure: str) -> Explanation:
    """The explanation of two texts from their contributions.

    Args:
        a: one text's contributions.
        b: the other's, of the same model.
        reference_terms: "project", "shift", "keep" or "ignore".
        measure: "cosine" or "dot".
    """
    side_a, side_b = _sides(a, b, reference_terms, measure)
    score = float(side_a.scored @ side_b.scored)
    base = 0.0
    effects_a, effects_b = np.zeros(len(a.units)), np.zeros(len(b.units))
    if reference_terms == "project":
        plane = _plane(side_a.reference, side_b.reference)
        base = float((side_a.scored @ plane) @ (side_b.scored @ plane))
    elif reference_terms == "keep":
        base = float(side_a.reference @ side_b.reference)
        effects_a, effects_b = side_a.values @ side_b.reference, side_b.values @ side_a.reference
    elif reference_terms == "ignore":
        base = float(side_a.scored @ side_b.reference + side_a.reference @ side_b.scored)
        base -= float(side_a.reference @ side_b.reference)
    values_a, values_b = _attributed(side_a, side_b, reference_terms)
    matrix = values_a @ values_b.T
    entry_error = _entry_error(side_a, side_b, values_a, values_b, reference_terms, same=_same_noise(a, b))
    if abs(base) > abs(score) / 2 and reference_terms == "project":
        warnings.warn(
            f"the references' share, base = {base:.3f}, is more than half of the score, {score:.3f}: the matrix says "
            "little about this pair. Look at reference_terms='keep'.",
            ReferenceWarning,
            stacklevel=3,
        )
    return Explanation(
        text_a=a.text,
        text_b=b.text,
        score=score,
        matrix=matrix,
        units_a=a.units,
        units_b=b.units,
        tokens_a=a.tokens,
        tokens_b=b.tokens,
        base=base,
        effects_a=effects_a,
        effects_b=effects_b,
        gap=score - base - float(effects_a.sum()) - float(effects_b.sum()) - float(matrix.sum()),
        gap_a=a.gap,
        gap_b=b.gap,
        entry_error=entry_error,
        truncated_a=a.truncated,
        truncated_b=b.truncated,
        settings=_settings(a, b, reference_terms, measure),
    )


def matrix(a: Contributions, b: Contributions, *, reference_terms: str, measure: str) -> Array:
    """The matrix alone, for contributions that need not add up to the embedding, (rows of a, rows of b)."""
    values_a, values_b = _attributed(*_sides(a, b, reference_terms, measure), reference_terms)
    return values_a @ values_b.T


@dataclass(frozen=True)
class _Side:
    """One text in units of what enters the score's dot product."""

    values: Array
    reference: Array
    scored: Array
    error: Array
    noise: tuple[Array, Array] | None


def _sides(a: Contributions, b: Contributions, reference_terms: str, measure: str) -> tuple[_Side, _Side]:
    choose("reference_terms", reference_terms, TREATMENTS)
    choose("measure", measure, MEASURES)
    for name in ("model", "fingerprint"):
        one, other = a.settings.get(name), b.settings.get(name)
        if one != other:
            raise InputError(f"two models share no space: the contributions' {name} is {one!r} and {other!r}.")
    if a.embedding.shape != b.embedding.shape:
        raise InputError(f"the two embeddings have {a.embedding.size} and {b.embedding.size} dimensions.")
    return _scaled(a, reference_terms, measure), _scaled(b, reference_terms, measure)


def _attributed(a: _Side, b: _Side, reference_terms: str) -> tuple[Array, Array]:
    """The vectors whose products make the matrix."""
    if reference_terms != "project":
        return a.values, b.values
    plane = _plane(a.reference, b.reference)
    return a.values - (a.values @ plane) @ plane.T, b.values - (b.values @ plane) @ plane.T


def _same_noise(a: Contributions, b: Contributions) -> bool:
    """Whether two contributions come from one sampling of one text, at whatever levels."""
    one, other = a.noise_residuals, b.noise_residuals
    return one is not None and other is not None and np.may_share_memory(one, other)


def _entry_error(a: _Side, b: _Side, values_a: Array, values_b: Array, reference_terms: str, *, same: bool) -> Array:
    """How far off each entry may be: a bound from the rows' own errors or, where texts were sampled, a standard error.

    Args:
        a: one text.
        b: the other.
        values_a: the vectors whose products make the matrix, (units_a, dim).
        values_b: (units_b, dim).
        reference_terms: the treatment.
        same: the two are one text, so that their errors are one.
    """
    sizes_a, sizes_b = algebra.lengths(values_a), algebra.lengths(values_b)
    if a.noise is None and b.noise is None:
        return np.outer(a.error, sizes_b + b.error) + np.outer(sizes_a, b.error)
    # A side without noise has none in no draws.
    nothing = np.zeros((0, len(a.scored)))
    weights_a, residuals_a = a.noise or (np.zeros((0, len(values_a))), nothing)
    weights_b, residuals_b = b.noise or (np.zeros((0, len(values_b))), nothing)
    along_a, along_b = algebra.product(residuals_b, values_a.T), algebra.product(residuals_a, values_b.T)
    plane = _plane(a.reference, b.reference) if reference_terms == "project" else np.zeros((len(a.scored), 0))
    products = algebra.product(residuals_a, residuals_b.T) - (residuals_a @ plane) @ (residuals_b @ plane).T
    variance = (weights_a**2).T @ along_b**2 + (along_a**2).T @ weights_b**2
    variance += algebra.product((weights_a**2).T, products**2) @ weights_b**2
    if same:
        variance += 2 * (weights_a * along_a).T @ (weights_b * along_b)
    bound_a = np.outer(a.error, sizes_b) if a.noise is None else 0.0
    bound_b = np.outer(sizes_a, b.error) if b.noise is None else 0.0
    return np.sqrt(np.maximum(variance, 0.0)) + bound_a + bound_b


def _scaled(c: Contributions, reference_terms: str, measure: str) -> _Side:
    _check_space(c, reference_terms, measure)
    shifted = reference_terms == "shift"
    scored = c.embedding - c.reference if shifted else c.embedding
    reference = np.zeros_like(c.reference) if shifted else c.reference
    size = algebra.length(scored)
    if size == 0:
        raise InputError(f"the embedding of {c.text!r:.60} is zero, so its similarity to anything means nothing.")
    if measure == "cosine":
        scale = 1 / size
    elif shifted and c.reference.any():
        scale = 1.0
    else:
        # Contributions from before a final Normalize: the model's own output is a multiple of the embedding.
        scale = float(np.linalg.norm(c.output)) / size
    noise = None
    if c.noise_weights is not None and c.noise_residuals is not None:
        noise = (c.noise_weights, c.noise_residuals * scale)
    return _Side(c.values * scale, reference * scale, scored * scale, c.error * scale, noise)


def _check_space(c: Contributions, reference_terms: str, measure: str) -> None:
    """Refuse contributions to another embedding than the treatment takes apart, unless the reference is zero anyway."""
    space, wanted = c.settings.get("space"), space_for(reference_terms, measure)
    if space == wanted or not c.reference.any():
        return
    # A space goes by its first name: without a final Normalize "output" is called "raw", with one "unit".
    same = np.allclose(c.embedding, c.output, rtol=1e-4, atol=1e-6 * np.abs(c.output).max())
    if not (wanted == "output" and same):
        raise InputError(
            f"reference_terms={reference_terms!r} with measure={measure!r} needs contributions to the {wanted} "
            f"embedding, and these are to the {space} one. Decompose with the same reference_terms and measure."
        )


def _plane(a: Array, b: Array) -> Array:
    """An orthonormal basis (dim, 0 to 2) of what the two references span; nearly parallel ones span one direction."""
    return _span(a.tobytes(), b.tobytes())


@functools.lru_cache(maxsize=1024)
def _span(*bytes_of: bytes) -> Array:
    """The same, kept: texts of one length have the same reference, so that many pairs share few of them."""
    a, b = (np.frombuffer(own) for own in bytes_of)
    references = [r / np.linalg.norm(r) for r in (a, b) if r.any()]
    if not references:
        return np.zeros((len(a), 0))
    _, sizes, directions = np.linalg.svd(np.array(references), full_matrices=False)
    return directions[sizes > 1e-4 * sizes[0]].T


def _settings(a: Contributions, b: Contributions, reference_terms: str, measure: str) -> dict[str, Any]:
    """What made the explanation; where the two texts' settings differ, a list of both."""
    one, other = a.settings, b.settings
    names = [name for name in dict.fromkeys([*one, *other]) if name not in ("nodes", "role", "space")]
    shared = {n: one.get(n) if one.get(n) == other.get(n) else [one.get(n), other.get(n)] for n in names}
    return {
        **shared,
        "measure": measure,
        "reference_terms": reference_terms,
        "roles": [one.get("role"), other.get("role")],
        "nodes": [one.get("nodes"), other.get("nodes")],
    }
