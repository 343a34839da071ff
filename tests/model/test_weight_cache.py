"""The cache of tensors drops its entries when weights change, and never holds too many."""

from __future__ import annotations

import copy
from typing import Any

import pytest
import torch
from torch import Tensor, nn

from pairlens.model import weight_cache
from pairlens.model.weight_cache import WeightCache


def filled(module: nn.Module) -> WeightCache:
    """Return a cache for the module with one entry."""
    cache = WeightCache()
    cache.check(module)
    cache.look_up("key", lambda: {"key": torch.zeros(1)})
    return cache


def copy_in_place(module: Any) -> None:
    with torch.no_grad():
        module.weight.copy_(module.weight + 1)


def write_through_data(module: Any) -> None:
    module.bias.data += 1


@pytest.mark.parametrize("change", [copy_in_place, write_through_data, lambda module: module.double()])
def test_entries_are_dropped_when_the_weights_change(change):
    module = nn.Linear(2, 2)
    cache = filled(module)
    cache.check(module)
    assert len(cache) == 1
    change(module)
    cache.check(module)
    assert len(cache) == 0


def test_release_drops_entries_only_if_the_weights_moved():
    module = nn.Linear(2, 2)
    cache = filled(module)
    cache.release(module.float())
    assert len(cache) == 1
    cache.release(module.double())
    assert len(cache) == 0


def test_the_oldest_entries_are_dropped_first(monkeypatch):
    monkeypatch.setattr(weight_cache, "MOST", 2)
    cache = WeightCache()
    for key in "abc":
        cache.look_up(key, lambda key=key: {key: torch.zeros(1)})
    assert len(cache) == 2

    def missing() -> dict[str, Tensor]:
        raise LookupError

    cache.look_up("c", missing)
    with pytest.raises(LookupError):
        cache.look_up("a", missing)


def test_copies_start_empty():
    assert len(copy.deepcopy(filled(nn.Linear(2, 2)))) == 0
