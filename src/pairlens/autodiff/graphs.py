"""CUDA graphs: a computation seen twice is captured and replayed as one launch.

The tail of a small model is a few hundred kernels of a few microseconds each, and launching them one by one from Python
keeps the device waiting. A shape runs plainly the first time. The second time it is captured, and the graph's results
are compared with plain ones; from then on the graph is replayed. A computation that cannot be captured always runs
plainly.
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
"""Graphs that are kept; the least recently used one is dropped first."""
SMALL = 2**16
"""Tokens, counted once per tangent, up to which launches take longer than products."""
Function = Callable[..., tuple[Tensor, ...]]


class Graphs:
    """The captured computations of one encoder.

    Args:
        device: the CUDA device they run on.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = torch.empty(0, device=device).device  # With its index: "cuda" alone is the current device.
        # None: seen once. False: cannot be captured.
        self._kept: OrderedDict[Hashable, _Captured | bool | None] = OrderedDict()
        self._pools: dict[int, Any] = {}
        self.enabled = True

    def take(self, tokens: int) -> bool:
        """Return whether capturing pays for this many tokens, counted once per tangent."""
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
        """Return the results of `function(*inputs)`, by a graph from the second time on; the last of them for the host.

        Args:
            name: identifies, with the shapes of the inputs, everything that the function depends on.
            function: from tensors on the device to tensors, always the same operations for the same shapes.
            inputs: its arguments, on the device or on the host.
            wanted: how many of its last results go to the host, at least one; the others stay on the device.
        """
        with torch.cuda.device(self._device) if self._device.type == "cuda" else contextlib.nullcontext():
            return self._run(name, function, inputs, wanted)

    def _run(
        self, name: Hashable, function: Function, inputs: Sequence[Tensor], wanted: int
    ) -> tuple[tuple[Tensor, ...], Pending]:
        # Graphs of one stream run one after the other and share their memory; those of two streams may run together.
        lane = _lane(self._device)
        key = (name, lane, tuple([x.shape for x in inputs]))
        seen, graph = key in self._kept, self._kept.get(key)
        if graph is None and seen and self.enabled:
            graph = self._capture(function, inputs, wanted, lane)
        self._kept[key] = graph
        self._kept.move_to_end(key)
        while len(self._kept) > KEPT:
            self._kept.popitem(last=False)
        if isinstance(graph, _Captured) and self.enabled:
            return graph(inputs)
        results = function(*[x.to(self._device) for x in inputs])
        return results[:-wanted], Pending(*results[-wanted:])

    def _capture(self, function: Function, inputs: Sequence[Tensor], wanted: int, lane: int) -> _Captured | bool:
        on_device = [x.to(self._device) for x in inputs]
        expected = function(*on_device)
        try:
            if lane not in self._pools:
                self._pools[lane] = torch.cuda.graph_pool_handle()
            graph = _Captured(function, inputs, on_device, expected[-wanted:], self._pools[lane])
            graph(inputs)
        except RuntimeError:
            # The model reads a number from the device, for example to see whether it needs a mask.
            torch.cuda.synchronize()
            return False
        pairs = zip(graph.outputs, expected, strict=True)
        close = all((a.double() - b.double()).norm() <= 1e-3 * b.double().norm() for a, b in pairs)
        return graph if close else False


class _Captured:
    """One graph with its inputs, its outputs and its memory on the host.

    Copies from and to the host are part of the graph, so one launch does everything.
    """

    def __init__(
        self,
        function: Function,
        inputs: Sequence[Tensor],
        on_device: Sequence[Tensor],
        results: Sequence[Tensor],
        pool: Any,
    ) -> None:
        self.inputs = [x.clone() for x in on_device]
        self.given: Sequence[Tensor | None] = [None] * len(inputs)
        self.staged = [None if x.is_cuda else _on_host(x) for x in inputs]
        self.fetched = [_on_host(result) for result in results]
        self.sending = [None if host is None else host.numpy() for host in self.staged]
        self.arriving = [host.numpy() for host in self.fetched]
        self.last: Pending | None = None

        def whole() -> tuple[Tensor, ...]:
            for tensor, host in zip(self.inputs, self.staged, strict=True):
                if host is not None:
                    tensor.copy_(host, non_blocking=True)
            outputs = function(*self.inputs)
            for host, tensor in zip(self.fetched, outputs[-len(self.fetched) :], strict=True):
                host.copy_(tensor, non_blocking=True)
            return outputs

        self.outputs, self.replay, self.arrived = self._capture(whole, pool)

    def _capture(
        self, whole: Callable[[], tuple[Tensor, ...]], pool: Any
    ) -> tuple[tuple[Tensor, ...], Callable[[], None], torch.cuda.Event | None]:
        """Capture `whole`; return its outputs, a function that replays it, and the event recorded after a replay."""
        # Captured on the stream that replays it: matrix products have a workspace per stream, and two graphs that run
        # at the same time must not share one. The default stream cannot be captured.
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
            self.last.arrays()  # The replay overwrites the memory of the last results.
        # An input that is the same object as last time is in place. The others are copied, one launch per dtype.
        moves: dict[torch.dtype, tuple[list[Tensor], list[Tensor]]] = {}
        for tensor, host, given, before in zip(self.inputs, self.sending, inputs, self.given, strict=True):
            if given is before:
                continue
            if host is not None:
                host[...] = given.numpy()
            else:
                targets, sources = moves.setdefault(given.dtype, ([], []))
                targets.append(tensor)
                sources.append(given)
        self.given = inputs
        for targets, sources in moves.values():
            torch._foreach_copy_(targets, sources)  # pyright: ignore[reportPrivateImportUsage]
        self.replay()
        self.last = Pending(arriving=(self.arriving, self.arrived))
        # Other graphs use the same memory.
        return tuple(x.clone() for x in self.outputs[: -len(self.arriving)]), self.last


def _lane(device: torch.device) -> int:
    """Return the address of a device's current stream; `torch.cuda.current_stream` takes longer than a small launch."""
    return torch._C._cuda_getCurrentRawStream(device.index) if device.type == "cuda" else 0


def _on_host(tensor: Tensor) -> Tensor:
    """Return a copy on the host, pinned where there is a CUDA device."""
    host = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=torch.cuda.is_available())
    return host.copy_(tensor)


def _padded_count(count: int, least: int) -> int:
    """Return a number of points that is at least as large, one of few, so that few shapes are seen."""
    step = max(1, 2 ** max(0, (count - 1).bit_length() - 2))
    return max(least, -(-count // step) * step)
