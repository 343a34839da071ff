"""Integration along paths: problems and a rule give the contributions of groups of inputs, with the measured gap.

For a function e and the straight path h(α) = r + α (x - r), the contribution of group s is

    U[s] = ∫₀¹ J_e(h(α)) · Δ_s dα,        Δ_s = x - r on the elements of group s, zero elsewhere

so that Σ_s U[s] = e(x) - e(r). U[s] is a directional derivative: forward mode needs one tangent per group and shares
the primal among them, reverse mode needs one cotangent per output dimension. The cheaper of the two is used.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch

from pairlens import progress
from pairlens.autodiff import Steps, finish
from pairlens.errors import NotConverged, NumericalError
from pairlens.linalg import length
from pairlens.quadrature.paths import slopes, sums, values
from pairlens.quadrature.planner import first_points, plan
from pairlens.quadrature.problems import Answers, Problems
from pairlens.quadrature.query import Plan, Query
from pairlens.quadrature.rules import Adaptive, NodeTable, Rule
from pairlens.quadrature.smooth import SAMPLES
from pairlens.shapes import Array, PerUnit, Values, Vector

FIRST_SHARE = 0.02
"""The share of the work, for progress reports, that the first values along the paths take."""


@dataclass(frozen=True)
class Integral:
    """Contributions of the groups of one problem.

    Attributes:
        values: one vector per group, (groups, dim).
        error: an estimate of the norm of each row's error, (groups,).
        reference: e(r), (dim,).
        embedding: e(x), (dim,).
        gap: the relative error of the total, measured.
        nodes: how many nodes were used.
    """

    values: Values
    error: PerUnit
    reference: Vector
    embedding: Vector
    gap: float
    nodes: int


def integrate(problems: Problems, rule: Rule) -> list[Integral]:
    """Solve the problems, each with as many nodes as the rule needs.

    Raises:
        NotConverged: an adaptive rule did not reach its tolerance.
        NumericalError: e is not finite.
    """
    return finish(integrate_in_steps(problems, rule, first_values(problems, rule).arrays()))


def first_values(problems: Problems, rule: Rule) -> Answers:
    """Start computing e where the rule's plans need it first. The groups of the problems do not matter yet."""
    # On a device that waits for launches, the second sampling costs no more than the first.
    degree = SAMPLES[1] if problems.waits(SAMPLES[1]) else SAMPLES[0]
    points = first_points(rule, degree)
    with progress.share(0, FIRST_SHARE):
        return values(problems, [(i, points) for i in range(len(problems.x))])


def integrate_in_steps(problems: Problems, rule: Rule, seen: Sequence[Array]) -> Steps[list[Integral]]:
    """As `integrate`, yielding where it would wait for a device.

    Args:
        problems: the problems.
        rule: the rule.
        seen: for every problem the `first_values`, (points, dim).
    """
    reached = FIRST_SHARE
    ends = [samples[[0, -1]] for samples in seen]
    distances = [_distance(reference, embedding) for reference, embedding in ends]
    # Without a group nothing moves, and ends that differ do so by a rounding error.
    moving = [i for i, distance in enumerate(distances) if problems.groups[i] and distance > 0]
    solved = [_nothing(count, *pair) for count, pair in zip(problems.groups, ends, strict=True)]
    plans: dict[int, Plan] = {i: plan(rule, problems.noise, seen[i], problems.limit) for i in moving}
    requests: dict[int, Query | NodeTable] = {i: next(plans[i]) for i in moving}
    while requests:
        # The number of rounds is not known; rounds of tables alone are most of the work.
        left = 0.85 if any(isinstance(request, Query) for request in requests.values()) else 0.05
        until = 1 - (1 - reached) * left
        with progress.share(reached, until):
            answers = yield from _answer(problems, requests, ends, solved)
        reached = until
        requests = {}
        for i, answer in answers.items():
            try:
                requests[i] = plans[i].send(answer)
            except StopIteration:
                continue
    if isinstance(rule, Adaptive):
        for i, integral in enumerate(solved):
            if not integral.gap <= rule.tol:
                raise _not_converged(integral, rule, problems, i)
    return solved


def _nothing(groups: int, reference: Array, embedding: Array) -> Integral:
    """Return the integral of a path on which nothing moves."""
    return Integral(np.zeros((groups, len(embedding))), np.zeros(groups), reference, embedding, gap=0.0, nodes=0)


