"""The table that an adaptive rule needs for one integrand, found from what the integrand is the derivative of.

The integrand is the derivative of a function e whose values are cheap (one forward pass each) while the integrand
itself is dear (one tangent per unit), so the values of e are used to place the nodes:

1. Values of e at Chebyshev points of the path give e's Chebyshev coefficients, and an n-point Gauss rule for e' is
   wrong by about those beyond 2n. The sampling is nested and stops as soon as it shows, by its coefficients and by how
   they fall off, which rule will do.
2. A sinh map spreads out the stretch where e moves, which is the standard remedy for an integrand with poles beside
   the path (Johnston and Elliott, 2005). The same values, interpolated, say which of a few maps needs the fewest
   nodes, one made for this path among them; only where e moves elsewhere than they expect is it sampled anew.
3. Where they do not fall off (kinks: ReLU, max pooling), the path is cut into panels of low order, the worst
   bisected until the sum is right. The error of a panel is known, not estimated: e(end) - e(start) is its integral.

Where typical paths agree on a short rule, even that look is dearer than a node too many: `habit` finds such a rule
once, and a path takes it first. Its gap is measured like any other's. Where they need a longer one, it says which
sampling is worth beginning with.

`plan` is a conversation, so that whoever drives it can hold many at once and answer them in batches.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Generator, Iterable
from dataclasses import dataclass

import numpy as np

from pairlens.quadrature.chebyshev import Samples, points
from pairlens.quadrature.rules import Adaptive, Rule, SinhMap, Table, gauss, mapped_gauss
from pairlens.shapes import Array


@dataclass(frozen=True)
class Ask:
    """A plan's question: e at these points of the path or, with `slope`, its derivative along the path."""

    points: Array
    slope: bool = False


Plan = Generator[Ask | Table, Array, None]
"""Asks for (points, dim) arrays; a table is a proposal, answered by the relative gap that it reached, as (1,)."""


SAMPLES = (8, 16, 32, 64, 128)
"""Nested Chebyshev samplings, each tried only where the one before it did not settle the matter."""
SAFETY = 5.5
"""An n-point rule is wrong by less than this times 2n times the coefficient beyond 2n (measured: 1.8 to 3.2 times)."""
REACH = 0.75
"""So many times a sampling's own degree is the longest rule that it may propose, from how its coefficients fall off."""
SLOWING = 0.56
"""Beyond the sampling coefficients fall off so much more slowly than inside it."""
SAMPLED = SinhMap(0.55, 0.15)
"""The map in whose variable the first samplings are made."""
CHARTS = (SinhMap(0.5, 0.12), SinhMap(0.5, 0.2), SinhMap(0.6, 0.3), SinhMap(0.5, math.inf))
"""Other maps to choose from.

Chosen on 60 texts at MiniLM's layers 0 to 5, tol 1e-3, where the best of them is a node longer than the shortest rule
that would do in any map. The constants above and `TRUST` were chosen on 120 texts at layers 0 to 2 among some 60
settings, of which many take the same time: those whose values cost less than 15 % of the passes, on 70 other texts too,
and of those one with room for the long texts of benchmarks/long_texts.py, where a rule with less was too short.
"""
TRUST = 0.8
"""Where the samples may hide what matters, another map's rule is at least so many times as long as their own map's."""
LOST = 0.005
"""Where the second sampling's last coefficients are larger, or a later one's that is begun with, e moves elsewhere
than these maps expect."""
STUCK = 0.8
"""Where derivatives are inexact, a longer rule that leaves so much of the gap shows that it is theirs, not its own."""
HABIT = 8
"""The longest rule that is taken out of habit. A longer one that fails is dearer than the looks it saves (measured)."""
MAX_ORDER = 96
"""The longest Gauss rule that is tried before cutting the path into panels."""
PANEL = 3
"""Nodes of a panel where the integrand has kinks."""


