"""Computations on a CUDA device, captured once for every shape and replayed as one launch.

A tail of a small model is a few hundred kernels of a few microseconds each: launched one by one from Python they keep
the device waiting. The first time a shape is seen it runs as it is, the second time it is captured and compared with
that, and from then on it is replayed. What cannot be captured runs as it is for good.
"""

from __future__ import annotations

import contextlib
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pairlens.autodiff.streams import Pending
from pairlens.shapes import Array

KEPT = 256
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
        self._device = torch.empty(0, device=device).device  # by its number: "cuda" is the current one
        # Seen once: None. What cannot be captured: False.
        self._kept: OrderedDict[Hashable, _Captured | bool | None] = OrderedDict()
        self._pools: dict[int, Any] = {}
        self.enabled = True

    def take(self, tokens: int) -> bool:
        """Whether work on so many tokens, those of all tangents counted, had better be captured."""
        return self.enabled and tokens <= SMALL

    def pad(self, asked: Array, least: int) -> Array:
        """Return points with their factors, (2 + factors, points), padded to one of few sizes.

        The padding repeats the last point with factors of zero.
        """
        count = asked.shape[1]
        padded = np.empty((len(asked), _padded_count(count, least)))
        padded[:, :count], padded[:2, count:], padded[2:, count:] = asked, asked[:2, -1:], 0.0
        return padded

    def run(
        self, name: Hashable, function: Function, inputs: Sequence[Tensor], wanted: int
    ) -> tuple[tuple[Tensor, ...], Pending]:
        """`function(*inputs)`, by way of a graph from the second time on; the last of its results for the host.

        Args:
            name: with the inputs' shapes, says what is computed: all else that the function depends on.
            function: from tensors on the device to tensors, always the same operations for the same shapes.
            inputs: its arguments, on the device or on the host.
            wanted: how many of its results go to the host, at least one; the others stay on the device.
        """
        with torch.cuda.device(self._device) if self._device.type == "cuda" else contextlib.nullcontext():
            return self._run(name, function, inputs, wanted)

    def _run(
        self, name: Hashable, function: Function, inputs: Sequence[Tensor], wanted: int
    ) -> tuple[tuple[Tensor, ...], Pending]:
        # Graphs of one stream are played one after the other and share their memory; those of two may meet.
        lane = _lane(self._device)
        key = (name, lane, tuple([x.shape for x in inputs]))
        known, graph = key in self._kept, self._kept.get(key)
        if graph is None and known and self.enabled:
            graph = self._capture(function, inputs, wanted, lane)
        self._kept[key] = graph
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        if isinstance(graph, _Captured) and self.enabled:
            return graph(inputs)
        found = function(*[x.to(self._device) for x in inputs])
        return found[:-wanted], Pending(*found[-wanted:])

    def _capture(self, function: Function, inputs: Sequence[Tensor], wanted: int, lane: int) -> _Captured | bool:
        here = [x.to(self._device) for x in inputs]
        expected = function(*here)
        try:
            if lane not in self._pools:
                self._pools[lane] = torch.cuda.graph_pool_handle()
            graph = _Captured(function, inputs, here, expected[-wanted:], self._pools[lane])
            graph(inputs)
        except RuntimeError:
            # A model that asks the device for a number on its way, say to see whether a mask is needed.
            torch.cuda.synchronize()
            return False
        pairs = zip(graph.outputs, expected, strict=True)
        close = all((a.double() - b.double()).norm() <= 1e-3 * b.double().norm() for a, b in pairs)
        return graph if close else False


class _Captured:
    """One graph with its own inputs and outputs, and its own places on the host.

    Copies from the host and to it are part of the graph: question and answer are one launch.
    """

    def __init__(
        self,
        function: Function,
        inputs: Sequence[Tensor],
        here: Sequence[Tensor],
        results: Sequence[Tensor],
        pool: Any,
    ) -> None:
        self.inputs = [x.clone() for x in here]
        self.given: Sequence[Tensor | None] = [None] * len(inputs)
        self.staged = [None if x.is_cuda else _on_host(x) for x in inputs]
        self.fetched = [_on_host(own) for own in results]
        self.sending = [None if host is None else host.numpy() for host in self.staged]
        self.arriving = [host.numpy() for host in self.fetched]
        self.last: Pending | None = None

        def whole() -> tuple[Tensor, ...]:
            for own, host in zip(self.inputs, self.staged, strict=True):
                if host is not None:
                    own.copy_(host, non_blocking=True)
            found = function(*self.inputs)
            for host, own in zip(self.fetched, found[-len(self.fetched) :], strict=True):
                host.copy_(own, non_blocking=True)
            return found

        self.outputs, self.replay, self.arrived = self._capture(whole, pool)

    def _capture(
        self, whole: Callable[[], tuple[Tensor, ...]], pool: Any
    ) -> tuple[tuple[Tensor, ...], Callable[[], None], torch.cuda.Event | None]:
        """What comes of the graph's own inputs, how to have it made again in the same place, and what says it is."""
        # On the stream it will be played on: matrix products have a workspace for every stream, and two graphs that are
        # played at a time must not have one. The default stream cannot be captured.
        stream = torch.cuda.current_stream()
        graph = torch.cuda.CUDAGraph()
        with torch.cuda.graph(
            graph,
            pool=pool,
            stream=None if stream == torch.cuda.default_stream() else stream,
            capture_error_mode="thread_local",
        ):
            outputs = whole()
        arrived = torch.cuda.Event()

        def replay() -> None:
            graph.replay()
            arrived.record(stream)

        return outputs, replay, arrived

    def __call__(self, inputs: Sequence[Tensor]) -> tuple[tuple[Tensor, ...], Pending]:
        if self.last is not None:
            self.last.arrays()  # before its place is written to again
        # What was there the last time is there still. The rest: what is alike in one launch.
        moves: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
        for own, host, given, before in zip(self.inputs, self.sending, inputs, self.given, strict=True):
            if given is before:
                continue
            if host is not None:
                host[...] = given.numpy()
            else:
                into, of = moves.setdefault(given.dtype, ([], []))
                into.append(own)
                of.append(given)
        self.given = inputs
        for into, of in moves.values():
            torch._foreach_copy_(into, of)  # pyright: ignore[reportPrivateImportUsage]
        self.replay()
        self.last = Pending(arriving=(self.arriving, self.arrived))
        # Other graphs write into the same memory.
        return tuple(x.clone() for x in self.outputs[: -len(self.arriving)]), self.last


def _lane(device: torch.device) -> int:
    """The number of a device's current stream; `torch.cuda.current_stream` takes longer than a small launch."""
    return torch._C._cuda_getCurrentRawStream(device.index) if device.type == "cuda" else 0


def _on_host(tensor: Tensor) -> Tensor:
    """A copy that a device can read and write by itself."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=torch.cuda.is_available())
    return host.copy_(tensor)


def _padded_count(count: int, least: int) -> int:
    """Return a number of points that is at least as large, one of few, so that few shapes are seen."""
    step = max(1, 2 ** max(0, (count - 1).bit_length() - 2))
    return max(least, -(-count // step) * step)
