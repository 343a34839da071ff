"""From contributions to an explanation: what the references' share of the score is, and who bears it.

With embeddings V = R + Σ_s U[s], the score V_a · V_b expands into four terms. The treatments differ in what they do
with those that hold a reference R; in all of them

    score = base + Σ effects_a + Σ effects_b + Σ matrix + gap

A text may be in thousands of pairs: what does not depend on the other text, or only on the other's reference, which
texts of one length share, is made once and kept as long as its contributions are. For a pair one product is left.
"""

from __future__ import annotations

import hashlib
import operator
import warnings
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from pairlens import algebra
from pairlens.contributions import Contributions
from pairlens.errors import InputError, ReferenceWarning, choose
from pairlens.explanation import Explanation, lazy
from pairlens.shapes import Array
from pairlens.tokens import Unit

TREATMENTS = ("project", "shift", "keep", "ignore")
MEASURES = ("cosine", "dot")
PARALLEL = 1e-4
"""References span one direction where the smaller of their singular values is less than so much of the larger one."""
OTHERS = 32
"""How many other references a text remembers what it has along them."""


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
    inside_a, inside_b = _insides(side_a, side_b)
    score = float(side_a.scored.dot(side_b.scored))
    matrix = _kept(_matrix(side_a, side_b, inside_a, inside_b))
    base, effects = 0.0, None
    if reference_terms == "project":
        base = sum(map(operator.mul, inside_a.scored, inside_b.scored), 0.0)
        if abs(base) > abs(score) / 2:
            warnings.warn(
                f"the references' share, base = {base:.3f}, is more than half of the score, {score:.3f}: the matrix "
                "says little about this pair. Look at reference_terms='keep'.",
                ReferenceWarning,
                stacklevel=3,
            )
    elif reference_terms == "keep":
        scale = side_a.scale * side_b.scale
        base = scale * float(side_a.reference @ side_b.reference)
        effects = scale * (side_a.values @ side_b.reference), scale * (side_b.values @ side_a.reference)
    elif reference_terms == "ignore":
        part_a, part_b = side_a.scale * side_a.reference, side_b.scale * side_b.reference
        base = float(side_a.scored @ part_b + part_a @ side_b.scored - part_a @ part_b)
    sampled = None if side_a.noise is side_b.noise is None else _standard_error(side_a, side_b, inside_a, inside_b)
    known = {"score": score, "matrix": matrix, "base": base, "truncated_a": a.truncated, "truncated_b": b.truncated}
    return lazy(known, _rest, side_a.about, side_b.about, inside_a.bound[0], inside_b.bound[1], effects, sampled)


def _rest(
    begun: Explanation,
    a: _About,
    b: _About,
    bound_a: Array,
    bound_b: Array,
    effects: tuple[Array, Array] | None,
    sampled: Array | None,
) -> dict[str, Any]:
    """The fields of an explanation that follow from little: no text's values are kept for them."""
    gap = begun.score - begun.base - float(begun.matrix.sum())
    if effects is None:
        effects = np.zeros(len(begun.matrix)), np.zeros(begun.matrix.shape[1])
    else:
        gap -= float(effects[0].sum()) + float(effects[1].sum())
    error = algebra.product(bound_a.T, bound_b) if sampled is None else sampled
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


def matrix(a: Contributions, b: Contributions, *, reference_terms: str, measure: str) -> Array:
    """The matrix alone, for contributions that need not add up to the embedding, (rows of a, rows of b)."""
    side_a, side_b = _sides(a, b, reference_terms, measure)
    return _matrix(side_a, side_b, *_insides(side_a, side_b))


class _About(NamedTuple):
    """What an explanation says of a text; little enough to go with each of them.

    `settings`: those that texts taken apart together share. `treatment`: the explanation's own.
    """

    text: str
    units: tuple[Unit, ...]
    tokens: tuple[str, ...]
    gap: float
    role: Any
    nodes: Any
    settings: dict[str, Any]
    treatment: dict[str, str]

    @classmethod
    def of(cls, c: Contributions, **treatment: str) -> _About:
        """What there is to say of a text, under a treatment."""
        role, nodes = c.settings.get("role"), c.settings.get("nodes")
        shared = {name: own for name, own in c.settings.items() if name not in ("nodes", "role", "space")}
        return cls(c.text, c.units, c.tokens, c.gap, role, nodes, shared, treatment)


