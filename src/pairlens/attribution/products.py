"""The product of two texts' contributions: the matrix, what the references' plane takes out of it, and its errors.

A text may be in thousands of pairs. What depends on the text alone, or on the text and the other text's reference, is
computed once and cached beside the contributions; texts of one length share their reference.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np

from pairlens import linalg
from pairlens.methods import Trials
from pairlens.shapes import Array, Matrix

PARALLEL = 1e-4
"""Two references span one direction where the smaller singular value is below this share of the larger one."""
PROJECTIONS = 64
"""How many other references a text keeps its projection for."""


class Projection(NamedTuple):
    """A text's components along 0 to 2 directions that its own and another text's references span.

    Attributes:
        values: of its scaled contributions, (units, directions).
        embedding: of its scaled embedding, (directions,).
        residuals: of the directions of the sampling errors, (draws, directions), or None.
        sizes: the norms of the scaled contributions outside these directions, (units,).
        bound: two factors, (2, units) each; the first one's transpose times another text's second one bounds the error
            of each entry of their matrix.
    """

    values: Array
    embedding: Array
    residuals: Array | None
    sizes: Array
    bound: tuple[Array, Array]


@dataclass(frozen=True, eq=False, slots=True)
class ScoredText:
    """One text as it enters the dot product that is its score, under a treatment and a measure.

    Attributes:
        values: contributions before scaling, (units, dim).
        scale: the factor of values and reference.
        reference: the reference's embedding before scaling, (dim,).
        embedding: the embedding, scaled, (dim,).
        error: the norms of the errors of the scaled contributions, (units,).
        noise: for sampled texts, scaled weights (draws, units) and directions (draws, dim) of the errors.
        projects: whether the references' plane is removed from the matrix.
        trials: the deletions that were tried, scaled, with a column for every unit that is no compound; None for
            methods that do not delete.
        settings: the contributions' settings, without those that an explanation reports per text.
        roles_and_nodes: the settings that an explanation reports per text.
    """

    values: Array
    scale: float
    reference: Array
    embedding: Array
    error: Array
    noise: tuple[Array, Array] | None
    projects: bool
    trials: Trials | None
    settings: dict[str, Any]
    roles_and_nodes: tuple[Any, Any]
    _key: bytes = field(init=False)
    _projections: dict[bytes, Projection] = field(default_factory=dict)

    def __post_init__(self) -> None:
        # The same for all texts where nothing is projected: their projections have no directions.
        key = hashlib.blake2b(self.reference.tobytes(), digest_size=16).digest() if self.projects else b""
        object.__setattr__(self, "_key", key)

    def project(self, other: ScoredText) -> Projection:
        """The text's components in the plane of its own and the other text's reference."""
        projection = self._projections.get(other._key)
        if projection is None:
            if len(self._projections) >= PROJECTIONS:
                self._projections.clear()
            projection = self._projections[other._key] = self._project(other)
        return projection

    def _project(self, other: ScoredText) -> Projection:
        # The same basis for (a, b) and (b, a): the two projections are multiplied with each other.
        first, second = (self, other) if self._key <= other._key else (other, self)
        basis = _span(first.reference, second.reference) if self.projects else np.zeros((len(self.embedding), 0))
        values = self.scale * self.values.dot(basis)
        norms, inside = self.scale * linalg.lengths(self.values), linalg.lengths(values)
        sizes = np.sqrt(np.maximum((norms - inside) * (norms + inside), 0.0))
        return Projection(
            values=values,
            embedding=self.embedding.dot(basis),
            residuals=None if self.noise is None else linalg.rough(self.noise[1], basis),
            sizes=sizes,
            bound=(np.array([self.error, sizes]), np.array([sizes + self.error, self.error])),
        )


def product(a: ScoredText, b: ScoredText) -> tuple[Matrix, float]:
    """The matrix of a pair, (units_a, units_b), and what the embeddings' product is inside the references' plane."""
    matrix = linalg.product(a.values, b.values.T)
    matrix *= a.scale * b.scale
    if not a.projects:
        return matrix, 0.0
    inside_a, inside_b = a.project(b), b.project(a)
    matrix -= inside_a.values.dot(inside_b.values.T)
    return matrix, float(inside_a.embedding.dot(inside_b.embedding))


def entry_error(a: ScoredText, b: ScoredText) -> Matrix:
    """How far off each entry of the matrix may be, (units_a, units_b).

    A standard error where a text was sampled, else a bound from the errors of both texts' rows.
    """
    if a.noise is None and b.noise is None:
        return linalg.product(a.project(b).bound[0].T, b.project(a).bound[1])
    return _standard_error(a, b)


def _standard_error(a: ScoredText, b: ScoredText) -> Matrix:
    """The standard error of each entry, plus a bound for a text that was not sampled; in single precision."""
    inside_a, inside_b = a.project(b), b.project(a)
    weights_a, residuals_a, along_a = _draws(a, inside_a)
    weights_b, residuals_b, along_b = _draws(b, inside_b)
    hits_a = a.scale * linalg.rough(residuals_b, a.values.T) - along_b @ inside_a.values.T
    hits_b = b.scale * linalg.rough(residuals_a, b.values.T) - along_a @ inside_b.values.T
    squares = np.square(linalg.rough(residuals_a, residuals_b.T) - linalg.rough(along_a, along_b.T))
    variance = (weights_a**2).T @ hits_b**2 + (hits_a**2).T @ weights_b**2
    variance += linalg.rough((weights_a**2).T, squares) @ weights_b**2
    if np.may_share_memory(residuals_a, residuals_b):  # one sampling of one text, perhaps at two levels
        variance += 2 * (weights_a * hits_a).T @ (weights_b * hits_b)
    bound_a = np.outer(a.error, inside_b.sizes) if a.error.any() else 0.0
    bound_b = np.outer(inside_a.sizes, b.error) if b.error.any() else 0.0
    return np.sqrt(np.maximum(variance, 0.0)) + bound_a + bound_b


def _draws(text: ScoredText, inside: Projection) -> tuple[Array, Array, Array]:
    """Weights, directions and their components in the plane; no draws for a text that was not sampled."""
    if text.noise is None or inside.residuals is None:
        return (
            np.zeros((0, len(text.values))),
            np.zeros((0, len(text.embedding))),
            np.zeros((0, inside.values.shape[1])),
        )
    return *text.noise, inside.residuals


def _span(a: Array, b: Array) -> Array:
    """An orthonormal basis of what two references span, (dim, 0 to 2).

    Nearly parallel references span one direction, zero ones none.
    """
    units = [vector / size for vector in (a, b) if (size := linalg.length(vector)) > 0]
    if not units:
        return np.zeros((len(a), 0))
    # The singular vectors of two unit vectors are their sum and their difference.
    axes = [units[0] + units[1], units[0] - units[1]] if len(units) == 2 else units
    sizes = [linalg.length(axis) for axis in axes]
    return np.array([axis / size for axis, size in zip(axes, sizes, strict=True) if size > PARALLEL * max(sizes)]).T
