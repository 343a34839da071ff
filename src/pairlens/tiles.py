"""The products of many pairs: each text is fetched from memory as rarely as can be.

Among all pairs of some texts a product takes less time than fetching its texts from memory does, and than the little
things around it. So texts that all meet each other are stacked, and one product of the two stacks serves all of their
pairs.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter, mul
from typing import Any

import numpy as np

from pairlens import algebra
from pairlens.shapes import Array
from pairlens.side import Inside, Side, plane

TALL, WIDE = 32, 64
"""How many texts are stacked at most, of those that there are fewer of and of the others."""

_Column = tuple[list[Array], list[float]]
"""A text's matrices with its partners, and what the products of their embeddings are inside of the plane."""


@dataclass(slots=True)
class Products:
    """What pairs of texts come to, in their order.

    Attributes:
        matrices: the products of values outside of the references' plane, (units_a, units_b) each, read-only.
        scores: the products of embeddings.
        bases: what those are inside of the plane.
        insides_a: what the first texts have inside the plane. `insides_b`: the second texts.
    """

    matrices: list[Array]
    scores: list[float]
    bases: list[float]
    insides_a: list[Inside]
    insides_b: list[Inside]


def products(firsts: Sequence[Side], seconds: Sequence[Side]) -> Products:
    """The products of pairs, given by their first and their second texts."""
    if len(set(firsts)) > len(set(seconds)):  # the fewer are stacked
        turned = products(seconds, firsts)
        matrices = [matrix.T for matrix in turned.matrices]
        return Products(matrices, turned.scores, turned.bases, turned.insides_b, turned.insides_a)
    blank: list[Any] = [None] * len(firsts)
    matrices, scores, bases, insides_a, insides_b = (blank.copy() for _ in range(5))
    for partners, texts, places in _tiles(firsts, seconds):
        insides = [a.inside(texts[0]) for a in partners]
        columns = (_alone if len(texts) == 1 else _stacked)(partners, insides, texts)
        for b, own, (found, shares) in zip(texts, places, columns, strict=True):
            scored, known = b.scored, b.insides
            for place, a, inside, matrix, base in zip(own, partners, insides, found, shares, strict=True):
                matrix.setflags(write=False)
                matrices[place] = matrix
                scores[place] = float(a.scored.dot(scored))  # the same number as of the pair alone
                bases[place] = base
                insides_a[place] = inside
                insides_b[place] = known.get(a.key) or b.inside(a)
    return Products(matrices, scores, bases, insides_a, insides_b)


def _tiles(firsts: Sequence[Side], seconds: Sequence[Side]) -> Iterator[tuple[list[Side], list[Side], list[list[int]]]]:
    """Some first texts, some seconds of one reference that meet them all, and the places of each of these."""
    places: dict[Side, list[int]] = {}
    for place, b in enumerate(seconds):
        places.setdefault(b, []).append(place)
    meetings = [
        (start, b.key, [firsts[place] for place in own[start : start + TALL]], b, own[start : start + TALL])
        for b, own in places.items()
        for start in range(0, len(own), TALL)
    ]
    meetings.sort(key=itemgetter(0, 1))
    for (_, partners), group in itertools.groupby(meetings, key=itemgetter(1, 2)):
        tile = list(group)
        for some in (tile[start : start + WIDE] for start in range(0, len(tile), WIDE)):
            yield partners, [b for *_, b, _ in some], [own for *_, own in some]


def _alone(partners: list[Side], insides: list[Inside], texts: list[Side]) -> list[_Column]:
    """What a text and its partners come to.

    Args:
        partners: the first texts.
        insides: what they have inside of the plane.
        texts: one other.
    """
    (b,) = texts
    others = [b.inside(a) for a in partners]
    matrices = [_matrix(a, b, *both) for a, *both in zip(partners, insides, others, strict=True)]
    bases = [sum(map(mul, one.scored, other.scored), 0.0) for one, other in zip(insides, others, strict=True)]
    return [(matrices, bases)]


def _matrix(a: Side, b: Side, inside_a: Inside, inside_b: Inside) -> Array:
    found = algebra.product(a.values, b.values.T)
    found *= a.scale * b.scale
    if inside_a.scored:
        found -= inside_a.values.dot(inside_b.values.T)
    return found


def _stacked(partners: list[Side], insides: list[Inside], texts: list[Side]) -> list[_Column]:
    """The same for several texts of one reference, in one product."""
    rows, columns = _slices(partners), _slices(texts)
    outside = np.empty((rows[-1].stop, len(texts[0].scored)))
    shared = np.empty((len(partners), len(texts[0].scored)))
    for place, (a, inside) in enumerate(zip(partners, insides, strict=True)):
        across, own = plane(a, texts[0]), outside[rows[place]]
        np.multiply(a.values, a.scale, own)
        if inside.scored:
            own -= inside.values.dot(across.T)
        shared[place] = across.dot(inside.scored)
    product = algebra.product(outside, np.concatenate([b.values for b in texts]).T)
    product *= np.repeat([b.scale for b in texts], [len(b.values) for b in texts])
    bases = algebra.product(np.array([b.scored for b in texts]), shared.T)
    # Copies: a matrix that is kept would keep all of them.
    matrices = [[product[own, column].copy() for own in rows] for column in columns]
    return list(zip(matrices, bases.tolist(), strict=True))


def _slices(sides: list[Side]) -> list[slice]:
    """Where each text's units are among those of all."""
    ends = itertools.accumulate(len(own.values) for own in sides)
    return [slice(end - len(own.values), end) for own, end in zip(sides, ends, strict=True)]