def _distance(reference: Array, embedding: Array) -> float:
    """Return how far e goes."""
    with np.errstate(invalid="ignore"):
        distance = length(embedding - reference)
    if not math.isfinite(distance):
        raise NumericalError(
            "the embedding holds NaN or infinite numbers, so there is nothing to explain. "
            "Check the model's weights (and its dtype: half precision overflows easily)."
        )
    return distance


def _not_converged(integral: Integral, rule: Adaptive, problems: Problems, index: int) -> NotConverged:
    remedy = f"ask for less (tol={integral.gap * 1.2:.1e})"
    if integral.gap <= problems.limit:
        remedy = f"multiply more exactly (Lens(..., precision='highest')), or {remedy}"
    elif problems.x.dtype == torch.float32 and rule.tol < 1e-4:
        remedy = f"compute in double precision (Lens(..., dtype='float64')), or {remedy}"
    elif integral.nodes * 2 > rule.max_nodes:
        remedy = f"allow more nodes (rule=Adaptive(tol, max_nodes={rule.max_nodes * 4})), or {remedy}"
    return NotConverged(
        f"the integral reached a gap of {integral.gap:.1e} with {integral.nodes} nodes, and tol is {rule.tol:.0e}. "
        f"What helps: {remedy}, or, with integrated-jacobian, explain a later layer.",
        gap=integral.gap,
        tol=rule.tol,
        index=index,
    )


def _answer(
    problems: Problems,
    requests: dict[int, Query | NodeTable],
    ends: list[Array],
    solved: list[Integral],
) -> Steps[dict[int, Array]]:
    """Answer the requests of many plans, those of one kind in one batch. Better solutions go into `solved`."""
    answers: dict[int, Array] = {}
    queries = [(i, request) for i, request in requests.items() if isinstance(request, Query)]
    for slope in (False, True):
        batch = [(i, query) for i, query in queries if query.slope is slope]
        if not batch:
            continue
        with progress.share(0.1 * slope, 0.1 + 0.2 * slope):
            pending = (slopes if slope else values)(problems, [(i, query.points) for i, query in batch])
        yield
        answers.update({i: array for (i, _), array in zip(batch, pending.arrays(), strict=True)})
    tables = [(i, request) for i, request in requests.items() if isinstance(request, NodeTable)]
    if tables:
        weights = np.concatenate([table.weights for _, table in tables])
        factors = np.stack([weights, weights - np.concatenate([table.check for _, table in tables])])
        with progress.share(0.3 if queries else 0.0, 1):
            nodes = [(i, table.nodes) for i, table in tables]
            parts = sums(problems, nodes, factors, ends[0].shape[1])
        yield
        totals = functools.reduce(np.add, [part.arrays()[0] for part in parts])
        for i, table in tables:
            integral = _measure(totals[:, i, : problems.groups[i]], *ends[i], nodes=len(table))
            if solved[i].nodes == 0 or integral.gap < solved[i].gap:
                solved[i] = integral
            answers[i] = np.array([integral.gap])
    return answers


def _measure(rows: Array, reference: Array, embedding: Array, nodes: int) -> Integral:
    """Return the integral with its measured gap and the errors estimated from it.

    Args:
        rows: the rows by a rule, and by how much its check differs, (2, groups, dim).
        reference: e(r).
        embedding: e(x).
        nodes: how many nodes the rule has.
    """
    target, (total, doubt) = embedding - reference, rows.sum(1)
    sizes, doubts = np.sqrt(np.einsum("fgk,fgk->fg", rows, rows))
    if not math.isfinite(sizes.sum()):
        raise NumericalError("a derivative of the embedding is not finite along the path; try another method or layer.")
    miss, size, differ = length(total - target), length(target), length(doubt)
    # For the total, both the rule's error and its difference from the check are known. Their ratio is taken for every
    # row too, as all rows share one integrand. An error is never less than the row's share of the total's.
    scale = min(1.0, 3 * miss / differ) if differ > 0 else 0.0
    error = np.maximum(scale * doubts, miss / size * sizes)
    return Integral(rows[0].copy(), error, reference, embedding, gap=miss / size, nodes=nodes)
