"""Straight paths of many problems at once: a function's values along them, and its derivatives for groups of inputs.

Everything here is asked for, not waited for: `Answers` and `Pending` have the numbers when they have arrived. Where the
function is the tail of an encoder on a CUDA device, what is asked for is one captured graph, from the points on the
path to the weighted sums.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp, vjp, vmap

from pairlens import progress
from pairlens.autodiff.dual import Groups, grouped
from pairlens.autodiff.graphs import padded
from pairlens.autodiff.modes import differentiable
from pairlens.autodiff.streams import Pending
from pairlens.autodiff.tail import Tail
from pairlens.shapes import Array, Embeddings, Points, Rows

Function = Callable[[Points, Rows], Embeddings]
"""e: points (nodes, *shape), and for every point the problem it belongs to, to embeddings (nodes, dim)."""

EVEN = 16
"""Points without tangents that a graph has at least, so that most of what a plan wants to see shares one."""
LIGHT = 2**12
"""Tokens up to which a pass without tangents is a matter of launches."""
BUDGET = 384 * 2**20
"""Bytes that the intermediate results of one chunk may take together, unless the caller knows better."""


def rounding(dtype: torch.dtype) -> float:
    """Relative rounding error to expect of an encoder's values."""
    return 4 * torch.finfo(dtype).eps


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
        marks: where e is a `Tail` and labels have one number a token, the same as rules for tangents take them. None:
            derivatives are taken by PyTorch's own forward or reverse mode.
        limit: relative rounding error of e's derivatives, where they are less exact than e.
    """

    function: Function
    x: Tensor
    r: Tensor
    labels: Tensor
    groups: tuple[int, ...]
    cost: int
    budget: int = BUDGET
    marks: Groups | None = None
    limit: float = 0.0

    @property
    def noise(self) -> float:
        """Relative rounding error to expect of e."""
        return rounding(self.x.dtype)

    def points(self, rows: Tensor, alphas: Array | Tensor) -> Tensor:
        """The points h(α) of the given problems, (nodes, *shape)."""
        alpha = torch.as_tensor(alphas, dtype=self.x.dtype, device=self.x.device)
        alpha = alpha.view(-1, *[1] * (self.x.ndim - 1))
        return torch.lerp(self.r[rows], self.x[rows], alpha)

    def in_chunks(
        self, count: int, tangents: int, work: Callable[[Problems, slice], Pending]
    ) -> Iterator[tuple[slice, Pending]]:
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

    def waits(self, points: int) -> bool:
        """Whether so many values for every problem take a device hardly longer than one."""
        tail = self.function
        captured = isinstance(tail, Tail) and tail.graphs is not None and tail.graphs.enabled
        return captured and len(self.x) * points * self.x.shape[1] <= LIGHT

    def run(self, name: str, work: Work, asked: Array, *, capture: bool) -> Pending:
        """`work` at the points asked for, by way of a captured graph if possible; it may then be at more points.

        Args:
            name: tells this work from others.
            work: takes the problems, the points' rows and α, and factors.
            asked: for every point its problem, its α and any factors of it, (2 + factors, points).
            capture: whether the work can be captured: what PyTorch differentiates cannot.
        """
        tail = self.function
        tangents = 0 if self.marks is None else len(self.marks)
        size = asked.shape[1] * (tangents + 1) * (self.x.shape[1] if self.x.ndim > 1 else 1)
        if not capture or not isinstance(tail, Tail) or tail.graphs is None or not tail.graphs.take(size):
            # Apple's devices have no float64.
            kind = torch.float32 if self.x.device.type == "mps" else torch.float64
            given = torch.as_tensor(asked, dtype=kind).to(self.x.device)
            return Pending(work(self, given[0].long(), given[1], given[2:]))
        # One of few sizes: the last point again and again, with factors of zero.
        count = asked.shape[1]
        wide = np.empty((len(asked), padded(count, 1 if tangents else EVEN)))
        wide[:, :count], wide[:2, count:], wide[2:, count:] = asked, asked[:2, -1:], 0.0
        marks = () if self.marks is None else (self.marks.labels, self.marks.members, self.marks.valid)

        def whole(given: Tensor, x: Tensor, r: Tensor, *rest: Tensor) -> tuple[Tensor]:
            own = replace(
                self,
                function=tail.on(rest[len(marks) :]),
                x=x,
                r=r,
                marks=Groups(*rest[:3]) if marks else None,
            )
            return (work(own, given[0].long(), given[1], given[2:]),)

        inputs = [torch.from_numpy(wide), self.x, self.r, *marks, *tail.tensors.values()]
        return tail.graphs.run((name, tail.name), whole, inputs, wanted=1)[1]


Work = Callable[[Problems, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Answers:
    """What was asked of many problems in one list, on its way: the chunks, and where each problem's points lie."""

    chunks: Sequence[tuple[slice, Pending]]
    spans: Sequence[slice]

    def arrays(self) -> list[Array]:
        """One (points, dim) array a problem, once they have arrived."""
        found = np.concatenate([pending.arrays()[0][: part.stop - part.start] for part, pending in self.chunks])
        return [found[span] for span in self.spans]


