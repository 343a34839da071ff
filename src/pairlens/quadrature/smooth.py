"""The shortest mapped Gauss rule for a smooth e, predicted from how e's Chebyshev coefficients fall off.

An n-point Gauss rule for e' is wrong by about e's Chebyshev coefficients beyond 2n. e is sampled at nested Chebyshev
points until the coefficients show which rule is long enough. A sinh map spreads out the stretch where e moves, the
standard remedy for an integrand with poles beside the path (Johnston and Elliott, 2005). The same samples,
interpolated, say which of a few maps needs the fewest nodes; one of the maps is fitted to this path.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass

import numpy as np

from pairlens.quadrature.chebyshev import Samples, chebyshev_points
from pairlens.quadrature.maps import SinhMap
from pairlens.quadrature.query import Inquiry, Query
from pairlens.shapes import Array

SAMPLES = (8, 16, 32, 64, 128)
"""Degrees of nested Chebyshev samplings; each is tried only where the one before it proposes no rule."""
SAFETY = 5.5
"""An n-point rule is wrong by less than SAFETY · 2n · the coefficient beyond 2n (measured: 1.8 to 3.2 times)."""
REACH = 0.75
"""The longest rule that a sampling may propose by extrapolation, as a multiple of its degree."""
SLOWING = 0.56
"""Coefficients beyond a sampling fall off at this fraction of the rate inside it."""
SAMPLED = SinhMap(0.55, 0.15)
"""The map in whose variable e is first sampled."""
CHARTS = (SinhMap(0.5, 0.12), SinhMap(0.5, 0.2), SinhMap(0.6, 0.3), SinhMap(0.5, math.inf))
"""Other maps to choose from.

Chosen on 60 texts at MiniLM's layers 0 to 5, tol 1e-3, where the best of them is one node longer than the shortest rule
in any map. The constants above and `TRUST` were chosen on 120 texts at layers 0 to 2 among some 60 settings, many of
which take the same time: first those whose values cost less than 15 % of the passes, on 70 other texts too; of those,
one that also works for the long texts of benchmarks/long_texts.py, where a smaller margin gave too short a rule.
"""
TRUST = 0.8
"""Where samples may hide coefficients, a rule in another map has at least this share of the sampled map's nodes."""
LOST = 0.005
"""If the last coefficients of the second sampling are larger than this, e moves where none of the maps expects it."""


