"""Computations on a CUDA device, captured once for every shape and replayed as one launch.

A tail of a small model is a few hundred kernels of a few microseconds each: launched one by one from Python they keep
the device waiting. The first time a shape is seen it runs as it is, the second time it is captured and compared with
that, and from then on it is replayed. What cannot be captured runs as it is for good.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor

KEPT = 256
"""Graphs that are kept; the one not used for longest goes first."""
Function = Callable[..., tuple[Tensor, ...]]


class Graphs:
    """The captured computations of one encoder."""

    def __init__(self) -> None:
        self._kept: OrderedDict[Hashable, _Graph | None] = OrderedDict()
        self._pool: Any = None
        self.enabled = True

    def run(
        self, name: Hashable, function: Function, inputs: Sequence[Tensor], size: int | None = None
    ) -> tuple[Tensor, ...]:
        """`function(*inputs)`, by way of a graph where the inputs are on a CUDA device.

        Args:
            name: with the inputs' shapes, says what is computed: all else that the function depends on.
            function: from tensors to tensors, always the same operations for the same shapes.
            inputs: its arguments.
            size: how many rows the graph is to have, each by itself; the inputs may have fewer. None: as many as they.
        """
        if not self.enabled or not inputs[0].is_cuda:
            return function(*inputs)
        size = size or len(inputs[0])
        key = (name, size, tuple((tuple(x.shape[1:]), x.dtype) for x in inputs))
        seen = key in self._kept
        graph = self._kept.setdefault(key, None)
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        if not seen:
            return function(*inputs)
        if graph is None:
            graph = self._kept[key] = self._capture(function, inputs, size)
        return graph(*inputs)

    def _capture(self, function: Function, inputs: Sequence[Tensor], size: int) -> _Graph:
        expected = function(*inputs)
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        try:
            graph = _Captured(function, inputs, size, self._pool)
            found = graph(*inputs)
        except RuntimeError:
            # A model that asks the device for a number on its way, say to see whether a mask is needed.
            torch.cuda.synchronize()
            return function
        close = all(torch.allclose(a, b, rtol=1e-3, atol=1e-5) for a, b in zip(found, expected, strict=True))
        return graph if close else function


class _Captured:
    """One graph with its own inputs and outputs."""

    def __init__(self, function: Function, inputs: Sequence[Tensor], size: int, pool: Any) -> None:
        # The last row again and again; later what an earlier run has left there.
        index = torch.arange(size, device=inputs[0].device).clamp(max=len(inputs[0]) - 1)
        self.inputs = [x[index] if size > len(x) else x.clone() for x in inputs]
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            function(*self.inputs)
        torch.cuda.current_stream().wait_stream(side)
        self.graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(self.graph, pool=pool, capture_error_mode="thread_local"):
            self.outputs = function(*self.inputs)

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        count, size = len(inputs[0]), len(self.inputs[0])
        for own, given in zip(self.inputs, inputs, strict=True):
            own[:count].copy_(given)
        self.graph.replay()
        # Other graphs write into the same memory.
        return tuple(x[: count * len(x) // size].clone() for x in self.outputs)


_Graph = Callable[..., tuple[Tensor, ...]]


def padded(count: int) -> int:
    """A number of points at least as large, of which there are few, so that few shapes are seen."""
    step = max(1, 2 ** max(0, (count - 1).bit_length() - 2))
    return -(-count // step) * step
