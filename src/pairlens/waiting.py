"""Numbers on their way from a device: asked for now, waited for when they are needed, something else done meanwhile."""

from __future__ import annotations

from collections.abc import Generator, Iterable
from typing import TypeVar

import torch
from torch import Tensor

from pairlens.shapes import Array

T = TypeVar("T")
Steps = Generator[None, None, T]
"""Work that stops where it would wait for a device, and ends with its result."""


class Pending:
    """Tensors that are on their way to the host."""

    def __init__(self, *tensors: Tensor) -> None:
        cuda = tensors[0].is_cuda
        self._found = [tensor.detach().to("cpu", non_blocking=cuda) for tensor in tensors]
        self._arrived = torch.cuda.Event() if cuda else None
        if self._arrived is not None:
            self._arrived.record()

    def arrays(self) -> list[Array]:
        """The numbers, once they have arrived; those with a fraction in float64."""
        if self._arrived is not None:
            self._arrived.synchronize()
        return [(own.double() if own.is_floating_point() else own).numpy() for own in self._found]


def together(works: Iterable[Steps[T]]) -> list[T]:
    """The results of several works, each going on while the others wait.

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
