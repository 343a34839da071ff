"""Many pairs at once: the algebra of `similarity`, over arrays of pairs instead of one pair after the other.

With references of length one r_a and r_b, c = r_a · r_b, the plane that "project" takes out has the orthogonal
directions s = r_a + r_b and t = r_a - r_b, of squared lengths 2 (1 ± c). So no decomposition is needed for any pair:

    u · P v = u · v - (u · s)(s · v) / 2 (1 + c) - (u · t)(t · v) / 2 (1 - c)
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens.attribution.products import PARALLEL
from pairlens.corpus.records import vectors_of
from pairlens.corpus.settings import Settings
from pairlens.shapes import Array

TOGETHER = 1024
"""Pairs whose matrices are made together."""


@dataclass(frozen=True)
class Sides:
    """Texts in units of what enters the score's dot product; all their units in a row.

    Attributes:
        values: what the units contribute, (units, dim).
        starts: where each text's units begin, (texts + 1,).
        reference: (texts, dim).
        scored: the embeddings, (texts, dim).
        places: the characters of the units, (units, 2).
        shown: which units are not special tokens, (units,).
        gap: the texts' own gaps, (texts,).
        truncated: (texts,).
    """

    values: Array
    starts: Array
    reference: Array
    scored: Array
    places: Array
    shown: Array
    gap: Array
    truncated: Array

    @classmethod
    def of(cls, table: Any, settings: Settings) -> Sides:
        """Texts from rows of an index."""
        table = table.combine_chunks()
        output, reference = (vectors_of(table.column(name)).astype(np.float64) for name in ("embedding", "reference"))
        column = table.column("contributions").combine_chunks()
        # Fields by `flatten`: a slice of an Arrow list knows where it begins, its fields alone do not.
        fields = table.column("units").combine_chunks().flatten().flatten()
        units = dict(zip(("text", "start", "end", "kind"), fields, strict=True))
        lengths, size = np.linalg.norm(output, axis=1), table.column("size").to_numpy()
        embedding = output * np.divide(size, lengths, out=np.ones_like(size), where=lengths > 0)[:, None]
        shifted = settings.reference_terms == "shift"
        scored = embedding - reference if shifted else embedding
        sizes = np.linalg.norm(scored, axis=1)
        if settings.measure == "cosine":
            scale = np.divide(1.0, sizes, out=np.zeros_like(sizes), where=sizes > 0)
        else:
            own = np.divide(lengths, sizes, out=np.zeros_like(sizes), where=sizes > 0)
            scale = np.where(reference.any(axis=1) & shifted, 1.0, own)
        counts = np.diff(column.offsets.to_numpy())
        values = vectors_of(column.flatten()).astype(np.float32) * np.repeat(scale, counts)[:, None].astype(np.float32)
        return cls(
            values=values,
            starts=np.concatenate([[0], np.cumsum(counts)]),
            reference=np.zeros_like(reference) if shifted else reference * scale[:, None],
            scored=scored * scale[:, None],
            places=np.stack([units[name].to_numpy() for name in ("start", "end")], axis=1),
            shown=np.array([kind != "special" for kind in units["kind"].to_pylist()], dtype=bool),
            gap=table.column("gap").to_numpy(),
            truncated=np.array(table.column("truncated").to_pylist(), dtype=bool),
        )


@dataclass(frozen=True)
class Strongest:
    """The strongest entries of one pair's matrix: places of both units, (k, 4), and values, (k,)."""

    places: Array
    values: Array


NUMBERS = ("score", "base", "effects_a", "effects_b", "pairs", "gap", "gap_a", "gap_b")


def compare(
    a: Sides, b: Sides, left: Array, right: Array, reference_terms: str, top: int, *, special: bool
) -> tuple[dict[str, Array], list[Strongest]]:
    """The sums of many explanations, and the strongest entries of each.

    Args:
        a: texts.
        b: texts.
        left: for every pair, which of the texts of a it has, (pairs,).
        right: which of b, (pairs,).
        reference_terms: the treatment.
        top: how many entries.
        special: whether special tokens may be among them.
    """
    found = {name: np.zeros(len(left)) for name in NUMBERS}
    strongest: list[Strongest] = [Strongest(np.zeros((0, 4)), np.zeros(0))] * len(left)
    for pairs in _shapes(a, b, left, right):
        i, j = left[pairs], right[pairs]
        rows_a, rows_b = (
            side.starts[which][:, None] + np.arange(int(np.diff(side.starts)[which[0]]))
            for side, which in ((a, i), (b, j))
        )
        matrix, terms = _explain(a, b, i, j, a.values[rows_a], b.values[rows_b], reference_terms)
        terms |= {"gap_a": a.gap[i], "gap_b": b.gap[j], "pairs": matrix.sum(axis=(1, 2), dtype=np.float64)}
        terms["gap"] = terms["score"] - sum(terms[name] for name in ("base", "effects_a", "effects_b", "pairs"))
        for name in NUMBERS:
            found[name][pairs] = terms[name]
        places = a.places[rows_a], b.places[rows_b]
        shown = None if special else a.shown[rows_a][:, :, None] & b.shown[rows_b][:, None, :]
        for pair, best in zip(pairs, _best(matrix, places, shown, top), strict=True):
            strongest[pair] = best
    return found, strongest