def values(problems: Problems, asked: Sequence[tuple[int, Array]]) -> Answers:
    """Values of e at points of the paths: for every question its problem and its α."""
    return _ask(replace(problems, marks=None), asked, 0, "values", _value, capture=True)


def slopes(problems: Problems, asked: Sequence[tuple[int, Array]]) -> Answers:
    """The derivative of e along the whole path, with the one tangent that is the sum of all groups'."""
    if problems.marks is None:
        return _ask(problems, asked, 1, "slopes", _slope, capture=False)
    one = np.zeros(problems.labels.shape[:2], dtype=np.int64)
    own = replace(problems, marks=grouped(one, 1, problems.x.dtype, problems.x.device))
    return _ask(own, asked, 1, "slopes", _slope_by_rules, capture=True)


def sums(problems: Problems, asked: Sequence[tuple[int, Array]], factors: Array, dim: int) -> list[Pending]:
    """Sums of the derivatives for every group, (factors, problems, groups, dim), in parts that are to be added up.

    Args:
        problems: the problems.
        asked: for every question its problem and its α.
        factors: what each point's derivatives are multiplied by, for one or more sums, (factors, points).
        dim: the embedding's dimensions.
    """
    given = np.concatenate([_gather(asked)[0], factors])
    groups, count = max(problems.groups), given.shape[1]
    # Reverse mode costs a cotangent per output dimension, whatever the number of groups.
    push = forward if groups <= dim else reverse
    capture = push is forward and problems.marks is not None

    def weigh(problems: Problems, rows: Tensor, alphas: Tensor, factors: Tensor) -> Tensor:
        return _weighed(problems, push(problems, rows, alphas, groups), rows, factors)

    def derive(problems: Problems, part: slice) -> Pending:
        with progress.share(part.start / count, part.stop / count):
            return problems.run("sums", weigh, given[:, part], capture=capture)

    return [found for _, found in problems.in_chunks(count, min(groups, dim), derive)]


def at_once(problems: Problems, given: Tensor, groups: int) -> Tensor:
    """As `sums`, inside a launch that does more, (factors, problems, groups, dim).

    Args:
        problems: the problems, with marks.
        given: for every point its problem, its α and its factors, (2 + factors, points).
        groups: how many groups there are at most.
    """
    rows = given[0].long()
    return _weighed(problems, forward(problems, rows, given[1], groups), rows, given[2:])


