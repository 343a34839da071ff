"""A cache of tensors that are valid as long as a module's weights do not change."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping
from typing import Any

import torch
from torch import Tensor, nn

MOST = 1024
"""Entries that are kept: about as many as there are lengths of texts."""
BYTES = 2**26
"""Bytes that the entries may take together: embeddings take a few megabytes, states of long texts more."""


class WeightCache:
    """Tensors by key; all of them are dropped when the weights of the module change.

    Example:
        >>> module = nn.Linear(1, 1)
        >>> cache = WeightCache()
        >>> cache.check(module)
        >>> bool(cache.look_up("key", lambda: {"key": torch.zeros(1)}) == cache.look_up("key", lambda: 1 / 0))
        True
        >>> module.weight.data += 1
        >>> cache.check(module)
        >>> cache.look_up("key", lambda: {"key": torch.ones(1)})
        tensor([1.])
    """

    def __init__(self) -> None:
        self.forget()

    def __getstate__(self) -> dict[str, Any]:
        """A copy or a pickle starts empty: its tensors may be on another device."""
        return vars(WeightCache())

    def __len__(self) -> int:
        return len(self._entries)

    def forget(self) -> None:
        """Drop all entries."""
        self._versions: list[Any] = []
        self._samples: list[list[Tensor]] = []
        self._numbers: list[list[float]] = []
        self._entries: dict[Hashable, Tensor] = {}

    def release(self, module: nn.Module) -> None:
        """Drop all entries if the module's weights are in other memory now, so that the old memory can be freed."""
        if self._versions and _versions(_tensors(module)) != self._versions:
            self.forget()

    def check(self, module: nn.Module) -> None:
        """Drop all entries if the module's weights have changed.

        Optimizers, `load_state_dict` and `copy_` raise a tensor's version; `.to` and `.half` give it other memory.
        Writing through `.data` does neither, so one number of every tensor is compared too.
        """
        tensors = _tensors(module)
        versions = _versions(tensors)
        if versions != self._versions:
            # Views of the weights, made once: on a GPU, making a hundred of them takes as long as a small model runs.
            self._versions, self._samples = versions, _last_numbers(tensors)
        numbers = [torch.cat(views).tolist() for views in self._samples]
        if versions is self._versions or numbers != self._numbers:
            # A new dictionary: another thread may still be reading the old one.
            self._numbers, self._entries = numbers, {}

    def look_up(self, key: Hashable, compute: Callable[[], Mapping[Any, Tensor]]) -> Tensor:
        """Return the entry of a key; if there is none, add all entries that `compute` returns, this one among them.

        Valid as long as the weights have not changed since `check`.
        """
        entries = self._entries
        value = entries.get(key)
        if value is None:
            computed = compute()
            value = computed[key]
            entries.update(computed)
            size = sum(entry.nbytes for entry in entries.values())
            while len(entries) > MOST or (size > BYTES and entries):
                oldest = entries.pop(next(iter(entries)), None)
                size -= 0 if oldest is None else oldest.nbytes
        return value


def _tensors(module: nn.Module) -> list[Tensor]:
    """Return weights and buffers, five times as fast as `parameters()` and `buffers()`: every batch asks for them."""
    tensors: list[Tensor | None] = []
    left: list[nn.Module | None] = [module]
    while left:
        if (part := left.pop()) is not None:
            tensors += part._parameters.values()
            tensors += part._buffers.values()
            left += part._modules.values()
    return [tensor for tensor in tensors if tensor is not None]


def _versions(tensors: Iterable[Tensor]) -> list[Any]:
    """Return, for every tensor, where it is and how often it was written to."""
    return [
        (tensor.data_ptr(), -1 if tensor.is_inference() else tensor._version, tensor.dtype, tensor.device)
        for tensor in tensors
    ]


def _last_numbers(tensors: Iterable[Tensor]) -> list[list[Tensor]]:
    """Return views of the last number of every tensor, one list for each device and dtype."""
    views: dict[Any, list[Tensor]] = {}
    for tensor in tensors:
        if tensor.numel() and not tensor.is_meta:
            last = tensor.detach()[(-1,) * tensor.ndim][None]
            views.setdefault((tensor.device, tensor.dtype), []).append(last)
    return list(views.values())
