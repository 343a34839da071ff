"""Numbers on their way from a device: asked for now, waited for when they are needed, something else done meanwhile."""

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
"""Work that stops where it would wait for a device, and ends with its result."""


class Pending:
    """Tensors that are on their way to the host.

    Args:
        tensors: the tensors.
        arriving: where they are going to be on the host, and the event after which they are there, if somebody else has
            sent them; by default they are sent now.
    """

    def __init__(self, *tensors: Tensor, arriving: tuple[Sequence[Array], Event | None] | None = None) -> None:
        self._arrays: list[Array] | None = None
        if arriving is not None:
            self._found, self._arrived = arriving
            return
        cuda = tensors[0].is_cuda
        self._found = [_sent(tensor.detach()).numpy() for tensor in tensors]
        self._arrived = Event() if cuda else None
        if self._arrived is not None:
            self._arrived.record()

    def arrays(self) -> list[Array]:
        """The numbers, once they have arrived; those with a fraction in float64."""
        if self._arrays is None:
            if self._arrived is not None:
                self._arrived.synchronize()
            # A copy: where they arrived, others may arrive.
            self._arrays = [own.astype(np.float64) if own.dtype.kind == "f" else own.copy() for own in self._found]
            self._found = ()
        return self._arrays


def _sent(tensor: Tensor) -> Tensor:
    """A tensor on its way to the host, as float64 where it has a fraction, which not every device has."""
    exact = tensor.is_floating_point()
    if tensor.is_cuda:
        return (tensor.double() if exact else tensor).to("cpu", non_blocking=True)
    return tensor.cpu().double() if exact else tensor.cpu()


class Lanes:
    """Streams of a CUDA device, so that several works do not stand in one another's way.

    Args:
        device: the device.
    """

    def __init__(self, device: torch.device) -> None:
        self._device = device
        self._streams: list[Stream] = []
        self._begun = Event()

    def take(self, count: int) -> list[_Lane]:
        """Contexts for so many works; what has been asked of the device before comes before them."""
        while len(self._streams) < count:
            self._streams.append(Stream(self._device))
        before, here = torch.cuda.current_stream(), torch.cuda.current_stream(self._device)
        self._begun.record(here)
        for stream in self._streams[:count]:
            stream.wait_event(self._begun)
        return [_Lane(stream, here, before) for stream in self._streams[:count]]


class _Lane:
    """As `torch.cuda.stream`, with what that looks up each time known: it is entered twice a text or more.

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
    """The results of several works, each going on while the others wait.

    Args:
        works: the works.
        places: contexts to work in, one a work; none by default.

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
    found: dict[int, T] = {}
    left = dict(enumerate(works))
    try:
        while left:
            for index, work in list(left.items()):
                try:
                    with places[index] if places else contextlib.nullcontext():
                        next(work)
                except StopIteration as end:
                    found[index] = end.value
                    del left[index]
    finally:
        for work in left.values():
            work.close()
    return [found[index] for index in sorted(found)]


def finish(work: Steps[T]) -> T:
    """The result of one work."""
    return together([work])[0]