def _weighed(problems: Problems, derivative: Tensor, rows: Tensor, factors: Tensor) -> Tensor:
    """Weighted sums over each problem's points, (factors, problems, groups, dim), of derivatives (nodes, groups, dim).

    Added up where they are made, in float64, which Apple's devices do not have.
    """
    place = torch.device("cpu") if rows.device.type == "mps" else rows.device
    derivative = derivative.to(place).double()
    own = rows.to(place) == torch.arange(len(problems.x), device=place)[:, None]
    weights = factors.to(place, torch.float64)[:, None] * own
    with differentiable(attention=False):
        found = weights.flatten(0, 1) @ derivative.flatten(1)
    return found.view(*weights.shape[:2], *derivative.shape[1:])


def _gather(asked: Sequence[tuple[int, Array]]) -> tuple[Array, list[slice]]:
    """The points of many questions in one list: their problems and α, (2, points), and where each question's lie."""
    edges = itertools.accumulate((len(points) for _, points in asked), initial=0)
    spans = [slice(a, b) for a, b in itertools.pairwise(edges)]
    given = np.empty((2, spans[-1].stop))
    for span, (row, points) in zip(spans, asked, strict=True):
        given[0, span], given[1, span] = row, points
    return given, spans


def _ask(
    problems: Problems, asked: Sequence[tuple[int, Array]], tangents: int, name: str, work: Work, *, capture: bool
) -> Answers:
    given, spans = _gather(asked)
    steps, chunks = progress.Steps(given.shape[1]), []

    def run(problems: Problems, part: slice) -> Pending:
        return problems.run(name, work, given[:, part], capture=capture)

    for part, found in problems.in_chunks(given.shape[1], tangents, run):
        chunks.append((part, found))
        steps.advance(part.stop - part.start)
    return Answers(chunks, spans)


def _value(problems: Problems, rows: Tensor, alphas: Tensor, _: Tensor) -> Tensor:
    with differentiable(attention=False):
        return problems.function(problems.points(rows, alphas), rows)


def _slope(problems: Problems, rows: Tensor, alphas: Tensor, _: Tensor) -> Tensor:
    with differentiable():
        direction, points = problems.x[rows] - problems.r[rows], problems.points(rows, alphas)
        return jvp(lambda h: problems.function(h, rows), (points,), (direction,))[1]


def _slope_by_rules(problems: Problems, rows: Tensor, alphas: Tensor, _: Tensor) -> Tensor:
    return forward(problems, rows, alphas, 1)[:, 0]


def forward(problems: Problems, rows: Tensor, alphas: Array | Tensor, groups: int) -> Tensor:
    """Directional derivatives at points of the paths, one tangent per group, (nodes, groups, dim)."""
    with differentiable():
        points = problems.points(rows, alphas)
        direction = problems.x[rows] - problems.r[rows]
    size = max(1, problems.budget // (problems.cost * len(rows)) - 1)
    if problems.marks is not None:
        assert isinstance(problems.function, Tail)
        every = problems.marks.of_rows(rows)
        found, steps = [], progress.Steps(groups)
        for start in range(0, groups, size):
            part = slice(start, min(start + size, groups))
            with differentiable():
                own = every if size >= groups else every.part(part)
                found.append(problems.function.derivatives(points, direction, rows, own))
            steps.advance(part.stop - part.start)
        return found[0] if len(found) == 1 else torch.cat(found, dim=1)
    labels = problems.labels.to(rows.device)[rows]

    def push(group: Tensor) -> Tensor:
        tangent = torch.where(labels == group, direction, 0)
        return jvp(lambda h: problems.function(h, rows), (points,), (tangent,))[1]

    return _mapped(push, torch.arange(groups, device=points.device), size, axis=1)


def reverse(problems: Problems, rows: Tensor, alphas: Array | Tensor, groups: int) -> Tensor:
    """The same from one cotangent per output dimension, (nodes, groups, dim)."""
    with differentiable():
        points = problems.points(rows, alphas)
        direction = problems.x[rows] - problems.r[rows]
        with torch.enable_grad():
            output, pull = vjp(lambda h: problems.function(h, rows), points)[:2]
    labels = problems.labels.to(rows.device)[rows]
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
