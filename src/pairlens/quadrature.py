"""Rules for integrals over [0, 1] as data: nodes, weights, and a second set of weights that checks the first.

`Riemann` and `GaussLegendre` are tables. `Adaptive` makes a table for one integrand. The integrand is the derivative
of a function e whose values are cheap (one forward pass each) while the integrand itself is dear (one tangent per
unit), so the values of e are used to place the nodes:

1. Values of e at Chebyshev points of the path give e's Chebyshev coefficients, and an n-point Gauss rule for e' is
   wrong by about those beyond 2n. The sampling is nested and stops as soon as it shows, by its coefficients and by how
   they fall off, which rule will do.
2. A sinh map spreads out the stretch where e moves, which is the standard remedy for an integrand with poles beside
   the path (Johnston and Elliott, 2005). The same values, interpolated, say which of a few maps needs the fewest
   nodes, one made for this path among them; only where e moves elsewhere than they expect is it sampled anew.
3. Where they do not fall off (kinks: ReLU, max pooling), the path is cut into panels of low order, the worst
   bisected until the sum is right. The error of a panel is known, not estimated: e(end) - e(start) is its integral.

`plan` is a conversation, so that whoever drives it can hold many at once and answer them in batches.
"""

from __future__ import annotations

import functools
import heapq
import itertools
import math
from collections.abc import Generator
from dataclasses import dataclass

import numpy as np

from pairlens import algebra
from pairlens.errors import InputError, whole
from pairlens.shapes import Array


@dataclass(frozen=True)
class Table:
    """A rule ready to be used: the integral of f is close to `weights @ f(nodes)`.

    `check @ f(nodes)` is a poorer rule on the same nodes. `panels` counts the stretches it is made of.
    """

    nodes: Array
    weights: Array
    check: Array
    panels: int = 1

    def __len__(self) -> int:
        return len(self.nodes)


@dataclass(frozen=True)
class Riemann:
    """n equal steps, right end points: the rule of the papers. Its gap is reported, never refused.

    Example:
        >>> Riemann(4).table().nodes
        array([0.25, 0.5 , 0.75, 1.  ])
    """

    n: int = 50

    def __post_init__(self) -> None:
        whole("Riemann's n", self.n, 1)

    def table(self) -> Table:
        """The rule's nodes and weights; the check uses every second node."""
        nodes = np.arange(1, self.n + 1) / self.n
        check = np.zeros(self.n)
        kept = nodes[::-1][::2][::-1]
        check[::-1][::2][: len(kept)] = np.diff(kept, prepend=0.0)[::-1]
        return Table(nodes, np.full(self.n, 1 / self.n), check)


@dataclass(frozen=True)
class GaussLegendre:
    """n Gauss nodes, exact for polynomials up to degree 2n - 1. Its gap is reported, never refused.

    Example:
        >>> float(GaussLegendre(3).table().weights.sum().round(12))
        1.0
    """

    n: int = 16

    def __post_init__(self) -> None:
        whole("GaussLegendre's n", self.n, 1)

    def table(self) -> Table:
        """The rule's nodes and weights."""
        return gauss(self.n)


@dataclass(frozen=True)
class Adaptive:
    """As many nodes as this text and layer need for a relative gap of at most `tol`, and not many more.

    Not reaching it within `max_nodes` raises `NotConverged`.
    """

    tol: float = 1e-3
    max_nodes: int = 20_000

    def __post_init__(self) -> None:
        tol = self.tol
        if isinstance(tol, bool) or not isinstance(tol, int | float | np.floating) or not 0 < tol < 1:
            raise InputError(f"tol must lie between 0 and 1, for example 1e-3; it is {tol!r}.")
        whole("max_nodes", self.max_nodes, 1)


Rule = Riemann | GaussLegendre | Adaptive


def check_rule(rule: object, tol: float = 1e-3) -> Rule:
    """The rule itself, or for None the adaptive one with the tolerance."""
    adaptive = Adaptive(tol)
    if rule is None:
        return adaptive
    if not isinstance(rule, Rule):
        raise InputError(f"rule is Adaptive(tol), GaussLegendre(n) or Riemann(n), not {rule!r}.")
    return rule


@dataclass(frozen=True)
class Ask:
    """A plan's question: e at these points of the path or, with `slope`, its derivative along the path."""

    points: Array
    slope: bool = False


Plan = Generator[Ask | Table, Array, None]
"""Asks for (points, dim) arrays; a table is a proposal, answered by the relative gap that it reached, as (1,)."""


