"""One text as it enters a score, and what it has along references.

A text may be in thousands of pairs: what does not depend on the other text, or only on the other's reference, which
texts of one length share, is made once and kept as long as its contributions are.
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, field
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

import numpy as np

from pairlens import linalg
from pairlens.attribution.contributions import Contributions
from pairlens.errors import InputError, choose
from pairlens.shapes import Array
from pairlens.text.units import Unit

TREATMENTS = ("project", "shift", "keep", "ignore")
MEASURES = ("cosine", "dot")
PARALLEL = 1e-4
"""References span one direction where the smaller of their singular values is less than so much of the larger one."""
OTHERS = 64
"""How many other references a text remembers what it has along them."""
PLANES = 1024
"""How many planes of two references are remembered."""


def space_for(reference_terms: str, measure: str) -> str:
    """Which embedding a treatment takes apart: before a final Normalize, of length one, or as the model gives it."""
    if reference_terms in ("shift", "ignore"):
        return "raw"
    return "unit" if measure == "cosine" else "output"


class About(NamedTuple):
    """What an explanation says of a text; little enough to go with each of them.

    `sizes`, `error`: the lengths of its scaled values and of their errors. `settings`: those that texts taken apart
    together share. `treatment`: the explanation's own.
    """

    text: str
    units: tuple[Unit, ...]
    tokens: tuple[str, ...]
    gap: float
    sizes: Array
    error: Array
    role: Any
    nodes: Any
    settings: dict[str, Any]
    treatment: dict[str, str]

    @classmethod
    def of(cls, c: Contributions, scale: float, **treatment: str) -> About:
        """What there is to say of a text, under a treatment."""
        role, nodes = c.settings.get("role"), c.settings.get("nodes")
        shared = {name: own for name, own in c.settings.items() if name not in ("nodes", "role", "space")}
        sizes, error = linalg.lengths(c.values) * scale, c.error * scale
        return cls(c.text, c.units, c.tokens, c.gap, sizes, error, role, nodes, shared, treatment)


@dataclass(eq=False, slots=True)
class Inside:
    """What a text has inside the plane of its own and another reference, along 0 to 2 directions.

    Attributes:
        values: of its values, (units, directions).
        scored: of its embedding, (directions,).
        residuals: of the noise's directions, (draws, directions), or None.
        about: the text.
    """

    values: Array
    scored: list[float]
    residuals: Array | None
    about: About
    _bound: tuple[Array, Array] | None = None

    @property
    def bound(self) -> tuple[Array, Array]:
        """The lengths of values outside of the plane, and of their errors: two factors of a bound, (2, units) each.

        The first one's transpose by another text's second one is how far off the entries of their matrix may be.
        """
        if self._bound is None:
            inside, sizes, error = linalg.lengths(self.values), self.about.sizes, self.about.error
            outside = np.sqrt(np.maximum((sizes - inside) * (sizes + inside), 0.0))
            self._bound = np.array([error, outside]), np.array([outside + error, error])
        return self._bound


@dataclass(frozen=True, eq=False, slots=True)
class Side:
    """One text as it enters the score's dot product: `scale` times its values and its reference.

    Attributes:
        values: not scaled yet, (units, dim).
        scale: what is still to be multiplied.
        reference: likewise, (dim,).
        scored: the embedding, scaled, (dim,).
        noise: weights, scaled, and directions of the errors of sampled values.
        projected: whether the references' plane leaves the matrix.
        key: tells this reference from others.
        space: the one it is in, by the model's name, its weights' fingerprint and the dimension.
        truncated: the text was longer than the model takes.
        about: what an explanation says of it.
        insides: what it has along other references, by their keys.
    """

    values: Array
    scale: float
    reference: Array
    scored: Array
    noise: tuple[Array, Array] | None
    projected: bool
    key: bytes
    space: tuple[Any, Any, int]
    truncated: bool
    about: About
    insides: dict[bytes, Inside] = field(default_factory=dict)

    @classmethod
    def of(cls, c: Contributions, reference_terms: str, measure: str) -> Side:
        """A text's side, under a treatment and a measure."""
        _check_space(c, reference_terms, measure)
        shifted, projected = reference_terms == "shift", reference_terms == "project"
        scored = c.embedding - c.reference if shifted else c.embedding
        reference = np.zeros_like(c.reference) if shifted else c.reference
        size = linalg.length(scored)
        if size == 0:
            raise InputError(f"the embedding of {c.text!r:.60} is zero, so its similarity to anything means nothing.")
        if measure == "cosine":
            scale = 1 / size
        elif shifted and c.reference.any():
            scale = 1.0
        else:
            # Contributions from before a final Normalize: the model's own output is a multiple of the embedding.
            scale = linalg.length(c.output) / size
        noise = None
        if c.noise_weights is not None and c.noise_residuals is not None:
            noise = (c.noise_weights * scale, c.noise_residuals)
        return cls(
            values=c.values,
            scale=scale,
            reference=reference,
            scored=scored * scale,
            noise=noise,
            projected=projected,
            key=hashlib.blake2b(reference.tobytes(), digest_size=16).digest() if projected else b"",
            space=(c.settings.get("model"), c.settings.get("fingerprint"), c.embedding.size),
            truncated=c.truncated,
            about=About.of(c, scale, measure=measure, reference_terms=reference_terms),
        )

    def inside(self, other: Side) -> Inside:
        """What it has inside the plane with another's reference, kept for the next text with that one."""
        found = self.insides.get(other.key)
        if found is None:
            across = plane(self, other)
            values = self.scale * self.values.dot(across)
            residuals = None if self.noise is None else linalg.rough(self.noise[1], across)
            if len(self.insides) >= OTHERS:
                self.insides.clear()
            found = Inside(values, self.scored.dot(across).tolist(), residuals, self.about)
            self.insides[other.key] = found
        return found


_sides: WeakKeyDictionary[Contributions, dict[tuple[str, str], Side]] = WeakKeyDictionary()
_planes: dict[tuple[bytes, bytes], Array] = {}


def side(c: Contributions, reference_terms: str, measure: str) -> Side:
    """A text's side, remembered as long as its contributions are there."""
    sides = _sides.get(c)
    if sides is None:
        sides = _sides[c] = {}
    found = sides.get((reference_terms, measure))
    if found is None:
        choose("reference_terms", reference_terms, TREATMENTS)
        choose("measure", measure, MEASURES)
        found = sides[reference_terms, measure] = Side.of(c, reference_terms, measure)
    return found


def plane(a: Side, b: Side) -> Array:
    """An orthonormal basis of what leaves the matrix, (dim, 0 to 2); the same one for (b, a).

    That is what the two references span; nearly parallel ones span one direction, and zero ones none.
    """
    if not a.projected:
        return np.zeros((len(a.scored), 0))
    if a.key > b.key:
        a, b = b, a
    found = _planes.get((a.key, b.key))
    if found is None:
        if len(_planes) >= PLANES:
            _planes.clear()
        found = _planes[a.key, b.key] = _span(a.reference, b.reference)
    return found


def _span(a: Array, b: Array) -> Array:
    lengths = [linalg.length(own) for own in (a, b)]
    units = [own / length for own, length in zip((a, b), lengths, strict=True) if length > 0]
    if not units:
        return np.zeros((len(a), 0))
    # Singular vectors of two unit vectors are their sum and their difference.
    axes = [units[0] + units[1], units[0] - units[1]] if len(units) == 2 else units
    sizes = [linalg.length(own) for own in axes]
    return np.array([own / size for own, size in zip(axes, sizes, strict=True) if size > PARALLEL * max(sizes)]).T


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
