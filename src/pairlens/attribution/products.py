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

import numpy as np

from pairlens import linalg
from pairlens.attribution.side import Inside, Side, plane
from pairlens.shapes import Array

TALL, WIDE = 32, 64
"""How many texts a tile has at most: of the firsts or seconds, whichever are fewer, and of the others."""
LONG = 64
"""Units of a text, on average, from which on nothing is gained by stacking."""


@dataclass(slots=True)
class Products:
    """What pairs of texts come to, in their order.

    Attributes:
        matrices: the products of values outside of the references' plane, (units_a, units_b) each.
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
    if len(firsts) == 1:
        (a,), (b,) = firsts, seconds
        matrix, base = _alone(a, b)
        return Products([matrix], [float(a.scored.dot(b.scored))], [base], [a.inside(b)], [b.inside(a)])
    turned = len(set(firsts)) > len(set(seconds))
    matrices, scores, bases, insides, others = found = [], [], [], [], []
    places: list[int] = []
    for partners, texts, pairs in _tiles(*((seconds, firsts) if turned else (firsts, seconds))):
        known = [a.inside(texts[0]) for a in partners]
        scored = [a.scored for a in partners]
        if len(texts) == 1 or _long(partners) or _long(texts):
            columns = _apart(partners, texts, turned)
        else:
            columns = _stacked(partners, known, texts, turned)
        for b, own, (made, shares) in zip(texts, pairs, columns, strict=True):
            places += own
            matrices += made
            scores += map(float, map(b.scored.dot, scored))
            bases += shares
            insides += known
            others += map(b.inside, partners)
    order = np.argsort(places).tolist()
    matrices, scores, bases, insides, others = ([own[place] for place in order] for own in found)
    return Products(matrices, scores, bases, *((others, insides) if turned else (insides, others)))


def _tiles(few: Sequence[Side], rest: Sequence[Side]) -> Iterator[tuple[list[Side], list[Side], list[list[int]]]]:
    """Some of the fewer texts, some others of one reference that meet them all, and which pairs each of these makes."""
    places: dict[Side, list[int]] = {}
    for place, b in enumerate(rest):
        places.setdefault(b, []).append(place)
    meetings = [
        (start, b.key, [few[place] for place in own[start : start + TALL]], b, own[start : start + TALL])
        for b, own in places.items()
        for start in range(0, len(own), TALL)
    ]
    meetings.sort(key=itemgetter(0, 1))
    for (_, partners), group in itertools.groupby(meetings, key=itemgetter(1, 2)):
        tile = list(group)
        for some in (tile[start : start + WIDE] for start in range(0, len(tile), WIDE)):
            yield partners, [b for *_, b, _ in some], [own for *_, own in some]


def _long(sides: list[Side]) -> bool:
    return sum(len(own.values) for own in sides) > LONG * len(sides)


def _alone(a: Side, b: Side) -> tuple[Array, float]:
    """The matrix of a pair, and what the product of its embeddings is inside of the plane."""
    inside_a, inside_b = a.inside(b), b.inside(a)
    matrix = linalg.product(a.values, b.values.T)
    matrix *= a.scale * b.scale
    if inside_a.scored:
        matrix -= inside_a.values.dot(inside_b.values.T)
    return matrix, sum(map(mul, inside_a.scored, inside_b.scored), 0.0)


def _apart(partners: list[Side], texts: list[Side], turned: bool) -> list[tuple[Sequence[Array], Sequence[float]]]:
    """For each of the texts its matrices with all partners, turned or not, and what `_alone` says beside them."""
    columns = []
    for b in texts:
        matrices, bases = zip(*(_alone(b, a) if turned else _alone(a, b) for a in partners), strict=True)
        columns.append((matrices, bases))
    return columns


def _stacked(
    partners: list[Side], insides: list[Inside], texts: list[Side], turned: bool
) -> list[tuple[Sequence[Array], Sequence[float]]]:
    """The same for texts of one reference, in one product.

    Args:
        partners: the texts that each of them meets.
        insides: what those have inside of the plane.
        texts: the texts.
        turned: whether matrices have the partners in their columns.
    """
    rows, columns = _slices(partners), _slices(texts)
    outside = np.empty((rows[-1].stop, len(texts[0].scored)))
    shared = np.empty((len(partners), len(texts[0].scored)))
    for place, (a, inside) in enumerate(zip(partners, insides, strict=True)):
        across, own = plane(a, texts[0]), outside[rows[place]]
        np.multiply(a.values, a.scale, own)
        if inside.scored:
            own -= inside.values.dot(across.T)
        shared[place] = across.dot(inside.scored)
    product = linalg.product(outside, np.concatenate([b.values for b in texts]).T)
    product *= np.repeat([b.scale for b in texts], [len(b.values) for b in texts])
    bases = linalg.product(np.array([b.scored for b in texts]), shared.T)
    # Copies: a matrix that is kept would keep all of them.
    if turned:
        matrices = [[product[own, column].T.copy() for own in rows] for column in columns]
    else:
        matrices = [[product[own, column].copy() for own in rows] for column in columns]
    return list(zip(matrices, bases.tolist(), strict=True))


def _slices(sides: list[Side]) -> list[slice]:
    """Where each text's units are among those of all."""
    ends = itertools.accumulate(len(own.values) for own in sides)
    return [slice(end - len(own.values), end) for own, end in zip(sides, ends, strict=True)]
