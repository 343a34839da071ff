"""Count the floating-point operations of a computation, to measure what an explanation costs.

Counting operations needs no hooks in the model, and weighs every forward pass by its work: a pass over a shortened text
costs less than one over the whole text, a tangent about as much as a pass, a pass from a middle layer its fraction.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils.flop_counter import flop_registry, sdpa_flop_count

from pairlens import linalg

T = TypeVar("T")
FLASH_ATTENTION = torch.ops.aten._scaled_dot_product_flash_attention_for_cpu


class Operations(TorchDispatchMode):
    """A context that counts the floating-point operations of matrix products, which are nearly all operations."""

    def __init__(self) -> None:
        super().__init__()
        self.total = 0

    def __torch_dispatch__(self, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        kwargs = kwargs or {}
        # In inference mode, composite operations are not decomposed yet.
        with self:
            out = func.decompose(*args, **kwargs)
        if out is not NotImplemented:
            return out
        out = func(*args, **kwargs)
        packet = func._overloadpacket
        if packet is FLASH_ATTENTION:
            self.total += sdpa_flop_count(*(tensor.shape for tensor in args[:3]))
        elif packet is linalg.ONEDNN:
            self.total += 2 * args[0].numel() * len(args[1])
        elif packet in flop_registry:
            self.total += flop_registry[packet](*args, **kwargs, out_val=out)
        return out


def count(run: Callable[[], T]) -> tuple[T, int]:
    """What a function returns, and the number of its floating-point operations."""
    with Operations() as operations:
        result = run()
    return result, operations.total
