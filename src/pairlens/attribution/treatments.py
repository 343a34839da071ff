"""From contributions to an explanation: what the references' share of the score is, and who bears it.

With embeddings V = R + Σ_s U[s], the score V_a · V_b expands into four terms. The treatments differ in what they do
with those that hold a reference R; in all of them

    score = base + Σ effects_a + Σ effects_b + Σ matrix + gap
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from pairlens import linalg
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.explanation import Explanation, lazy
from pairlens.attribution.products import products
from pairlens.attribution.side import Inside, Side, side
from pairlens.errors import InputError, ReferenceWarning, warn
from pairlens.shapes import Array

ENTRIES = 2**22
"""How many entries of matrices are made together: 32 MiB of them, and as much again while they are cut out."""


MOSTLY = (
    "the references' share of some scores, the explanations' base, is more than half of them: their matrix says little "
    "about such pairs. Look at reference_terms='keep'."
)


def explain(a: Contributions, b: Contributions, *, reference_terms: str, measure: str) -> Explanation:
    """The explanation of two texts from their contributions.

    Args:
        a: one text's contributions.
        b: the other's, of the same model.
        reference_terms: "project", "shift", "keep" or "ignore".
        measure: "cosine" or "dot".
    """
    return next(_explained(*_pair(a, b, reference_terms, measure), reference_terms, many=False))


def explain_all(
    firsts: Sequence[Contributions],
    seconds: Sequence[Contributions],
    *,
    reference_terms: str,
    measure: str,
    many: bool = True,
) -> Iterator[Explanation]:
    """The explanations of many pairs, given by their first and their second texts, in order.

    Pairs that share texts are worked on together: of matrix and base, what else is there may change the last bits, as
    the order of a sum does. If there is something wrong with a pair, all before it come first.

    Args:
        firsts: the contributions of the first texts.
        seconds: those of the second ones.
        reference_terms: as for `explain`.
        measure: likewise.
        many: warn of all pairs in the same words, which Python shows once.
    """
    try:
        sides_a, sides_b = _sides(firsts, seconds, reference_terms, measure)
    except InputError:
        if len(firsts) == 1:
            raise
        for a, b in zip(firsts, seconds, strict=True):
            yield from explain_all([a], [b], reference_terms=reference_terms, measure=measure, many=many)
        return
    for some in _portions(sides_a, sides_b):
        yield from _explained(sides_a[some], sides_b[some], reference_terms, many=many)


def matrix(a: Contributions, b: Contributions, *, reference_terms: str, measure: str) -> Array:
    """The matrix alone, for contributions that need not add up to the embedding, (rows of a, rows of b)."""
    return products(*_pair(a, b, reference_terms, measure)).matrices[0]


def _explained(sides_a: list[Side], sides_b: list[Side], reference_terms: str, *, many: bool) -> Iterator[Explanation]:
    """The explanations of pairs whose products are made together."""
    found = products(sides_a, sides_b)
    insides = found.insides_a, found.insides_b
    columns = zip(sides_a, sides_b, found.matrices, found.scores, found.bases, *insides, strict=True)
    for a, b, matrix, score, base, inside_a, inside_b in columns:
        effects = None
        if reference_terms == "project":
            if abs(base) > abs(score) / 2:
                told = (
                    f"the references' share, base = {base:.3f}, is more than half of the score, {score:.3f}: the "
                    "matrix says little about this pair. Look at reference_terms='keep'."
                )
                warn(MOSTLY if many else told, ReferenceWarning)
        elif reference_terms == "keep":
            scale = a.scale * b.scale
            base = scale * float(a.reference @ b.reference)
            effects = scale * (a.values @ b.reference), scale * (b.values @ a.reference)
        elif reference_terms == "ignore":
            part_a, part_b = a.scale * a.reference, b.scale * b.reference
            base = float(a.scored @ part_b + part_a @ b.scored - part_a @ part_b)
        sampled = None if a.noise is b.noise is None else _standard_error(a, b, inside_a, inside_b)
        matrix.setflags(write=False)
        known = {"score": score, "matrix": matrix, "base": base, "truncated_a": a.truncated, "truncated_b": b.truncated}
        yield lazy(known, _rest, inside_a, inside_b, effects, sampled)


def _rest(
    begun: Explanation,
    inside_a: Inside,
    inside_b: Inside,
    effects: tuple[Array, Array] | None,
    sampled: Array | None,
) -> dict[str, Any]:
    """The fields of an explanation that follow from little: no text's values are kept for them."""
    gap = begun.score - begun.base - float(begun.matrix.sum())
    if effects is None:
        effects = np.zeros(len(begun.matrix)), np.zeros(begun.matrix.shape[1])
    else:
        gap -= float(effects[0].sum()) + float(effects[1].sum())
    error = linalg.product(inside_a.bound[0].T, inside_b.bound[1]) if sampled is None else sampled
    a, b = inside_a.about, inside_b.about
    return {
        "text_a": a.text,
        "text_b": b.text,
        "units_a": a.units,
        "units_b": b.units,
        "tokens_a": a.tokens,
        "tokens_b": b.tokens,
        "effects_a": _kept(effects[0]),
        "effects_b": _kept(effects[1]),
        "gap": gap,
        "gap_a": a.gap,
        "gap_b": b.gap,
        "entry_error": _kept(error),
        "settings": {
            **_settings(a.settings, b.settings),
            **a.treatment,
            "roles": [a.role, b.role],
            "nodes": [a.nodes, b.nodes],
        },
    }


