"""Values of a function at points of many paths, and its derivatives there for groups of inputs."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import replace

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp, vjp, vmap

from pairlens import progress
from pairlens.autodiff import Groups, Pending, Tail, differentiable
from pairlens.quadrature.problems import Answers, Problems, Work
from pairlens.shapes import Array, Embeddings, Float, Rows

Derivatives = Float[Tensor, "nodes groups dim"]
"""Derivatives at points of paths, one vector per group."""
Asked = Sequence[tuple[int, Array]]
"""Points to compute at: a problem's index and values of α, (points,)."""


def values(problems: Problems, asked: Asked) -> Answers:
    """Start computing e at points of the paths."""
    return _ask(replace(problems, token_groups=None), asked, 0, "values", _value, capture=True)


def slopes(problems: Problems, asked: Asked) -> Answers:
    """Start computing the derivative of e along the whole path, with one tangent, the sum of all groups'."""
    if problems.token_groups is None:
        return _ask(problems, asked, 1, "slopes", _slope, capture=False)
    together = np.zeros(problems.labels.shape[:2], dtype=np.int64)
    one = Groups.cached(together, 1, problems.x.dtype, problems.x.device)
    return _ask(replace(problems, token_groups=one), asked, 1, "slopes", _slope_by_duals, capture=True)


def sums(problems: Problems, asked: Asked, factors: Array, dim: int) -> list[Pending]:
    """Start computing weighted sums of derivatives, (factors, problems, groups, dim), in parts that add up to them.

    Args:
        problems: the problems.
        asked: the points.
        factors: the weights of every point, for one or more sums, (factors, points).
        dim: the embedding's dimensions.
    """
    given = np.concatenate([_gather(asked)[0], factors])
    groups, count = max(problems.groups), given.shape[1]
    # Reverse mode costs one cotangent per output dimension, for any number of groups.
    derive = forward if groups <= dim else reverse
    capture = derive is forward and problems.token_groups is not None

    def weigh(problems: Problems, rows: Tensor, alphas: Tensor, factors: Tensor) -> Tensor:
        return _weighed(problems, derive(problems, rows, alphas, groups), rows, factors)

    def run(problems: Problems, part: slice) -> Pending:
        with progress.share(part.start / count, part.stop / count):
            return problems.run("sums", weigh, given[:, part], capture=capture)

    return [pending for _, pending in problems.in_chunks(count, min(groups, dim), run)]


def _weighed(problems: Problems, derivatives: Derivatives, rows: Rows, factors: Tensor) -> Tensor:
    """Return weighted sums over each problem's points, (factors, problems, groups, dim).

    The sums are taken on the device, in float64; Apple's devices have none, so there on the host.
    """
    place = torch.device("cpu") if rows.device.type == "mps" else rows.device
    derivatives = derivatives.to(place).double()
    mine = rows.to(place) == torch.arange(len(problems.x), device=place)[:, None]
    weights = factors.to(place, torch.float64)[:, None] * mine
    with differentiable(attention=False):
        totals = weights.flatten(0, 1) @ derivatives.flatten(1)
    return totals.view(*weights.shape[:2], *derivatives.shape[1:])


def _gather(asked: Asked) -> tuple[Array, list[slice]]:
    """Return all points as one list, problems and α, (2, points), and where each problem's points lie in it."""
    edges = itertools.accumulate((len(points) for _, points in asked), initial=0)
    spans = [slice(a, b) for a, b in itertools.pairwise(edges)]
    given = np.empty((2, spans[-1].stop))
    for span, (row, points) in zip(spans, asked, strict=True):
        given[0, span], given[1, span] = row, points
    return given, spans


def _ask(problems: Problems, asked: Asked, tangents: int, name: str, work: Work, *, capture: bool) -> Answers:
    given, spans = _gather(asked)
    steps, chunks = progress.Steps(given.shape[1]), []

    def run(problems: Problems, part: slice) -> Pending:
        return problems.run(name, work, given[:, part], capture=capture)

    for part, pending in problems.in_chunks(given.shape[1], tangents, run):
        chunks.append((part, pending))
        steps.advance(part.stop - part.start)
    return Answers(chunks, spans)