def smooth_rule(tol: float, noise: float, seen: Array) -> Inquiry[tuple[SinhMap, int] | None]:
    """Return the map and the order of the Gauss rule for this path, or None where e is not smooth enough.

    Args:
        tol: the relative gap allowed.
        noise: relative rounding error of e.
        seen: e at Chebyshev points of `SAMPLED`, of one of the degrees in `SAMPLES`, (points, dim).
    """
    samples = Samples.of(seen, noise)
    total, floor = samples.scale(noise)
    sampled, degrees = SAMPLED, list(SAMPLES)
    while degrees:
        degree = degrees.pop(0)
        if degree >= len(seen):
            seen = yield from _sample(sampled, seen, degree)
            samples = Samples.of(seen, noise)
        nested = samples.every((len(seen) - 1) // degree)
        charts = (sampled, *CHARTS)
        if degree > SAMPLES[0]:
            charts = (*charts, SinhMap.fit(sampled(chebyshev_points(degree))[0], nested.moves()))
        coefficients = nested.coefficients(charts) / total
        shortest = _shortest(coefficients, tol, floor)
        if shortest is not None:
            return charts[shortest[0]], shortest[1]
        if sampled == SAMPLED and degree == SAMPLES[1] and coefficients[0, -3:-1].max() > LOST:
            # Sample e anew in the map that was fitted to it.
            sampled, seen, degrees = charts[-1], seen[[0, -1]], list(SAMPLES)
    return None


def _sample(chart: SinhMap, seen: Array, degree: int) -> Inquiry[Array]:
    """Return values at the Chebyshev points of a map, asking only for those that are not among the values seen."""
    new = np.ones(degree + 1, dtype=bool)
    new[:: degree // (len(seen) - 1)] = False
    merged = np.empty((degree + 1, seen.shape[1]))
    merged[~new], merged[new] = seen, (yield Query(chart(chebyshev_points(degree))[0][new]))
    return merged


@dataclass(frozen=True)
class _Degrees:
    """What `_outlook` needs to know about a sampling of some degree.

    Attributes:
        half: where the second half of the coefficients is.
        places: the degrees of that half, counted from their mean.
        orders: the orders n of the rules that the sampling may propose.
        beyond: for every order, the coefficient beyond 2n, or the last coefficient.
        seen: for every order, whether the sampling shows that coefficient.
        outside: for every order, how many degrees the coefficient lies outside the sampling.
        factors: for every order, by which multiple of the coefficient the rule is wrong at most.
    """

    half: slice
    places: Array
    orders: Array
    beyond: Array
    seen: Array
    outside: Array
    factors: Array

    @classmethod
    @functools.cache
    def of(cls, degree: int) -> _Degrees:
        half = slice(degree // 2, degree)
        places = np.arange(degree)[half]
        orders = np.arange(1, int(REACH / TRUST * degree) + 1)
        beyond = 2 * orders + 1
        # The last coefficient also contains those beyond the sampling, and the one before it the nearest of them.
        seen, last = beyond < degree - 1, degree - 1
        factors = SAFETY * 2 * orders
        outside = np.maximum(beyond - last, 0)
        return cls(half, places - places.mean(), orders, np.minimum(beyond, last), seen, outside, factors)


@dataclass(frozen=True)
class _Outlook:
    """What samples say about rules.

    Attributes:
        expected: the coefficient expected beyond 2n, (maps, orders).
        good: whether the n-point rule is long enough, (maps, orders).
        hidden: the coefficient expected beyond the sampling in the sampled map.
    """

    expected: Array
    good: Array
    hidden: float


def _outlook(coefficients: Array, tol: float, floor: float) -> _Outlook:
    """Predict the errors of rules: coefficients fall off outside the sampling as inside it, only more slowly.

    Args:
        coefficients: for every map, the sampled map first, (maps, degrees).
        tol: the relative gap allowed.
        floor: the size of rounding errors.
    """
    known = _Degrees.of(coefficients.shape[1] - 1)
    envelope = np.maximum(np.maximum.accumulate(coefficients[:, -2::-1], axis=1)[:, ::-1], 1e-300)
    last = envelope[:, -1]
    # Straight lines through the logarithms, by least squares.
    heights = np.log(envelope[:, known.half])
    slope = heights @ known.places / (known.places @ known.places)
    edge = np.maximum(np.exp(heights.mean(1) + slope * known.places[-1]), last)
    # Coefficients at the rounding error stay there: nothing is left to extrapolate.
    ended = last <= floor
    falls = (slope < -0.05) & ~ended
    fall = np.exp(np.where(falls, SLOWING * slope, 0.0)[:, None] * known.outside)
    start = np.where(ended, last, np.where(falls, edge, np.inf))
    expected = np.where(known.seen, envelope[:, known.beyond], start[:, None] * fall)
    good = (known.factors * expected <= tol) | (expected <= floor)
    hidden = edge[0] * np.exp(2 * SLOWING * slope[0]) if falls[0] else last[0]
    return _Outlook(expected, good, float(hidden))


def _shortest(coefficients: Array, tol: float, floor: float) -> tuple[int, int] | None:
    """Return the index of the map with the shortest rule, and that rule's order; None where no rule is long enough.

    Arguments as for `_outlook`.
    """
    known, outlook = _Degrees.of(coefficients.shape[1] - 1), _outlook(coefficients, tol, floor)
    good, hidden = outlook.good, outlook.hidden
    if not good[0].any():
        return None
    # Coefficients hidden in the sampled map might look smooth in any other map, unless they are too small to matter.
    shortest = TRUST * known.orders[good[0].argmax()]
    good[1:] &= (known.orders >= shortest) | (known.factors * hidden <= tol) | (hidden <= floor)
    place = int(good.any(0).argmax())
    if place >= int(REACH * (coefficients.shape[1] - 1)):
        return None
    return int(np.where(good[:, place], outlook.expected[:, place], np.inf).argmin()), int(known.orders[place])