def _sides(
    firsts: Sequence[Contributions], seconds: Sequence[Contributions], reference_terms: str, measure: str
) -> tuple[list[Side], list[Side]]:
    """The two sides of pairs, of one space each."""
    known = {c: side(c, reference_terms, measure) for c in dict.fromkeys((*firsts, *seconds))}
    if len({own.space for own in known.values()}) > 1:
        for a, b in zip(firsts, seconds, strict=True):
            _check_spaces(known[a], known[b])
    return [known[c] for c in firsts], [known[c] for c in seconds]


def _pair(a: Contributions, b: Contributions, reference_terms: str, measure: str) -> tuple[list[Side], list[Side]]:
    """The same for one pair."""
    sides = side(a, reference_terms, measure), side(b, reference_terms, measure)
    _check_spaces(*sides)
    return [sides[0]], [sides[1]]


def _check_spaces(a: Side, b: Side) -> None:
    if a.space == b.space:
        return
    for name, one, other in zip(("model", "fingerprint"), a.space, b.space, strict=False):
        if one != other:
            raise InputError(f"two models share no space: the contributions' {name} is {one!r} and {other!r}.")
    raise InputError(f"the two embeddings have {a.space[-1]} and {b.space[-1]} dimensions.")


def _portions(sides_a: list[Side], sides_b: list[Side]) -> Iterator[slice]:
    """Pairs whose matrices are made together: all of them, but for the memory that those of long texts take."""
    sizes = [len(a.values) * len(b.values) for a, b in zip(sides_a, sides_b, strict=True)]
    start = total = 0
    for place, size in enumerate(sizes):
        total += size
        if total > ENTRIES and place > start:
            yield slice(start, place)
            start, total = place, size
    if sizes:
        yield slice(start, len(sizes))


def _standard_error(a: Side, b: Side, inside_a: Inside, inside_b: Inside) -> Array:
    """How far off each entry may be where texts were sampled: a standard error, and a bound for a side that was not.

    It is computed in single precision, like the draws.
    """
    # A side without noise has none in no draws.
    dim, none = len(a.scored), np.zeros((0, inside_a.values.shape[1]))
    weights_a, residuals_a = a.noise or (np.zeros((0, len(a.values))), np.zeros((0, dim)))
    weights_b, residuals_b = b.noise or (np.zeros((0, len(b.values))), np.zeros((0, dim)))
    along_a, along_b = (none if own.residuals is None else own.residuals for own in (inside_a, inside_b))
    hits_a = a.scale * linalg.rough(residuals_b, a.values.T) - along_b @ inside_a.values.T
    hits_b = b.scale * linalg.rough(residuals_a, b.values.T) - along_a @ inside_b.values.T
    squares = np.square(linalg.rough(residuals_a, residuals_b.T) - linalg.rough(along_a, along_b.T))
    variance = (weights_a**2).T @ hits_b**2 + (hits_a**2).T @ weights_b**2
    variance += linalg.rough((weights_a**2).T, squares) @ weights_b**2
    if np.may_share_memory(residuals_a, residuals_b):  # one sampling of one text, at whatever levels
        variance += 2 * (weights_a * hits_a).T @ (weights_b * hits_b)
    bound_a = np.outer(a.about.error, inside_b.bound[0][1]) if a.noise is None else 0.0
    bound_b = np.outer(inside_a.bound[0][1], b.about.error) if b.noise is None else 0.0
    return np.sqrt(np.maximum(variance, 0.0)) + bound_a + bound_b


def _kept(array: Array) -> Array:
    """An array of ours, from now on as it is."""
    array.flags.writeable = False
    return array


def _settings(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """What made an explanation; where the two texts' settings differ, a list of both."""
    if a == b:
        return a
    return {n: a.get(n) if a.get(n) == b.get(n) else [a.get(n), b.get(n)] for n in dict.fromkeys([*a, *b])}