def first_points(rule: Rule, count: int = SAMPLES[0]) -> Array:
    """Where on the path a plan wants to know e before it begins; both ends are among them.

    Args:
        rule: the rule.
        count: one of `SAMPLES`: the one to begin with, out of `habit` perhaps, or a larger one where waiting costs more
            than values do, which proposes the same.
    """
    return SAMPLED(points(count))[0] if isinstance(rule, Adaptive) else np.array([0.0, 1.0])


Habit = Table | int
"""A rule that will do for most paths, short enough to be tried without looking; or the sampling to begin with."""


def habit(rule: Rule, noise: float, typical: Iterable[Array]) -> Habit | None:
    """What most paths need; None where nothing is known.

    Args:
        rule: the rule asked for; only an adaptive one has habits.
        noise: relative rounding error of e.
        typical: e along typical paths, (points, dim) each, at `first_points(rule, SAMPLES[1])`; as many as are needed
            are looked at.
    """
    if not isinstance(rule, Adaptive):
        return None
    charts = (SAMPLED, *CHARTS)
    orders = []
    for seen in typical:
        samples = Samples.of(seen, noise)
        total, floor = samples.scale(noise)
        if not total > 0:
            return None
        good = _outlook(samples.coefficients(charts) / total, rule.tol, floor).good
        orders.append(np.where(good.any(1), good.argmax(1) + 1, np.inf))
    if len(orders) < 2:
        return None
    # All but the hardest of them; but where one is much harder, there are more like it.
    needed = np.sort(orders, axis=0)[-2]
    best, own = int(needed.argmin()), np.min(orders, axis=1)
    if needed[best] <= min(HABIT, rule.max_nodes) and own.max() <= HABIT + 1:
        return mapped_gauss(int(needed[best]), charts[best])
    return SAMPLES[2] if np.isinf(own).all() else SAMPLES[1]


def plan(rule: Rule, noise: float, seen: Array, limit: float = 0.0, usual: Habit | None = None) -> Plan:
    """Propose tables until one reaches the rule's tolerance; gives up where nothing more can be done.

    Args:
        rule: a fixed rule proposes itself, once.
        noise: relative rounding error of e; differences below it mean nothing.
        seen: e at the `first_points`, (points, dim); where the habit is a rule at both ends alone.
        limit: relative rounding error of e's derivatives: a gap below it may not be the rule's, see `STUCK`.
        usual: the `habit`: a rule to be tried first, or the sampling to begin with.
    """
    if not isinstance(rule, Adaptive):
        yield rule.table()
        return
    begin = usual if isinstance(usual, int) else SAMPLES[0]
    if isinstance(usual, Table):
        gap = yield usual
        if gap[0] <= rule.tol:
            return
        seen = yield Ask(first_points(rule))
    found = yield from _smooth_rule(rule, noise, seen, begin)
    if found is not None:
        (chart, order), before = found, math.inf
        while order <= min(MAX_ORDER, rule.max_nodes):
            gap = yield mapped_gauss(order, chart)
            if gap[0] <= rule.tol or STUCK * before < gap[0] <= limit:
                return
            before = float(gap[0])
            # Twice as many nodes square the error; a rule that was nearly right needs few more.
            missing = math.log(float(gap[0]) / rule.tol) / math.log(1 / float(gap[0])) if gap[0] < 1 else 1.0
            order = order + max(2, math.ceil(1.5 * missing * order))
        if before <= limit:
            return  # no longer rule fits, and panels of inexact derivatives do no better
    tol = 0.8 * rule.tol
    for _ in range(3):
        table = yield from _panels(rule, tol, noise, seen[[0, -1]])
        gap = yield table
        if gap[0] <= rule.tol or len(table) + 2 * PANEL > rule.max_nodes:
            return
        tol *= rule.tol / gap[0] / 2


