"""What was computed once and holds for as long as a module's weights stay what they are."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

MOST = 1024
"""Entries that are kept: as many lengths of texts as there usually are."""
BYTES = 2**26
"""What they may take together: a few megabytes for embeddings, more for long texts' states."""


class Memory:
    """Tensors by key; all of them are forgotten when the weights of the module change, in whatever way.

    Example:
        >>> module = nn.Linear(1, 1)
        >>> memory = Memory()
        >>> memory.check(module)
        >>> bool(memory.look_up("key", lambda: {"key": torch.zeros(1)}) == memory.look_up("key", lambda: 1 / 0))
        True
        >>> module.weight.data += 1
        >>> memory.check(module)
        >>> memory.look_up("key", lambda: {"key": torch.ones(1)})
        tensor([1.])
    """

    def __init__(self) -> None:
        self.forget()

    def __getstate__(self) -> dict[str, Any]:
        """A copy or a pickle begins with nothing: what it computes depends on where it is."""
        return vars(Memory())

    def __len__(self) -> int:
        return len(self._found)

    def forget(self) -> None:
        """Begin anew."""
        self._marks: list[Any] = []
        self._samples: list[list[Tensor]] = []
        self._numbers: list[list[float]] = []
        self._found: dict[Hashable, Tensor] = {}

    def release(self, module: nn.Module) -> None:
        """Forget everything if the module's weights lie elsewhere now, so that nothing holds their old place."""
        if self._marks and _marks(_tensors(module)) != self._marks:
            self.forget()

    def check(self, module: nn.Module) -> None:
        """Forget everything if the module's weights are not what they were.

        Optimizers, `load_state_dict` and `copy_` raise a tensor's version; `.to` and `.half` give it other memory. What
        writes through `.data` does neither, so that one number of every tensor is looked at too.
        """
        tensors = _tensors(module)
        marks = _marks(tensors)
        if marks != self._marks:
            # Views of the weights, made once: on a GPU, a hundred of them take as long as a small model does.
            self._marks, self._samples = marks, _last_numbers(tensors)
        numbers = [torch.cat(own).tolist() for own in self._samples]
        if marks is self._marks or numbers != self._numbers:
            # A new dictionary: another thread may still be reading the old one.
            self._numbers, self._found = numbers, {}

    def look_up(self, key: Hashable, compute: Callable[[], Mapping[Any, Tensor]]) -> Tensor:
        """What is known by this key, else what `compute` gives for it, perhaps among others.

        For as long as nobody can have changed the weights since `check`.
        """
        found = self._found
        value = found.get(key)
        if value is None:
            computed = compute()
            value = computed[key]
            found.update(computed)
            size = sum(own.nbytes for own in found.values())
            while len(found) > MOST or (size > BYTES and found):
                gone = found.pop(next(iter(found)), None)
                size -= 0 if gone is None else gone.nbytes
        return value


def _tensors(module: nn.Module) -> list[Tensor]:
    """Weights and buffers: what `parameters()` and `buffers()` give, five times as fast: every batch asks for them."""
    found: list[Tensor | None] = []
    left: list[nn.Module | None] = [module]
    while left:
        if (own := left.pop()) is not None:
            found += own._parameters.values()
            found += own._buffers.values()
            left += own._modules.values()
    return [tensor for tensor in found if tensor is not None]


def _marks(tensors: Iterable[Tensor]) -> list[Any]:
    """Where tensors lie, and how often they were written to."""
    return [(own.data_ptr(), -1 if own.is_inference() else own._version, own.dtype, own.device) for own in tensors]


def _last_numbers(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """The last number of every tensor, as views of it, those that can be put together in one list."""
    views: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        if tensor.numel() and not tensor.is_meta:
            last = tensor.detach()[(-1,) * tensor.ndim][None]
            views.setdefault((tensor.device, tensor.dtype), []).append(last)
    return list(views.values())
