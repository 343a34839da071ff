"""The heart: a path, a rule and a derivative give the contributions of groups of inputs, with their gap.

For a function e and the straight path h(α) = r + α (x - r), the contribution of group s is

    U[s] = ∫₀¹ J_e(h(α)) · Δ_s dα,        Δ_s = x - r on the elements of group s, zero elsewhere

so that Σ_s U[s] = e(x) - e(r). U[s] is a directional derivative: forward mode needs one tangent per group and shares
the primal among them; reverse mode needs one cotangent per output dimension. Whichever are fewer are used.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp, vjp, vmap

from pairlens import dual, progress
from pairlens.architectures import differentiable
from pairlens.errors import InputError, NotConverged, NumericalError
from pairlens.quadrature import Adaptive, Ask, Plan, Rule, Table, first_points, plan
from pairlens.shapes import Array, Embeddings, Points, Rows, Values

Function = Callable[[Points, Rows], Embeddings]
"""e: points (nodes, *shape), and for every point the problem it belongs to, to embeddings (nodes, dim)."""

BUDGET = 384 * 2**20
"""Bytes that the intermediate results of one chunk may take together, unless the caller knows better."""


@dataclass(frozen=True)
class Integral:
    """Contributions of the groups of one problem.

    `values` (groups, dim); `error` (groups,) an estimate of the norm of each row's own error; `reference` e(r) and
    `embedding` e(x), (dim,); `gap` the relative error of the total, measured; `nodes` how many points were used.
    `noise`: for methods that sample, the errors as independent draws: weights (draws, groups), residuals (draws, dim).
    """

    values: Values
    error: Array
    reference: Array
    embedding: Array
    gap: float
    nodes: int
    noise: tuple[Array, Array] | None = None


def spread(integral: Integral, active: Sequence[int], count: int) -> Integral:
    """The integral with `count` rows, zero for the groups that are not among the active ones."""
    values, error = np.zeros((count, integral.values.shape[1])), np.zeros(count)
    values[active], error[active] = integral.values, integral.error
    noise = integral.noise
    if noise is not None:
        weights = np.zeros((len(noise[0]), count))
        weights[:, active] = noise[0]
        noise = (weights, noise[1])
    return replace(integral, values=values, error=error, noise=noise)


@dataclass(frozen=True)
class Problems:
    """Integrals over paths of one shape that are solved together.

    Attributes:
        function: e.
        x: ends of the paths, (problems, *shape).
        r: starts of the paths, (problems, *shape).
        labels: the group of every element, (problems, *shape) or 1 in any dimension; -1: in no group asked for.
        groups: how many groups each problem has.
        cost: bytes that one tangent at one point keeps alive, to chunk by.
        budget: bytes that the intermediate results of one chunk may take together.
        push: derivatives of e at points (n, tokens, width) in the direction of groups of tokens, (n, groups, dim), for
            labels with one number a token; given the points, the sum of all directions, their problems and the groups.
            None: PyTorch's own forward mode.
        limit: relative rounding error of `push`, where it is less exact than e.
    """

    function: Function
    x: Tensor
    r: Tensor
    labels: Tensor
    groups: tuple[int, ...]
    cost: int
    budget: int = BUDGET
    push: Callable[[Tensor, Tensor, Tensor, dual.Groups], Tensor] | None = None
    limit: float = 0.0

    @property
    def noise(self) -> float:
        """Relative rounding error to expect of e."""
        return 4 * torch.finfo(self.x.dtype).eps

    def points(self, rows: Tensor, alphas: Array) -> Tensor:
        """The points h(α) of the given problems, (nodes, *shape)."""
        alpha = torch.as_tensor(alphas, dtype=self.x.dtype, device=self.x.device)
        alpha = alpha.view(-1, *[1] * (self.x.ndim - 1))
        return torch.lerp(self.r[rows], self.x[rows], alpha)

    def in_chunks(
        self, count: int, tangents: int, work: Callable[[Problems, slice], Tensor]
    ) -> Iterator[tuple[slice, Tensor]]:
        """Do work on slices of `count` points, so that each with its tangents stays within the budget.

        Where the memory is less than the budget said, the budget is halved and the work goes on.
        """
        problems, start = self, 0
        while start < count:
            size = max(1, problems.budget // (problems.cost * (tangents + 1)))
            part = slice(start, min(start + size, count))
            try:
                done = work(problems, part)
            except (torch.OutOfMemoryError, MemoryError):
                if problems.budget < problems.cost:
                    raise
                problems = replace(problems, budget=problems.budget // 2)
                if self.x.is_cuda:
                    torch.cuda.empty_cache()
                continue
            yield part, done
            start = part.stop


def integrate(problems: Problems, rule: Rule) -> list[Integral]:
    """Solve the problems, each with as many nodes as its rule asks for.

    Raises:
        NotConverged: an adaptive rule did not reach its tolerance.
        NumericalError: e is not finite.
    """
    count = len(problems.x)
    reached = 0.02
    with progress.share(0, reached):
        seen = _evaluate(problems, [(i, Ask(first_points(rule))) for i in range(count)])
    ends = [values[[0, -1]] for values in seen]
    for reference, embedding in ends:
        _check_ends(reference, embedding)
    # Without a group nothing moves, and ends that differ do so by a rounding error.
    moving = [i for i, (start, stop) in enumerate(ends) if problems.groups[i] and not np.array_equal(start, stop)]
    solved: list[Integral] = [
        Integral(
            np.zeros((problems.groups[i], stop.shape[0])), np.zeros(problems.groups[i]), start, stop, gap=0.0, nodes=0
        )
        for i, (start, stop) in enumerate(ends)
    ]
    plans: dict[int, Plan] = {i: plan(rule, problems.noise, seen[i], problems.limit) for i in moving}
    questions: dict[int, Ask | Table] = {i: next(plans[i]) for i in moving}
    while questions:
        # How many rounds there will be, nobody knows; those of tables alone are most of the work.
        left = 0.85 if any(isinstance(question, Ask) for question in questions.values()) else 0.05
        until = 1 - (1 - reached) * left
        with progress.share(reached, until):
            answers = _answer(problems, questions, ends, solved)
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


def _check_ends(reference: Array, embedding: Array) -> None:
    if not (np.isfinite(reference).all() and np.isfinite(embedding).all()):
        raise NumericalError(
            "the embedding holds NaN or infinite numbers, so there is nothing to explain. "
            "Check the model's weights (and its dtype: half precision overflows easily)."
        )


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
) -> dict[int, Array]:
    """Answer the questions of many plans, those of one kind in one batch. Better solutions go into `solved`."""
    answers: dict[int, Array] = {}
    asked = [(i, question) for i, question in questions.items() if isinstance(question, Ask)]
    for slope in (False, True):
        batch = [(i, question) for i, question in asked if question.slope is slope]
        if not batch:
            continue
        with progress.share(0.1 * slope, 0.1 + 0.2 * slope):
            found = (_slopes if slope else _evaluate)(problems, batch)
        answers.update({i: values for (i, _), values in zip(batch, found, strict=True)})
    tables = [(i, question) for i, question in questions.items() if isinstance(question, Table)]
    if tables:
        with progress.share(0.3 if asked else 0.0, 1):
            solutions = _contributions(problems, tables, ends[0].shape[1])
        for (i, table), (values, doubt) in zip(tables, solutions, strict=True):
            integral = _measure(values, doubt, *ends[i], nodes=len(table))
            if solved[i].nodes == 0 or integral.gap < solved[i].gap:
                solved[i] = integral
            answers[i] = np.array([integral.gap])
    return answers


def _measure(values: Array, doubt: Array, reference: Array, embedding: Array, nodes: int) -> Integral:
    """The gap of the total, and from it what the difference of two rules says about each row."""
    if not np.isfinite(values).all():
        raise NumericalError("a derivative of the embedding is not finite along the path; try another method or layer.")
    target = embedding - reference
    miss = float(np.linalg.norm(values.sum(0) - target))
    size = float(np.linalg.norm(target))
    rows = np.linalg.norm(doubt, axis=1)
    # How wrong the rule is compared with how much the two rules differ is known for the total: take it over to the
    # rows, which differ in the same integrand. Never less than the row's share of the miss.
    total = float(np.linalg.norm(doubt.sum(0)))
    scale = min(1.0, 3 * miss / total) if total > 0 else 0.0
    error = np.maximum(scale * rows, miss / size * np.linalg.norm(values, axis=1))
    return Integral(values, error, reference, embedding, gap=miss / size, nodes=nodes)


def _gather(asked: Sequence[tuple[int, Ask | Table]], device: torch.device) -> tuple[Tensor, Array, list[slice]]:
    """The points of many questions in one list: their problems, their α, and where each question's points lie."""
    points = [question.points if isinstance(question, Ask) else question.nodes for _, question in asked]
    rows = np.concatenate([np.full(len(p), i) for (i, _), p in zip(asked, points, strict=True)])
    edges = np.cumsum([0, *map(len, points)])
    spans = [slice(int(a), int(b)) for a, b in itertools.pairwise(edges)]
    return torch.as_tensor(rows, device=device), np.concatenate(points), spans


