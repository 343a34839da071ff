"""Asynchronous transfers from a device, CUDA streams, and computations that yield where they would wait."""

from __future__ import annotations

import contextlib
from collections.abc import Generator, Iterable, Sequence
from contextlib import AbstractContextManager
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor
from torch.cuda import Event, Stream

from pairlens.shapes import Array

T = TypeVar("T")
Steps = Generator[None, None, T]
"""A computation that yields where it would wait for a device, and returns its result."""


class Pending:
    """Tensors that are being copied to the host.

    Args:
        tensors: the tensors; their copies start now.
        arriving: instead of tensors, the host arrays of copies that have been started, and the event that ends them.
    """

    def __init__(self, *tensors: Tensor, arriving: tuple[Sequence[Array], Event | None] | None = None) -> None:
        self._arrays: list[Array] | None = None
        if arriving is not None:
            self._copies, self._arrived = arriving
            return
        cuda = tensors[0].is_cuda
        self._copies = [_sent(tensor.detach()).numpy() for tensor in tensors]
        self._arrived = Event() if cuda else None
        if self._arrived is not None:
            self._arrived.record()

    def arrays(self) -> list[Array]:
        """Return the arrays, waiting until they have arrived; floating-point arrays are float64."""
        if self._arrays is None:
            if self._arrived is not None:
                self._arrived.synchronize()
            # A later transfer may overwrite the memory in which these arrived.
            self._arrays = [
                array.astype(np.float64) if array.dtype.kind == "f" else array.copy() for array in self._copies
            ]
            self._copies = ()
        return self._arrays


def _sent(tensor: Tensor) -> Tensor:
    """Start the copy of a tensor to the host; floating-point tensors become float64, on the host if need be."""
    exact = tensor.is_floating_point()
    if tensor.is_cuda:
        return (tensor.double() if exact else tensor).to("cpu", non_blocking=True)
    return tensor.cpu().double() if exact else tensor.cpu()


class Lanes:
    """Streams of a CUDA device, so that computations run beside each other.

    Args:
        device: the device.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._streams: list[Stream] = []
        self._begun = Event()

    def take(self, count: int) -> list[_Lane]:
        """Return contexts for `count` computations, which begin after everything that the device was given before."""
        while len(self._streams) < count:
            self._streams.append(Stream(self._device))
        before, here = torch.cuda.current_stream(), torch.cuda.current_stream(self._device)
        self._begun.record(here)
        for stream in self._streams[:count]:
            stream.wait_event(self._begun)
        return [_Lane(stream, here, before) for stream in self._streams[:count]]


class _Lane:
    """`torch.cuda.stream` with its lookups cached; entered at least twice per text.

    Args:
        stream: the stream to work on.
        here: the device's stream outside.
        before: the stream outside, perhaps another device's.
    """

    def __init__(self, stream: Stream, here: Stream, before: Stream) -> None:
        self._stream, self._here, self._before = stream, here, before

    def __enter__(self) -> None:
        torch.cuda.set_stream(self._stream)

    def __exit__(self, *_: object) -> None:
        torch.cuda.set_stream(self._here)
        torch.cuda.set_stream(self._before)


def together(works: Iterable[Steps[T]], places: Sequence[AbstractContextManager[object]] = ()) -> list[T]:
    """Run several computations in turns, each continuing while the others wait, and return their results.

    Args:
        works: the computations.
        places: one context per computation; none by default.

    Example:
        >>> def work(name):
        ...     for step in (1, 2):
        ...         print(name, step)
        ...         yield
        ...     return name
        >>> together([work("a"), work("b")])
        a 1
        b 1
        a 2
        b 2
        ['a', 'b']
    """
    results: dict[int, T] = {}
    left = dict(enumerate(works))
    try:
        while left:
            for index, work in list(left.items()):
                try:
                    with places[index] if places else contextlib.nullcontext():
                        next(work)
                except StopIteration as end:
                    results[index] = end.value
                    del left[index]
    finally:
        for work in left.values():
            work.close()
    return [results[index] for index in sorted(results)]


def finish(work: Steps[T]) -> T:
    """Run one computation and return its result."""
    return together([work])[0]
