"""Panels of low order for an e with kinks (ReLU, max pooling): the worst are bisected until their sum is right.

The error of a panel is known, not estimated: e(end) - e(start) is its integral.
"""

from __future__ import annotations

import heapq
import itertools

import numpy as np

from pairlens.quadrature.query import Inquiry, Query
from pairlens.quadrature.rules import Adaptive, NodeTable, gauss
from pairlens.shapes import Array

NODES = 3
"""Nodes per panel."""
AT_ONCE = 64
"""Panels that are bisected in one round."""


def panel_rule(rule: Adaptive, tol: float, noise: float, ends: Array) -> Inquiry[NodeTable]:
    """Return a table of panels. It ends at the tolerance, at `rule.max_nodes`, or at rounding errors.

    Args:
        rule: the rule asked for.
        tol: the relative gap allowed.
        noise: relative rounding error of e.
        ends: e at both ends of the path, (2, dim).
    """
    size = float(np.linalg.norm(ends[1] - ends[0]))
    floor = noise * float(np.linalg.norm(ends, axis=1).max())
    grid = np.linspace(0.0, 1.0, max(2, min(9, rule.max_nodes // NODES + 1)))
    errors = yield from _errors(grid[:-1], grid[1:])
    total = errors.sum(0)
    # The count settles ties, so that the heap never compares two arrays.
    count = itertools.count()
    heap = [
        (-float(np.linalg.norm(error)), start, next(count), stop, error)
        for start, stop, error in zip(grid[:-1], grid[1:], errors, strict=True)
    ]
    heapq.heapify(heap)
    while float(np.linalg.norm(total)) > tol * size and -heap[0][0] > floor:
        # All panels within a factor two of the worst are bisected in one round, so that the passes run in batches.
        worst = -heap[0][0]
        room = rule.max_nodes // NODES - len(heap)
        split = []
        while heap and -heap[0][0] > worst / 2 and len(split) < min(AT_ONCE, room):
            split.append(heapq.heappop(heap))
        if not split:
            break
        starts, stops = np.array([panel[1] for panel in split]), np.array([panel[3] for panel in split])
        middles = (starts + stops) / 2
        starts, stops = np.concatenate([starts, middles]), np.concatenate([middles, stops])
        errors = yield from _errors(starts, stops)
        total = total - sum(panel[4] for panel in split) + errors.sum(0)
        for start, stop, error in zip(starts, stops, errors, strict=True):
            heapq.heappush(heap, (-float(np.linalg.norm(error)), start, next(count), stop, error))
    return _table(sorted((panel[1], panel[3]) for panel in heap))


def _errors(starts: Array, stops: Array) -> Inquiry[Array]:
    """Return the errors of panels, (panels, dim): the rule's sum minus the exact integral."""
    rung, lengths = gauss(NODES), stops - starts
    nodes = starts[:, None] + lengths[:, None] * rung.nodes
    slopes = yield Query(nodes.ravel(), slope=True)
    edges = yield Query(np.concatenate([starts, stops]))
    exact = edges[len(starts) :] - edges[: len(starts)]
    return lengths[:, None] * np.einsum("n,pnk->pk", rung.weights, slopes.reshape(*nodes.shape, -1)) - exact


def _table(spans: list[tuple[float, float]]) -> NodeTable:
    """Return the table of panels with these starts and ends."""
    rung = gauss(NODES)
    starts = np.array([start for start, _ in spans])[:, None]
    lengths = np.array([stop - start for start, stop in spans])[:, None]
    return NodeTable(
        (starts + lengths * rung.nodes).ravel(),
        (lengths * rung.weights).ravel(),
        (lengths * rung.check).ravel(),
        panels=len(spans),
    )