def _evaluate(problems: Problems, asked: Sequence[tuple[int, Ask]]) -> list[Array]:
    """Values of e at the points asked for: one (points, dim) array a question."""
    rows, alphas, spans = _gather(asked, problems.x.device)
    steps = progress.Steps(len(alphas))

    def evaluate(problems: Problems, part: slice) -> Tensor:
        with differentiable(attention=False):
            return problems.function(problems.points(rows[part], alphas[part]), rows[part]).double().cpu()

    return _collect(problems.in_chunks(len(alphas), 0, evaluate), steps, spans)


def _collect(chunks: Iterator[tuple[slice, Tensor]], steps: progress.Steps, spans: Sequence[slice]) -> list[Array]:
    """What chunks of points gave, by question."""
    found = []
    for part, values in chunks:
        found.append(values)
        steps.advance(part.stop - part.start)
    values = torch.cat(found).numpy()
    return [values[span] for span in spans]


def _slopes(problems: Problems, asked: Sequence[tuple[int, Ask]]) -> list[Array]:
    """The derivative of e along the whole path, with the one tangent that is the sum of all groups'."""
    rows, alphas, spans = _gather(asked, problems.x.device)
    steps = progress.Steps(len(alphas))

    def slope(problems: Problems, part: slice) -> Tensor:
        r = rows[part]
        with differentiable():
            direction, points = problems.x[r] - problems.r[r], problems.points(r, alphas[part])
            if problems.push is not None:
                together = dual.Groups.of(torch.zeros_like(problems.labels[r][..., 0]), 1, points.dtype)
                return problems.push(points, direction, r, together)[:, 0].double().cpu()
            return jvp(lambda h: problems.function(h, r), (points,), (direction,))[1].double().cpu()

    return _collect(problems.in_chunks(len(alphas), 1, slope), steps, spans)


