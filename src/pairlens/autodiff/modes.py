"""Contexts and checks about PyTorch's modes: forward mode, attention kernels, autocast, graph capture."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel

_LOCK = threading.RLock()
"""PyTorch keeps the level of forward mode and the choice of attention kernels per process, not per thread."""


@contextlib.contextmanager
def differentiable(*, attention: bool = True) -> Iterator[None]:
    """Return a context in which a model can be differentiated in forward mode, in any mode or autocast of the caller.

    Args:
        attention: whether fused attention must be differentiable too; if not, its fastest kernel is used.
    """
    with contextlib.ExitStack() as stack:
        for context in (_LOCK, torch.inference_mode(False), torch.no_grad()):
            stack.enter_context(context)
        if attention:
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
        for device in ("cpu", "cuda", "mps", "xpu"):
            if torch.is_autocast_enabled(device):
                stack.enter_context(torch.autocast(device, enabled=False))
        yield


def capturing(device: torch.device) -> bool:
    """Return whether a CUDA graph is being captured on the current stream of the device."""
    return device.type == "cuda" and torch.cuda.is_current_stream_capturing()
