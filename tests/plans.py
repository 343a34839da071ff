"""Runs a plan against a function with known derivative."""

from __future__ import annotations

import numpy as np

from pairlens.quadrature.planner import first_points, plan
from pairlens.quadrature.query import Query
from pairlens.quadrature.rules import NodeTable
from pairlens.quadrature.smooth import SAMPLES


def drive(rule, e, slope, noise=1e-15, degree=SAMPLES[0], limit=0.0):
    """Answer a plan's queries about the function e; return its last table and how often it asked for what."""
    steps = plan(rule, noise, e(first_points(rule, degree)), limit)
    asked = {"values": 0, "slopes": 0, "proposals": 0}
    target = e(np.array([1.0]))[0] - e(np.array([0.0]))[0]
    table, query = None, next(steps)
    try:
        while True:
            if isinstance(query, NodeTable):
                asked["proposals"] += 1
                table = query
                gap = np.linalg.norm(table.weights @ slope(table.nodes) - target) / np.linalg.norm(target)
                query = steps.send(np.array([gap]))
            else:
                assert isinstance(query, Query)
                asked["slopes" if query.slope else "values"] += len(query.points)
                query = steps.send((slope if query.slope else e)(query.points))
    except StopIteration:
        assert table is not None
        return table, asked