def _smooth_rule(
    rule: Adaptive, noise: float, seen: Array, begin: int
) -> Generator[Ask, Array, tuple[SinhMap, int] | None]:
    """The map for this path and the order of the Gauss rule it needs, or None where e is not smooth enough."""
    samples = Samples.of(seen, noise)
    total, floor = samples.scale(noise)
    sampled, counts = SAMPLED, [count for count in SAMPLES if count >= begin]
    while counts:
        count = counts.pop(0)
        if count >= len(seen):
            seen = yield from _sample(sampled, seen, count)
            samples = Samples.of(seen, noise)
        own = samples.every((len(seen) - 1) // count)
        charts = (sampled, *CHARTS)
        if count > SAMPLES[0]:
            charts = (*charts, SinhMap.fit(sampled(points(count))[0], own.moves()))
        coefficients = own.coefficients(charts) / total
        found = _shortest(coefficients, rule.tol, floor)
        if found is not None:
            return charts[found[0]], found[1]
        if sampled == SAMPLED and count == max(begin, SAMPLES[1]) and coefficients[0, -3:-1].max() > LOST:
            sampled, seen, counts = charts[-1], seen[[0, -1]], list(SAMPLES)
    return None


def _sample(chart: SinhMap, seen: Array, count: int) -> Generator[Ask, Array, Array]:
    """Values at so many steps of Chebyshev's points of the mapped path, asking for those between the ones seen."""
    new = np.ones(count + 1, dtype=bool)
    new[:: count // (len(seen) - 1)] = False
    merged = np.empty((count + 1, seen.shape[1]))
    merged[~new], merged[new] = seen, (yield Ask(chart(points(count))[0][new]))
    return merged


@dataclass(frozen=True)
class _Degrees:
    """What `_outlook` needs to know of a sampling's degree.

    `half` its second half of coefficients and `places` where they are, from the middle of them. For every order n that
    comes into question: `beyond` the coefficient that tells, the last one at most; `seen` whether the sampling shows
    it, and if not, how many degrees `outside` it lies; `factors` by which an n-point rule is wrong.
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
        """For a sampling of this degree."""
        half = slice(degree // 2, degree)
        places = np.arange(degree)[half]
        orders = np.arange(1, int(REACH / TRUST * degree) + 1)
        beyond = 2 * orders + 1
        # The last coefficient holds all those beyond the sampling too, and the one before it the nearest of them.
        seen, last = beyond < degree - 1, degree - 1
        factors = SAFETY * 2 * orders
        outside = np.maximum(beyond - last, 0)
        return cls(half, places - places.mean(), orders, np.minimum(beyond, last), seen, outside, factors)


@dataclass(frozen=True)
class _Outlook:
    """For maps and orders n, (maps, orders): the coefficient `expected` beyond 2n, and whether the rule is `good`.

    `hidden`: what the samples' own map leaves unseen.
    """

    expected: Array
    good: Array
    hidden: float


def _outlook(coefficients: Array, tol: float, floor: float) -> _Outlook:
    """What samples say of rules: coefficients inside the sampling are seen, those beyond it fall on, only slower.

    Args:
        coefficients: for every map, that of the samples first, (maps, degrees).
        tol: the relative gap allowed.
        floor: what is rounding error.
    """
    known = _Degrees.of(coefficients.shape[1] - 1)
    envelope = np.maximum(np.maximum.accumulate(coefficients[:, -2::-1], axis=1)[:, ::-1], 1e-300)
    # Straight lines through the logarithms, by least squares.
    heights = np.log(envelope[:, known.half])
    slope = heights @ known.places / (known.places @ known.places)
    edge = np.maximum(np.exp(heights.mean(1) + slope * known.places[-1]), envelope[:, -1])
    falls = (slope < -0.05) & (envelope[:, -1] > floor)
    fall = np.exp(np.where(falls, SLOWING * slope, 0.0)[:, None] * known.outside)
    expected = np.where(known.seen, envelope[:, known.beyond], np.where(falls, edge, np.inf)[:, None] * fall)
    good = (known.factors * expected <= tol) | (expected <= floor)
    hidden = edge[0] * np.exp(2 * SLOWING * slope[0]) if falls[0] else envelope[0, -1]
    return _Outlook(expected, good, float(hidden))


def _shortest(coefficients: Array, tol: float, floor: float) -> tuple[int, int] | None:
    """The map with the smallest n whose coefficients beyond 2n are small enough, and that n; see `_outlook`.

    None where these samples do not show one.
    """
    known, outlook = _Degrees.of(coefficients.shape[1] - 1), _outlook(coefficients, tol, floor)
    good, hidden = outlook.good, outlook.hidden
    if not good[0].any():
        return None
    # What the samples do not show might look smooth in any other map, unless it is too small to matter.
    shortest = TRUST * known.orders[good[0].argmax()]
    good[1:] &= (known.orders >= shortest) | (known.factors * hidden <= tol) | (hidden <= floor)
    place = int(good.any(0).argmax())
    if place >= int(REACH * (coefficients.shape[1] - 1)):
        return None
    return int(np.where(good[:, place], outlook.expected[:, place], np.inf).argmin()), int(known.orders[place])


def _panels(rule: Adaptive, tol: float, noise: float, ends: Array) -> Generator[Ask, Array, Table]:
    """Panels of low order, bisected where their exactly known error is largest, until their sum is right.

    Ends at the tolerance, at `rule.max_nodes`, or where bisecting meets rounding error.
    """
    rung = gauss(PANEL)

    def measure(starts: Array, ends: Array) -> Generator[Ask, Array, Array]:
        """The errors of panels, (panels, dim): their rule against the exact integral."""
        lengths = ends - starts
        nodes = starts[:, None] + lengths[:, None] * rung.nodes
        slopes = yield Ask(nodes.ravel(), slope=True)
        edges = yield Ask(np.concatenate([starts, ends]))
        exact = edges[len(starts) :] - edges[: len(starts)]
        return lengths[:, None] * np.einsum("n,pnk->pk", rung.weights, slopes.reshape(*nodes.shape, -1)) - exact

    size = float(np.linalg.norm(ends[1] - ends[0]))
    floor = noise * float(np.linalg.norm(ends, axis=1).max())
    grid = np.linspace(0.0, 1.0, max(2, min(9, rule.max_nodes // PANEL + 1)))
    errors = yield from measure(grid[:-1], grid[1:])
    total = errors.sum(0)
    # The count settles ties, so that no two arrays are ever compared.
    count = itertools.count()
    heap = [
        (-float(np.linalg.norm(e)), a, next(count), b, e) for a, b, e in zip(grid[:-1], grid[1:], errors, strict=True)
    ]
    heapq.heapify(heap)
    while float(np.linalg.norm(total)) > tol * size and -heap[0][0] > floor:
        # Several at once, so that the passes run in batches: all within a factor two of the worst.
        worst = -heap[0][0]
        room = rule.max_nodes // PANEL - len(heap)
        split = []
        while heap and -heap[0][0] > worst / 2 and len(split) < min(64, room):
            split.append(heapq.heappop(heap))
        if not split:
            break
        starts, stops = np.array([panel[1] for panel in split]), np.array([panel[3] for panel in split])
        middles = (starts + stops) / 2
        starts, stops = np.concatenate([starts, middles]), np.concatenate([middles, stops])
        errors = yield from measure(starts, stops)
        total = total - sum(panel[4] for panel in split) + errors.sum(0)
        for start, stop, error in zip(starts, stops, errors, strict=True):
            heapq.heappush(heap, (-float(np.linalg.norm(error)), start, next(count), stop, error))
    spans = sorted((panel[1], panel[3]) for panel in heap)
    starts, lengths = np.array([a for a, _ in spans])[:, None], np.array([b - a for a, b in spans])[:, None]
    return Table(
        (starts + lengths * rung.nodes).ravel(),
        (lengths * rung.weights).ravel(),
        (lengths * rung.check).ravel(),
        panels=len(spans),
    )