@functools.cache
def gauss(n: int) -> Table:
    """Gauss-Legendre on [0, 1]; the check leaves out the middle node, or is the rule itself where n = 1."""
    x, w = np.polynomial.legendre.leggauss(n)
    check = w.copy() if n == 1 else _interpolatory(x, np.arange(n) != n // 2)
    return Table((x + 1) / 2, w / 2, check / 2)


def _interpolatory(x: Array, keep: Array) -> Array:
    """Weights on [-1, 1] that are exact for all polynomials the kept nodes determine; zero on the others."""
    weights = np.zeros(len(x))
    nodes = x[keep]
    moments = np.zeros(len(nodes))
    moments[0] = 2.0
    weights[keep] = np.linalg.solve(np.polynomial.legendre.legvander(nodes, len(nodes) - 1).T, moments)
    return weights


@dataclass(frozen=True)
class SinhMap:
    """A map of [0, 1] onto itself that spreads out the stretch of `width` around `centre`; infinite: the identity."""

    centre: float
    width: float

    def __call__(self, t: Array) -> tuple[Array, Array]:
        """The mapped points and the map's slope there."""
        if math.isinf(self.width):
            return t, np.ones_like(t)
        low, high = (math.asinh((edge - self.centre) / self.width) for edge in (0.0, 1.0))
        u = low + (high - low) * t
        points = np.clip(self.centre + self.width * np.sinh(u), 0.0, 1.0)
        return points, (high - low) * self.width * np.cosh(u)

    def inverse(self, points: Array) -> Array:
        """Where on [0, 1] the map takes these points from."""
        if math.isinf(self.width):
            return points
        low, high = (math.asinh((edge - self.centre) / self.width) for edge in (0.0, 1.0))
        return (np.arcsinh((points - self.centre) / self.width) - low) / (high - low)

    @classmethod
    def fit(cls, points: Array, values: Array) -> SinhMap:
        """The map for a function that takes `values` (points, dim) at `points`: centred where it moves fastest."""
        steps = np.diff(points)
        speed = np.linalg.norm(np.diff(values, axis=0), axis=1) / steps
        if speed.min() > 0.8 * speed.max():
            return cls(0.5, math.inf)
        fast = speed > speed.max() / 2
        excess = np.where(fast, speed - speed.max() / 2, 0.0) * steps
        middle = (points[1:] + points[:-1]) / 2
        # Half the half-width: measured on MiniLM's layers 0 to 5, within a node or two of the best at each.
        return cls(float(excess @ middle / excess.sum()), max(float(steps[fast].sum()) / 4, 0.02))


SAMPLES = (10, 20, 40, 80, 160)
"""Nested Chebyshev samplings, each tried only where the one before it did not settle the matter."""
SAFETY = 4.5
"""An n-point rule is wrong by less than this times 2n times the coefficient beyond 2n (measured: 1.8 to 3.2 times)."""
REACH = 0.75
"""So many times a sampling's own degree is the longest rule that it may propose, from how its coefficients fall off."""
SLOWING = 0.6
"""Beyond the sampling coefficients fall off so much more slowly than inside it."""
SAMPLED = SinhMap(0.55, 0.15)
"""The map in whose variable the first samplings are made."""
CHARTS = (SinhMap(0.5, 0.12), SinhMap(0.5, 0.2), SinhMap(0.6, 0.3), SinhMap(0.5, math.inf))
"""Other maps to choose from.

Chosen, with the constants above, on 60 texts at MiniLM's layers 0 to 5, tol 1e-3. There rules are a node longer than
the shortest that would do in any map (20 for 18 at layer 0, 6 for 6 at layer 5), 2 in 360 are too short, and 11 values
(layer 5) to 42 (layer 0) settle them.
"""
TRUST = 0.7
"""Where the samples may hide what matters, another map's rule is at least so many times as long as their own map's."""
LOST = 0.004
"""Where the second sampling's last coefficient is larger, e moves elsewhere than these maps expect."""
MAX_ORDER = 96
"""The longest Gauss rule that is tried before cutting the path into panels."""
PANEL = 3
"""Nodes of a panel where the integrand has kinks."""


def first_points(rule: Rule, count: int = SAMPLES[0]) -> Array:
    """Where on the path a plan wants to know e before it begins; both ends are among them.

    Args:
        rule: the rule.
        count: the sampling to begin with, of `SAMPLES`: a larger one where waiting costs more than values do. What is
            proposed is the same.
    """
    return SAMPLED(_chebyshev(count))[0] if isinstance(rule, Adaptive) else np.array([0.0, 1.0])


def plan(rule: Rule, noise: float, seen: Array, limit: float = 0.0) -> Plan:
    """Propose tables until one reaches the rule's tolerance; gives up where nothing more can be done.

    Args:
        rule: a fixed rule proposes itself, once.
        noise: relative rounding error of e; differences below it mean nothing.
        seen: e at the `first_points`, (points, dim).
        limit: relative rounding error of e's derivatives: a smooth rule's gap below it is not the rule's.
    """
    if not isinstance(rule, Adaptive):
        yield rule.table()
        return
    found = yield from _smooth_rule(rule, noise, seen)
    if found is not None:
        chart, order = found
        while order <= min(MAX_ORDER, rule.max_nodes):
            gap = yield mapped_gauss(order, chart)
            if gap[0] <= max(rule.tol, limit):
                return
            # Twice as many nodes square the error; a rule that was nearly right needs few more.
            missing = math.log(float(gap[0]) / rule.tol) / math.log(1 / float(gap[0])) if gap[0] < 1 else 1.0
            order = order + max(2, math.ceil(1.5 * missing * order))
    tol = 0.8 * rule.tol
    for _ in range(3):
        table = yield from _panels(rule, tol, noise, seen[[0, -1]])
        gap = yield table
        if gap[0] <= rule.tol or len(table) + 2 * PANEL > rule.max_nodes:
            return
        tol *= rule.tol / gap[0] / 2


def _smooth_rule(rule: Adaptive, noise: float, seen: Array) -> Generator[Ask, Array, tuple[SinhMap, int] | None]:
    """The map for this path and the order of the Gauss rule it needs, or None where e is not smooth enough."""
    total = float(np.linalg.norm(seen[-1] - seen[0]))
    floor = noise * float(np.linalg.norm(seen, axis=1).max()) / total
    sampled, counts = SAMPLED, list(SAMPLES)
    while counts:
        count = counts.pop(0)
        if count >= len(seen):
            seen = yield from _sample(sampled, seen, count)
        values = seen[:: (len(seen) - 1) // count]
        charts = (sampled, *CHARTS)
        if count > SAMPLES[0]:
            charts = (*charts, SinhMap.fit(sampled(_chebyshev(count))[0], values))
        coefficients = _coefficients(values, charts) / total
        found = _shortest(coefficients, rule.tol, floor)
        if found is not None:
            return charts[found[0]], found[1]
        if sampled == SAMPLED and count == SAMPLES[1] and coefficients[0, -2] > LOST:
            sampled, seen, counts = charts[-1], seen[[0, -1]], list(SAMPLES)
    return None


def _sample(chart: SinhMap, seen: Array, count: int) -> Generator[Ask, Array, Array]:
    """Values at so many steps of Chebyshev's points of the mapped path, asking for those between the ones seen."""
    new = np.ones(count + 1, dtype=bool)
    new[:: count // (len(seen) - 1)] = False
    merged = np.empty((count + 1, seen.shape[1]))
    merged[~new], merged[new] = seen, (yield Ask(chart(_chebyshev(count))[0][new]))
    return merged


def mapped_gauss(n: int, chart: SinhMap) -> Table:
    """The n-point Gauss rule in the map's own variable."""
    table = gauss(n)
    nodes, slope = chart(table.nodes)
    return Table(nodes, table.weights * slope, table.check * slope)


@functools.cache
def _chebyshev(count: int) -> Array:
    """So many steps of Chebyshev's points on [0, 1], both ends among them."""
    return (1 - np.cos(np.pi * np.arange(count + 1) / count)) / 2


def _coefficients(values: Array, charts: tuple[SinhMap, ...]) -> Array:
    """Norms of Chebyshev coefficients in maps, (maps, degrees), from values at `_chebyshev` points of the first."""
    found = algebra.product(_cosines(len(values) - 1, charts), values)
    return np.sqrt(np.einsum("nk,nk->n", found, found)).reshape(len(charts), -1)


@functools.lru_cache(maxsize=32)
def _cosines(count: int, charts: tuple[SinhMap, ...]) -> Array:
    """The matrix from values at `_chebyshev` points of the first map to Chebyshev coefficients in each, map by map."""
    every = np.cos(np.pi * np.outer(np.arange(count + 1), np.arange(count + 1)) / count)
    every[:, [0, -1]] /= 2
    every[[0, -1]] /= 2
    # The points run against the cosine, which turns the sign of every second coefficient; norms do not see it.
    own = 2 / count * every
    places = [charts[0].inverse(chart(_chebyshev(count))[0]) for chart in charts]
    return np.concatenate([own @ _interpolation(count, there) for there in places])


def _interpolation(count: int, places: Array) -> Array:
    """The matrix from values at `_chebyshev` points to their interpolant's at other places (Berrut, Trefethen 2004)."""
    signs = (-1.0) ** np.arange(count + 1)
    signs[[0, -1]] /= 2
    steps = places[:, None] - _chebyshev(count)
    same = np.abs(steps) < 1e-13
    shares = signs / np.where(same, 1.0, steps)
    shares /= shares.sum(1, keepdims=True)
    return np.where(same.any(1, keepdims=True), same, shares)


@dataclass(frozen=True)
class _Degrees:
    """What `_shortest` needs to know of a sampling's degree.

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


def _shortest(coefficients: Array, tol: float, floor: float) -> tuple[int, int] | None:
    """The map with the smallest n whose coefficients beyond 2n are small enough, and that n.

    None where these samples do not show one. Coefficients inside the sampling are seen; beyond it they go on falling as
    its second half falls, only slower.

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
    if not good[0].any():
        return None
    # What the samples do not show might look smooth in any other map, unless it is too small to matter.
    hidden = edge[0] * np.exp(2 * SLOWING * slope[0]) if falls[0] else envelope[0, -1]
    shortest = TRUST * known.orders[good[0].argmax()]
    good[1:] &= (known.orders >= shortest) | (known.factors * hidden <= tol) | (hidden <= floor)
    place = int(good.any(0).argmax())
    if place >= int(REACH * (coefficients.shape[1] - 1)):
        return None
    return int(np.where(good[:, place], expected[:, place], np.inf).argmin()), int(known.orders[place])


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
