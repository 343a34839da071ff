"""Straight paths of many problems at once, their chunks, and how work on points of the paths is run.

Nothing here waits for a device: `Answers` and `Pending` return the numbers once they have arrived. Where the function
is the tail of an encoder on a CUDA device, the work, from points to weighted sums, is one CUDA graph.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
import torch
from torch import Tensor

from pairlens.autodiff import Groups, Pending, Tail
from pairlens.shapes import Array, Embeddings, Points, Rows

Function = Callable[[Points, Rows], Embeddings]
"""e: from points (nodes, *shape), and for every point the problem it belongs to, to embeddings (nodes, dim)."""

LEAST = 16
"""Points without tangents that a CUDA graph has at least, so that most requests for values share one graph."""
LIGHT = 2**12
"""Tokens up to which a pass without tangents takes as long as its launches."""
BUDGET = 384 * 2**20
"""Default for the bytes that the intermediate results of one chunk may take."""


@dataclass(frozen=True)
class Problems:
    """Integrals over paths of one shape that are solved together.

    Attributes:
        function: e.
        x: ends of the paths, (problems, *shape).
        r: starts of the paths, (problems, *shape).
        labels: the group of every element, (problems, *shape) or 1 in any dimension; -1: in no group.
        groups: how many groups each problem has.
        cost: bytes that one tangent at one point keeps alive.
        budget: bytes that the intermediate results of one chunk may take.
        token_groups: the groups in the form that dual numbers take, where e is a `Tail` and labels have one number per
            token. None: derivatives are taken by PyTorch's forward or reverse mode.
        limit: relative rounding error of e's derivatives, where they are less exact than e.
    """

    function: Function
    x: Tensor
    r: Tensor
    labels: Tensor
    groups: tuple[int, ...]
    cost: int
    budget: int = BUDGET
    token_groups: Groups | None = None
    limit: float = 0.0

    @property
    def noise(self) -> float:
        """Relative rounding error to expect of e."""
        return 4 * torch.finfo(self.x.dtype).eps

    def points(self, rows: Rows, alphas: Array | Tensor) -> Points:
        """Return the points h(α) of the given problems, (nodes, *shape)."""
        alpha = torch.as_tensor(alphas, dtype=self.x.dtype, device=self.x.device)
        alpha = alpha.view(-1, *[1] * (self.x.ndim - 1))
        return torch.lerp(self.r[rows], self.x[rows], alpha)

    def directions(self, rows: Rows) -> Points:
        """Return x - r of the given problems, (nodes, *shape)."""
        return self.x[rows] - self.r[rows]

    def tangents_at_once(self, points: int) -> int:
        """Return how many tangents fit into the budget at this many points, at least one."""
        return max(1, self.budget // (self.cost * points) - 1)

    def in_chunks(
        self, count: int, tangents: int, work: Callable[[Problems, slice], Pending]
    ) -> Iterator[tuple[slice, Pending]]:
        """Do work on slices of `count` points, each within the budget with its tangents.

        Where there is less memory than the budget says, the budget is halved and the slice is tried again.
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
        """Return whether this many values per problem take a device hardly longer than one value."""
        tail = self.function
        captured = isinstance(tail, Tail) and tail.graphs is not None and tail.graphs.enabled
        return captured and len(self.x) * points * self.x.shape[1] <= LIGHT

    def run(self, name: str, work: Work, asked: Array, *, capture: bool) -> Pending:
        """Start `work` at points of the paths, as a CUDA graph if possible; it may then run at more points.

        Args:
            name: tells this work from other work.
            work: from the problems, the points' rows and α, and factors, to a tensor.
            asked: for every point its problem, its α and its factors, (2 + factors, points).
            capture: whether the work can be captured. Work that PyTorch differentiates cannot.
        """
        tail = self.function
        tangents = 0 if self.token_groups is None else len(self.token_groups)
        size = asked.shape[1] * (tangents + 1) * (self.x.shape[1] if self.x.ndim > 1 else 1)
        if not capture or not isinstance(tail, Tail) or tail.graphs is None or not tail.graphs.take(size):
            # Apple's devices have no float64.
            dtype = torch.float32 if self.x.device.type == "mps" else torch.float64
            given = torch.as_tensor(asked, dtype=dtype).to(self.x.device)
            return Pending(work(self, given[0].long(), given[1], given[2:]))
        group_tensors = () if self.token_groups is None else self.token_groups.tensors

        def whole(given: Tensor, x: Tensor, r: Tensor, *rest: Tensor) -> tuple[Tensor]:
            groups = Groups(*rest[: len(group_tensors)]) if group_tensors else None
            problems = replace(self, function=tail.on(rest[len(group_tensors) :]), x=x, r=r, token_groups=groups)
            return (work(problems, given[0].long(), given[1], given[2:]),)

        padded = tail.graphs.pad(asked, 1 if tangents else LEAST)
        inputs = [torch.from_numpy(padded), self.x, self.r, *group_tensors, *tail.tensors.values()]
        return tail.graphs.run((name, tail.name), whole, inputs, wanted=1)[1]


Work = Callable[[Problems, Tensor, Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Answers:
    """Values at points of many problems, on their way from the device.

    Attributes:
        chunks: slices of the list of all points, with their values.
        spans: for every problem, where its points lie in the list.
    """

    chunks: Sequence[tuple[slice, Pending]]
    spans: Sequence[slice]

    def arrays(self) -> list[Array]:
        """Return one (points, dim) array per problem, waiting until they have arrived."""
        every = np.concatenate([pending.arrays()[0][: part.stop - part.start] for part, pending in self.chunks])
        return [every[span] for span in self.spans]