def _shapes(a: Sides, b: Sides, left: Array, right: Array) -> Iterator[Array]:
    """The pairs whose matrices have one shape, some at a time."""
    counts = np.diff(a.starts)[left], np.diff(b.starts)[right]
    keys = counts[0].astype(np.int64) * 2**32 + counts[1]
    order = np.argsort(keys, kind="stable")
    for group in np.split(order, np.flatnonzero(np.diff(keys[order])) + 1):
        yield from (group[start : start + TOGETHER] for start in range(0, len(group), TOGETHER))


def _explain(
    a: Sides, b: Sides, i: Array, j: Array, values_a: Array, values_b: Array, reference_terms: str
) -> tuple[Array, dict[str, Array]]:
    """Matrices of one shape, (pairs, units_a, units_b), and the terms beside them, (pairs,) each."""
    matrix = values_a @ values_b.transpose(0, 2, 1)
    scored_a, scored_b, reference_a, reference_b = a.scored[i], b.scored[j], a.reference[i], b.reference[j]
    nothing = np.zeros(len(i))
    terms = {"score": _dot(scored_a, scored_b), "base": nothing, "effects_a": nothing, "effects_b": nothing}
    if reference_terms == "project":
        terms["base"] = nothing.copy()
        for direction, weight in _plane(reference_a, reference_b):
            along_a = values_a @ direction[:, :, None].astype(np.float32)
            along_b = values_b @ (direction * weight[:, None])[:, :, None].astype(np.float32)
            matrix = matrix - along_a * along_b.transpose(0, 2, 1)
            terms["base"] += weight * _dot(scored_a, direction) * _dot(scored_b, direction)
    elif reference_terms == "keep":
        terms["base"] = _dot(reference_a, reference_b)
        terms["effects_a"] = _dot(values_a.sum(axis=1, dtype=np.float64), reference_b)
        terms["effects_b"] = _dot(values_b.sum(axis=1, dtype=np.float64), reference_a)
    elif reference_terms == "ignore":
        terms["base"] = _dot(scored_a, reference_b) + _dot(reference_a, scored_b) - _dot(reference_a, reference_b)
    return matrix, terms


def _plane(reference_a: Array, reference_b: Array) -> Iterator[tuple[Array, Array]]:
    """Two orthogonal directions of every pair's plane, (pairs, dim), and what their products are divided by."""
    unit_a, unit_b = (_normalised(reference) for reference in (reference_a, reference_b))
    cosine = _dot(unit_a, unit_b)
    largest = 1 + np.abs(cosine)
    for direction, squared in ((unit_a + unit_b, 1 + cosine), (unit_a - unit_b, 1 - cosine)):
        kept = squared > PARALLEL**2 * largest
        yield direction, np.where(kept, 1 / (2 * np.where(kept, squared, 1.0)), 0.0)


def _best(matrix: Array, places: tuple[Array, Array], shown: Array | None, top: int) -> Iterator[Strongest]:
    """The strongest entries of every matrix, strongest first."""
    pairs, _, columns = matrix.shape
    strength = np.abs(matrix) if shown is None else np.where(shown, np.abs(matrix), -1.0)
    order = np.argsort(-strength.reshape(pairs, -1), axis=1, kind="stable")[:, :top]
    values = np.take_along_axis(matrix.reshape(pairs, -1), order, axis=1)
    kept = np.take_along_axis(strength.reshape(pairs, -1), order, axis=1) >= 0
    index = np.arange(pairs)[:, None]
    both = np.concatenate([places[0][index, order // columns], places[1][index, order % columns]], axis=2)
    return (Strongest(own[k], value[k]) for own, value, k in zip(both, values, kept, strict=True))


def _dot(a: Array, b: Array) -> Array:
    return np.einsum("nd,nd->n", a, b)


def _normalised(vectors: Array) -> Array:
    sizes = np.linalg.norm(vectors, axis=1, keepdims=True)
    return np.divide(vectors, sizes, out=np.zeros_like(vectors), where=sizes > 0)