def _contributions(problems: Problems, tables: Sequence[tuple[int, Table]], dim: int) -> list[tuple[Array, Array]]:
    """For every table its problem's contributions, and by how much they differ under the check rule."""
    rows, alphas, _ = _gather(tables, problems.x.device)
    # Added up where they are made, in float64, which Apple's devices do not have.
    place = torch.device("cpu") if problems.x.device.type == "mps" else problems.x.device
    weights = torch.as_tensor(np.concatenate([table.weights for _, table in tables]), device=place)
    doubts = weights - torch.as_tensor(np.concatenate([table.check for _, table in tables]), device=place)
    owner = torch.as_tensor(np.repeat(np.arange(len(tables)), [len(table) for _, table in tables]), device=place)
    groups = max(problems.groups[i] for i, _ in tables)
    sums = torch.zeros(2, len(tables), groups, dim, dtype=torch.float64, device=place)
    # Reverse mode costs a cotangent per output dimension, whatever the number of groups.
    push = _forward if groups <= dim else _reverse
    tangents = min(groups, dim)

    def derive(problems: Problems, part: slice) -> Tensor:
        with progress.share(part.start / len(alphas), part.stop / len(alphas)):
            return push(problems, rows[part], alphas[part], groups).to(place).double()  # (nodes, groups, dim)

    for part, derivative in problems.in_chunks(len(alphas), tangents, derive):
        for total, factor in zip(sums, (weights, doubts), strict=True):
            total.index_add_(0, owner[part], factor[part, None, None] * derivative)
    values, doubt = sums.cpu().numpy()
    return [(values[k, : problems.groups[i]], doubt[k, : problems.groups[i]]) for k, (i, _) in enumerate(tables)]


