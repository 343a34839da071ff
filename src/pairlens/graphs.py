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

KEPT = 64
"""Graphs that are kept; the one not used for longest goes first."""
SMALL = 2**16
"""Tokens, those of all tangents counted, up to which a device waits for launches rather than for its products."""
Function = Callable[..., tuple[Tensor, ...]]


class Graphs:
    """The captured computations of one encoder.

    Args:
        device: the CUDA device they run on.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        # Seen once: None. What cannot be captured: False.
        self._kept: OrderedDict[Hashable, _Captured | bool | None] = OrderedDict()
        self._pool: Any = None
        self.enabled = True

    def take(self, tokens: int) -> bool:
        """Whether work on so many tokens, those of all tangents counted, had better be captured."""
        return self.enabled and tokens <= SMALL

    def run(self, name: Hashable, function: Function, inputs: Sequence[Tensor]) -> tuple[Tensor, ...]:
        """`function(*inputs)`, by way of a graph from the second time on.

        Args:
            name: with the inputs' shapes, says what is computed: all else that the function depends on.
            function: from tensors on the device to tensors, always the same operations for the same shapes.
            inputs: its arguments, on the device or on the host.
        """
        key = (name, tuple((x.shape, x.dtype) for x in inputs))
        known, graph = key in self._kept, self._kept.get(key)
        if graph is None and known and self.enabled:
            graph = self._capture(function, [x.to(self._device) for x in inputs])
        self._kept[key] = graph
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        if isinstance(graph, _Captured) and self.enabled:
            return graph(*inputs)
        return function(*[x.to(self._device) for x in inputs])

    def _capture(self, function: Function, inputs: Sequence[Tensor]) -> _Captured | bool:
        expected = function(*inputs)
        if self._pool is None:
            self._pool = torch.cuda.graph_pool_handle()
        try:
            graph = _Captured(function, inputs, self._pool)
            found = graph(*inputs)
        except RuntimeError:
            # A model that asks the device for a number on its way, say to see whether a mask is needed.
            torch.cuda.synchronize()
            return False
        close = all((a - b).norm() <= 1e-3 * b.norm() for a, b in zip(found, expected, strict=True))
        return graph if close else False


class _Captured:
    """One graph with its own inputs and outputs."""

    def __init__(self, function: Function, inputs: Sequence[Tensor], pool: Any) -> None:
        self.inputs = [x.clone() for x in inputs]
        self.given: Sequence[Tensor | None] = [None] * len(inputs)
        self.outputs, self.replay = self._capture(function, pool)

    def _capture(self, function: Function, pool: Any) -> tuple[tuple[Tensor, ...], Callable[[], None]]:
        """What the function makes of the graph's own inputs, and how to have it made again in the same place."""
        side = torch.cuda.Stream()
        side.wait_stream(torch.cuda.current_stream())
        with torch.cuda.stream(side):
            function(*self.inputs)
        torch.cuda.current_stream().wait_stream(side)
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(graph, pool=pool, capture_error_mode="thread_local"):
            outputs = function(*self.inputs)
        return outputs, graph.replay

    def __call__(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        # What was there the last time is there still. The rest: what is alike and on the device in one launch.
        moves: dict[Any, tuple[list[Tensor], list[Tensor]]] = {}
        for own, given, before in zip(self.inputs, inputs, self.given, strict=True):
            if given is not before:
                into, of = moves.setdefault((given.dtype, given.device), ([], []))
                into.append(own)
                of.append(given)
        self.given = inputs
        for into, of in moves.values():
            # From the host too without waiting: what is on the device's list before may take long.
            torch._foreach_copy_(into, of, non_blocking=True)  # pyright: ignore[reportPrivateImportUsage]
        self.replay()
        # Other graphs write into the same memory.
        return tuple(x.clone() for x in self.outputs)


def padded(count: int, least: int = 1) -> int:
    """A number of points at least as large, of which there are few, so that few shapes are seen."""
    step = max(1, 2 ** max(0, (count - 1).bit_length() - 2))
    return max(least, -(-count // step) * step)
