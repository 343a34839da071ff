"""The products of many pairs: each text is fetched from memory as rarely as can be.

Among all pairs of some texts a product takes less time than fetching its texts from memory does, and than the little
things around it. So a text meets all of its partners at once, and those are stacked: the same stack serves the next
text with the same partners. Of one pair, the stack is its first text.
"""

from __future__ import annotations

import itertools
import operator
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from operator import itemgetter
from typing import Any

import numpy as np

from pairlens import algebra
from pairlens.shapes import Array
from pairlens.side import Inside, Side, plane

PARTNERS, ROWS = 8, 256
"""How many texts are stacked at most, and units of theirs: one's matrix keeps those of the others in memory."""


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
    for partners, meetings in _tiles(firsts, seconds):
        stack = _Stack.of(partners, meetings[0][0]) if len(meetings) > 1 else None
        for b, places in meetings:
            found, shares = _alone(partners, b) if stack is None else stack.meet(b)
            scored = b.scored
            for place, a, matrix, share in zip(places, partners, found, shares, strict=True):
                matrices[place] = matrix
                scores[place] = float(a.scored.dot(scored))
                bases[place] = share
                insides_a[place] = a.insides.get(b.key) or a.inside(b)
                insides_b[place] = b.insides.get(a.key) or b.inside(a)
    return Products(matrices, scores, bases, insides_a, insides_b)


def _tiles(
    firsts: Sequence[Side], seconds: Sequence[Side]
) -> Iterator[tuple[list[Side], list[tuple[Side, list[int]]]]]:
    """First texts, and those seconds of one reference that meet them all, each with the places of these pairs."""
    places: dict[Side, list[int]] = {}
    for place, b in enumerate(seconds):
        places.setdefault(b, []).append(place)
    longest = max(1, *(len(a.values) for a in set(firsts)))
    most = min(PARTNERS, max(1, ROWS // longest))
    meetings = [
        (start, b.key, [firsts[place] for place in own[start : start + most]], b, own[start : start + most])
        for b, own in places.items()
        for start in range(0, len(own), most)
    ]
    meetings.sort(key=itemgetter(0, 1))
    for (_, partners), tile in itertools.groupby(meetings, key=itemgetter(1, 2)):
        yield partners, [(b, own) for *_, b, own in tile]


def _alone(partners: Sequence[Side], b: Side) -> tuple[list[Array], list[float]]:
    """The matrices of some texts and one, and what their embeddings' products are inside of the plane."""
    matrices, shares = [], []
    for a in partners:
        inside_a, inside_b = a.inside(b), b.inside(a)
        matrix = algebra.product(a.values, b.values.T)
        matrix *= a.scale * b.scale
        if inside_a.scored:
            matrix -= inside_a.values.dot(inside_b.values.T)
        matrix.setflags(write=False)
        matrices.append(matrix)
        shares.append(sum(map(operator.mul, inside_a.scored, inside_b.scored), 0.0))
    return matrices, shares


@dataclass(frozen=True, eq=False, slots=True)
class _Stack:
    """Texts that several others of one reference meet.

    `values`: all their units' values outside of the plane with it, scaled, (units, dim); `rows` says whose are where.
    `inside`: their embeddings inside of the plane, (texts, dim).
    """

    values: Array
    rows: list[slice]
    inside: Array

    @classmethod
    def of(cls, sides: list[Side], other: Side) -> _Stack:
        """A stack for texts with the reference of the other."""
        ends = itertools.accumulate(len(own.values) for own in sides)
        rows = [slice(end - len(own.values), end) for own, end in zip(sides, ends, strict=True)]
        values = np.empty((rows[-1].stop, len(other.scored)))
        inside = np.empty((len(sides), len(other.scored)))
        for place, own in enumerate(sides):
            across, outside = plane(own, other), values[rows[place]]
            np.multiply(own.values, own.scale, outside)
            if across.size:
                outside -= own.inside(other).values.dot(across.T)
            inside[place] = across.dot(own.scored.dot(across))
        return cls(values, rows, inside)

    def meet(self, b: Side) -> tuple[list[Array], list[float]]:
        """As `_alone`, in one product."""
        product = algebra.product(self.values, b.values.T)
        product *= b.scale
        product.setflags(write=False)
        return [product[rows] for rows in self.rows], self.inside.dot(b.scored).tolist()
