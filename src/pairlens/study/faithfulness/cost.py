"""What an explanation costs, in forward passes of the text: floating-point operations, counted as they happen.

Counting operations needs no hooks in the model, and is honest about what a method's batches hold: shortened texts cost
less than a pass, a tangent costs about as much as one, a pass from a middle layer costs its share.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

T = TypeVar("T")


class Operations(TorchDispatchMode):
    """Counts the floating-point operations of matrix products while it is entered; they are nearly all there are."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # In inference mode composite operations arrive whole.
        with self:
            out = func.decompose(*args, **kwargs)
        if out is not NotImplemented:
            return out
        out = func(*args, **kwargs)
        packet = func._overloadpacket
        if packet is torch.ops.aten._scaled_dot_product_flash_attention_for_cpu:
            self.total += sdpa_flop_count(*(tensor.shape for tensor in args[:3]))
        elif packet in flop_registry:
            self.total += flop_registry[packet](*args, **kwargs, out_val=out)
        return out


def count(run: Callable[[], T]) -> tuple[T, int]:
    """What a function returns, and how many floating-point operations it took."""
    with Operations() as operations:
        found = run()
    return found, operations.total