def _value(problems: Problems, rows: Rows, alphas: Tensor, _: Tensor) -> Embeddings:
    with differentiable(attention=False):
        return problems.function(problems.points(rows, alphas), rows)


def _slope(problems: Problems, rows: Rows, alphas: Tensor, _: Tensor) -> Embeddings:
    with differentiable():
        points = problems.points(rows, alphas)
        return jvp(lambda h: problems.function(h, rows), (points,), (problems.directions(rows),))[1]


def _slope_by_duals(problems: Problems, rows: Rows, alphas: Tensor, _: Tensor) -> Embeddings:
    return forward(problems, rows, alphas, 1)[:, 0]


def forward(problems: Problems, rows: Rows, alphas: Array | Tensor, groups: int) -> Derivatives:
    """Return directional derivatives at points of the paths, from one tangent per group."""
    with differentiable():
        points, direction = problems.points(rows, alphas), problems.directions(rows)
    size = problems.tangents_at_once(len(rows))
    if problems.token_groups is not None:
        return _forward_by_duals(problems, points, direction, rows, size)
    labels = problems.labels.to(rows.device)[rows]

    def push(group: Tensor) -> Tensor:
        tangent = torch.where(labels == group, direction, 0)
        return jvp(lambda h: problems.function(h, rows), (points,), (tangent,))[1]

    return _mapped(push, torch.arange(groups, device=points.device), size, axis=1)


def _forward_by_duals(problems: Problems, points: Tensor, direction: Tensor, rows: Rows, size: int) -> Derivatives:
    """Return directional derivatives by dual numbers, `size` groups at a time."""
    assert isinstance(problems.function, Tail)
    assert problems.token_groups is not None
    groups = problems.token_groups.of_rows(rows)
    parts, steps = [], progress.Steps(len(groups))
    for start in range(0, len(groups), size):
        part = slice(start, min(start + size, len(groups)))
        with differentiable():
            some = groups if size >= len(groups) else groups.part(part)
            parts.append(problems.function.derivatives(points, direction, rows, some))
        steps.advance(part.stop - part.start)
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def reverse(problems: Problems, rows: Rows, alphas: Array | Tensor, groups: int) -> Derivatives:
    """Return directional derivatives at points of the paths, from one cotangent per output dimension."""
    with differentiable():
        points, direction = problems.points(rows, alphas), problems.directions(rows)
        with torch.enable_grad():
            output, pull = vjp(lambda h: problems.function(h, rows), points)[:2]
    labels = problems.labels.to(rows.device)[rows]
    # Axes along which all elements share a label are summed before the groups are.
    shared = tuple(d for d in range(1, direction.ndim) if labels.shape[d] == 1 and direction.shape[d] > 1)
    nodes, dim = output.shape
    index = labels.expand([direction.shape[d] if d not in shared else 1 for d in range(direction.ndim)]).flatten(1)
    grouped = index >= 0

    def push(cotangent: Tensor) -> Tensor:
        moved = pull(cotangent)[0] * direction
        moved = moved.sum(shared, keepdim=True) if shared else moved
        share = torch.where(grouped, moved.flatten(1), 0)
        return torch.zeros(nodes, groups, dtype=share.dtype, device=share.device).scatter_add(
            1, index.clamp(min=0), share
        )

    basis = torch.eye(dim, dtype=points.dtype, device=points.device)[:, None].expand(dim, nodes, dim)
    return _mapped(push, basis, problems.tangents_at_once(len(rows)), axis=2)


def _mapped(push: Callable[[Tensor], Tensor], items: Tensor, size: int, axis: int) -> Tensor:
    """Return `push` of all items, `size` at a time, side by side along an axis of the result."""
    parts, steps = [], progress.Steps(len(items))
    for part in items.split(size):
        # The lock inside `differentiable` is released before progress is reported: a progress callback may be slow.
        with differentiable():
            parts.append(vmap(push, out_dims=axis)(part))
        steps.advance(len(part))
    return torch.cat(parts, dim=axis)