def _forward(problems: Problems, rows: Tensor, alphas: Array, groups: int) -> Tensor:
    """Directional derivatives at points of the paths, one tangent per group, (nodes, groups, dim)."""
    with differentiable():
        points = problems.points(rows, alphas)
        direction = problems.x[rows] - problems.r[rows]
    labels = problems.labels[rows]
    size = max(1, problems.budget // (problems.cost * len(rows)) - 1)
    if problems.push is not None:
        every = dual.Groups.of(problems.labels[..., 0], groups, points.dtype).of_rows(rows)
        found, steps = [], progress.Steps(groups)
        for start in range(0, groups, size):
            part = slice(start, min(start + size, groups))
            with differentiable():
                found.append(problems.push(points, direction, rows, every.part(part)))
            steps.advance(part.stop - part.start)
        return torch.cat(found, dim=1)

    def push(group: Tensor) -> Tensor:
        tangent = torch.where(labels == group, direction, 0)
        return jvp(lambda h: problems.function(h, rows), (points,), (tangent,))[1]

    return _mapped(push, torch.arange(groups, device=points.device), size, axis=1)


def _reverse(problems: Problems, rows: Tensor, alphas: Array, groups: int) -> Tensor:
    """The same from one cotangent per output dimension, (nodes, groups, dim)."""
    with differentiable():
        points = problems.points(rows, alphas)
        direction = problems.x[rows] - problems.r[rows]
        with torch.enable_grad():
            output, pull = vjp(lambda h: problems.function(h, rows), points)[:2]
    labels = problems.labels[rows]
    spread = tuple(d for d in range(1, direction.ndim) if labels.shape[d] == 1 and direction.shape[d] > 1)
    nodes, dim = output.shape
    index = labels.expand([direction.shape[d] if d not in spread else 1 for d in range(direction.ndim)]).flatten(1)
    asked = index >= 0

    def push(cotangent: Tensor) -> Tensor:
        moved = pull(cotangent)[0] * direction
        moved = moved.sum(spread, keepdim=True) if spread else moved
        share = torch.where(asked, moved.flatten(1), 0)
        return torch.zeros(nodes, groups, dtype=share.dtype, device=share.device).scatter_add(
            1, index.clamp(min=0), share
        )

    size = max(1, problems.budget // (problems.cost * len(rows)) - 1)
    basis = torch.eye(dim, dtype=points.dtype, device=points.device)[:, None].expand(dim, nodes, dim)
    return _mapped(push, basis, size, axis=2)


def _mapped(push: Callable[[Tensor], Tensor], items: Tensor, size: int, axis: int) -> Tensor:
    """`push` of all items, so many at a time, side by side along an axis of the result."""
    found, steps = [], progress.Steps(len(items))
    for part in items.split(size):
        # Whoever watches may take long to answer: nothing is held meanwhile that another thread waits for.
        with differentiable():
            found.append(vmap(push, out_dims=axis)(part))
        steps.advance(len(part))
    return torch.cat(found, dim=axis)


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