@dataclass(frozen=True, eq=False, slots=True)
class _Inside:
    """What a text has inside the plane of its own and another reference, which leaves the matrix, and what outside.

    Inside, along 0 to 2 directions: `values` (units, directions), `scored` (directions,) and, of the noise, `residuals`
    (draws, directions). Outside: the lengths of values and their errors as the two factors of a `bound` of errors,
    (2, units) each.
    """

    values: Array
    scored: list[float]
    residuals: Array | None
    bound: tuple[Array, Array]


@dataclass(frozen=True, eq=False, slots=True)
class _Side:
    """One text as it enters the score's dot product: `scale` times its values and its reference.

    `scored`, `sizes` (the lengths of its values), `error` and `noise` are scaled already. `projected`: whether the
    references' plane leaves the matrix. `key`: tells what it has inside the plane with this reference from what it has
    with others. `space`: the one it is in, by the model's name, its weights' fingerprint and the dimension.
    """

    values: Array
    scale: float
    reference: Array
    scored: Array
    sizes: Array
    error: Array
    noise: tuple[Array, Array] | None
    projected: bool
    key: bytes
    space: tuple[Any, Any, int]
    about: _About
    insides: dict[bytes, _Inside] = field(default_factory=dict)

    @classmethod
    def of(cls, c: Contributions, reference_terms: str, measure: str) -> _Side:
        """A text's side, under a treatment and a measure."""
        _check_space(c, reference_terms, measure)
        shifted, projected = reference_terms == "shift", reference_terms == "project"
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
            scale = algebra.length(c.output) / size
        noise = None
        if c.noise_weights is not None and c.noise_residuals is not None:
            noise = (c.noise_weights * scale, c.noise_residuals)
        return cls(
            values=c.values,
            scale=scale,
            reference=reference,
            scored=scored * scale,
            sizes=algebra.lengths(c.values) * scale,
            error=c.error * scale,
            noise=noise,
            projected=projected,
            key=hashlib.blake2b(reference.tobytes(), digest_size=16).digest() if projected else b"",
            space=(c.settings.get("model"), c.settings.get("fingerprint"), c.embedding.size),
            about=_About.of(c, measure=measure, reference_terms=reference_terms),
        )

    def see(self, other: bytes, plane: Array) -> _Inside:
        """What it has inside a plane, (dim, directions), and keeps for the next text with the other reference."""
        along, error = self.scale * self.values.dot(plane), self.error
        inside = algebra.lengths(along)
        sizes = np.sqrt(np.maximum((self.sizes - inside) * (self.sizes + inside), 0.0))
        bound = np.array([error, sizes]), np.array([sizes + error, error])
        residuals = None if self.noise is None else _rough(self.noise[1], plane)
        if len(self.insides) >= OTHERS:
            self.insides.clear()
        self.insides[other] = found = _Inside(along, (self.scored @ plane).tolist(), residuals, bound)
        return found


_known: WeakKeyDictionary[Contributions, dict[tuple[str, str], _Side]] = WeakKeyDictionary()


def _sides(a: Contributions, b: Contributions, reference_terms: str, measure: str) -> tuple[_Side, _Side]:
    side_a, side_b = _side(a, reference_terms, measure), _side(b, reference_terms, measure)
    if side_a.space != side_b.space:
        for name, one, other in zip(("model", "fingerprint"), side_a.space, side_b.space, strict=False):
            if one != other:
                raise InputError(f"two models share no space: the contributions' {name} is {one!r} and {other!r}.")
        raise InputError(f"the two embeddings have {a.embedding.size} and {b.embedding.size} dimensions.")
    return side_a, side_b


