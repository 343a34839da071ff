"""The heart: a path, a rule and a derivative give the contributions of groups of inputs, with their gap.

For a function e and the straight path h(α) = r + α (x - r), the contribution of group s is

    U[s] = ∫₀¹ J_e(h(α)) · Δ_s dα,        Δ_s = x - r on the elements of group s, zero elsewhere

so that Σ_s U[s] = e(x) - e(r). U[s] is a directional derivative: forward mode needs one tangent per group and shares
the primal among them; reverse mode needs one cotangent per output dimension. Whichever are fewer are used.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor

from pairlens import progress
from pairlens.autodiff.streams import Steps, finish
from pairlens.errors import InputError, NotConverged, NumericalError
from pairlens.linalg import length
from pairlens.quadrature.paths import Answers, Problems, slopes, sums, values
from pairlens.quadrature.planner import SAMPLES, Ask, Habit, Plan, first_points, plan
from pairlens.quadrature.rules import Adaptive, Rule, Table
from pairlens.shapes import Array, Values

LOOK = 0.02
"""How much of the work the first look along the paths is, roughly."""


@dataclass(frozen=True)
class Integral:
    """Contributions of the groups of one problem.

    `values` (groups, dim); `error` (groups,) an estimate of the norm of each row's own error; `reference` e(r) and
    `embedding` e(x), (dim,); `gap` the relative error of the total, measured; `nodes` how many points were used.
    """

    values: Values
    error: Array
    reference: Array
    embedding: Array
    gap: float
    nodes: int


def integrate(problems: Problems, rule: Rule) -> list[Integral]:
    """Solve the problems, each with as many nodes as its rule asks for.

    Raises:
        NotConverged: an adaptive rule did not reach its tolerance.
        NumericalError: e is not finite.
    """
    return finish(integrating(problems, rule, look(problems, rule).arrays()))


def look(problems: Problems, rule: Rule, sampling: int | None = None) -> Answers:
    """Ask for e where the rule wants to know it before it begins; the problems' groups do not matter yet.

    Where a device waits for questions rather than for answers, the second or third sampling is asked for at once.

    Args:
        problems: the problems.
        rule: the rule.
        sampling: what it begins with out of `planning.habit`; then both ends are known.
    """
    begin = SAMPLES[0] if sampling is None else sampling
    ahead = SAMPLES[min(SAMPLES.index(begin) + 1, 2)]
    points = first_points(rule, ahead if problems.waits(ahead) else begin)
    points = points if sampling is None else points[1:-1]
    with progress.share(0, LOOK):
        return values(problems, [(i, points) for i in range(len(problems.x))])


def integrating(
    problems: Problems, rule: Rule, seen: Sequence[Array], habit: Habit | None = None
) -> Steps[list[Integral]]:
    """As `integrate`, stopping where it would wait for a device.

    Args:
        problems: the problems.
        rule: the rule.
        seen: for every problem e where `look` asked for it; where the habit is a table at the path's ends, (2, dim).
        habit: the rule's habit with problems like these; see `planning.habit`.
    """
    reached = LOOK
    if isinstance(habit, Table):
        progress.report(reached)  # nothing was looked at
    ends = [own[[0, -1]] for own in seen]
    distances = [_distance(reference, embedding) for reference, embedding in ends]
    # Without a group nothing moves, and ends that differ do so by a rounding error.
    moving = [i for i, distance in enumerate(distances) if problems.groups[i] and distance > 0]
    solved = [_nothing(count, *own) for count, own in zip(problems.groups, ends, strict=True)]
    plans: dict[int, Plan] = {i: plan(rule, problems.noise, seen[i], problems.limit, habit) for i in moving}
    questions: dict[int, Ask | Table] = {i: next(plans[i]) for i in moving}
    while questions:
        # How many rounds there will be, nobody knows; those of tables alone are most of the work.
        left = 0.85 if any(isinstance(question, Ask) for question in questions.values()) else 0.05
        until = 1 - (1 - reached) * left
        with progress.share(reached, until):
            answers = yield from _answer(problems, questions, ends, solved)
        reached = until
        questions = {}
        for i, answer in answers.items():
            try:
                questions[i] = plans[i].send(answer)
            except StopIteration:
                continue
    if isinstance(rule, Adaptive):
        for i, integral in enumerate(solved):
            if not integral.gap <= rule.tol:
                raise _not_converged(integral, rule, problems, i)
    return solved


def measured(found: Array, starts: Array, embeddings: Array, groups: Sequence[int], nodes: int) -> list[Integral]:
    """The integrals that `paths.at_once` makes with one rule, whatever their gaps are.

    Args:
        found: what it gave with a rule's weights, and with what its check has less, (2, problems, groups, dim).
        starts: e(r), (problems, dim).
        embeddings: e(x), (problems, dim).
        groups: how many groups each problem has.
        nodes: how many nodes the rule has.
    """
    return [
        _measure(both[:, :count], reference, embedding, nodes)
        if _distance(reference, embedding) > 0
        else _nothing(count, reference, embedding)
        for both, reference, embedding, count in zip(found.swapaxes(0, 1), starts, embeddings, groups, strict=True)
    ]


def _nothing(groups: int, reference: Array, embedding: Array) -> Integral:
    """What groups contribute where nothing moves."""
    return Integral(np.zeros((groups, len(embedding))), np.zeros(groups), reference, embedding, gap=0.0, nodes=0)


def _distance(reference: Array, embedding: Array) -> float:
    """How far e goes."""
    with np.errstate(invalid="ignore"):
        found = length(embedding - reference)
    if not math.isfinite(found):
        raise NumericalError(
            "the embedding holds NaN or infinite numbers, so there is nothing to explain. "
            "Check the model's weights (and its dtype: half precision overflows easily)."
        )
    return found


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
    questions: dict[int, Ask | Table],
    ends: list[Array],
    solved: list[Integral],
) -> Steps[dict[int, Array]]:
    """Answer the questions of many plans, those of one kind in one batch. Better solutions go into `solved`."""
    answers: dict[int, Array] = {}
    asked = [(i, question) for i, question in questions.items() if isinstance(question, Ask)]
    for slope in (False, True):
        batch = [(i, question) for i, question in asked if question.slope is slope]
        if not batch:
            continue
        with progress.share(0.1 * slope, 0.1 + 0.2 * slope):
            found = (slopes if slope else values)(problems, [(i, question.points) for i, question in batch])
        yield
        answers.update({i: own for (i, _), own in zip(batch, found.arrays(), strict=True)})
    tables = [(i, question) for i, question in questions.items() if isinstance(question, Table)]
    if tables:
        weights = np.concatenate([table.weights for _, table in tables])
        factors = np.stack([weights, weights - np.concatenate([table.check for _, table in tables])])
        with progress.share(0.3 if asked else 0.0, 1):
            nodes = [(i, table.nodes) for i, table in tables]
            pending = sums(problems, nodes, factors, ends[0].shape[1])
        yield
        every = functools.reduce(np.add, [part.arrays()[0] for part in pending])
        for i, table in tables:
            integral = _measure(every[:, i, : problems.groups[i]], *ends[i], nodes=len(table))
            if solved[i].nodes == 0 or integral.gap < solved[i].gap:
                solved[i] = integral
            answers[i] = np.array([integral.gap])
    return answers


def _measure(found: Array, reference: Array, embedding: Array, nodes: int) -> Integral:
    """The gap of the total, and from it what the difference of two rules says about each row.

    Args:
        found: the rows by a rule, and how much another one differs, (2, groups, dim).
        reference: e(r).
        embedding: e(x).
        nodes: how many nodes the rule has.
    """
    target, (total, doubt) = embedding - reference, found.sum(1)
    sizes, doubts = np.sqrt(np.einsum("fgk,fgk->fg", found, found))
    if not math.isfinite(sizes.sum()):
        raise NumericalError("a derivative of the embedding is not finite along the path; try another method or layer.")
    miss, size, differ = length(total - target), length(target), length(doubt)
    # How wrong the rule is compared with how much the two rules differ is known for the total: take it over to the
    # rows, which differ in the same integrand. Never less than the row's share of the miss.
    scale = min(1.0, 3 * miss / differ) if differ > 0 else 0.0
    error = np.maximum(scale * doubts, miss / size * sizes)
    return Integral(found[0].copy(), error, reference, embedding, gap=miss / size, nodes=nodes)


def check_groups(groups: Tensor, shape: torch.Size) -> tuple[Tensor, int]:
    """Group labels of one problem, checked: whole numbers from 0 without holes, broadcastable to the shape."""
    if groups.is_floating_point() or groups.dtype == torch.bool:
        raise InputError(f"groups must be whole numbers, one label per element of x, not {groups.dtype}.")
    labels = groups.long()
    try:
        torch.broadcast_shapes(labels.shape, shape)
    except RuntimeError:
        labels_shape, x_shape = tuple(groups.shape), tuple(shape)
        raise InputError(f"groups of shape {labels_shape} do not broadcast to x, which has {x_shape}.") from None
    found = torch.unique(labels)
    if int(found.min()) != 0 or int(found.max()) != len(found) - 1:
        raise InputError(f"groups must be labelled 0, 1, 2, … without holes; they are {found.tolist()[:10]}.")
    return labels.view(*[1] * (len(shape) - labels.ndim), *labels.shape), len(found)