def _side(c: Contributions, reference_terms: str, measure: str) -> _Side:
    sides = _known.get(c)
    if sides is None:
        sides = _known[c] = {}
    side = sides.get((reference_terms, measure))
    if side is None:
        choose("reference_terms", reference_terms, TREATMENTS)
        choose("measure", measure, MEASURES)
        side = sides[reference_terms, measure] = _Side.of(c, reference_terms, measure)
    return side


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


def _insides(a: _Side, b: _Side) -> tuple[_Inside, _Inside]:
    """What two texts have inside the plane of their references."""
    one, other = a.insides.get(b.key), b.insides.get(a.key)
    if one is None or other is None:
        plane = _plane(a, b) if a.key <= b.key else _plane(b, a)
        one, other = one or a.see(b.key, plane), other or b.see(a.key, plane)
    return one, other


def _plane(a: _Side, b: _Side) -> Array:
    """An orthonormal basis of what leaves the matrix, (dim, 0 to 2).

    That is what the two references span; nearly parallel ones span one direction, and zero ones none.
    """
    lengths = [algebra.length(side.reference) for side in (a, b)]
    units = [side.reference / length for side, length in zip((a, b), lengths, strict=True) if length > 0]
    if not (a.projected and units):
        return np.zeros((len(a.scored), 0))
    # Singular vectors of two unit vectors are their sum and their difference.
    axes = [units[0] + units[1], units[0] - units[1]] if len(units) == 2 else units
    sizes = [algebra.length(own) for own in axes]
    return np.array([own / size for own, size in zip(axes, sizes, strict=True) if size > PARALLEL * max(sizes)]).T


def _matrix(a: _Side, b: _Side, inside_a: _Inside, inside_b: _Inside) -> Array:
    """What is left of the products of values when those inside the plane have left."""
    found = algebra.product(a.values, b.values.T)
    found *= a.scale * b.scale
    if inside_a.scored:
        found -= algebra.product(inside_a.values, inside_b.values.T)
    return found


def _standard_error(a: _Side, b: _Side, inside_a: _Inside, inside_b: _Inside) -> Array:
    """How far off each entry may be where texts were sampled: a standard error, and a bound for a side that was not.

    It is computed in single precision, like the draws.
    """
    # A side without noise has none in no draws.
    dim, none = len(a.scored), np.zeros((0, len(inside_a.scored)))
    weights_a, residuals_a = a.noise or (np.zeros((0, len(a.values))), np.zeros((0, dim)))
    weights_b, residuals_b = b.noise or (np.zeros((0, len(b.values))), np.zeros((0, dim)))
    along_a, along_b = (none if own.residuals is None else own.residuals for own in (inside_a, inside_b))
    hits_a = a.scale * _rough(residuals_b, a.values.T) - along_b @ inside_a.values.T
    hits_b = b.scale * _rough(residuals_a, b.values.T) - along_a @ inside_b.values.T
    squares = np.square(_rough(residuals_a, residuals_b.T) - _rough(along_a, along_b.T))
    variance = (weights_a**2).T @ hits_b**2 + (hits_a**2).T @ weights_b**2
    variance += _rough((weights_a**2).T, squares) @ weights_b**2
    if np.may_share_memory(residuals_a, residuals_b):  # one sampling of one text, at whatever levels
        variance += 2 * (weights_a * hits_a).T @ (weights_b * hits_b)
    (_, sizes_a), (_, sizes_b) = inside_a.bound[0], inside_b.bound[0]
    bound_a = np.outer(a.error, sizes_b) if a.noise is None else 0.0
    bound_b = np.outer(sizes_a, b.error) if b.noise is None else 0.0
    return np.sqrt(np.maximum(variance, 0.0)) + bound_a + bound_b


def _rough(a: Array, b: Array) -> Array:
    """A product in single precision."""
    return algebra.product(a.astype(np.float32, copy=False), b.astype(np.float32, copy=False))


def _kept(array: Array) -> Array:
    """An array of ours, from now on as it is."""
    array.flags.writeable = False
    return array


def _settings(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    """What made an explanation; where the two texts' settings differ, a list of both."""
    if a == b:
        return a
    return {n: a.get(n) if a.get(n) == b.get(n) else [a.get(n), b.get(n)] for n in dict.fromkeys([*a, *b])}
