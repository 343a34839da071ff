"""Random states and deterministic kernels for a training: the same seed gives the same weights."""

from __future__ import annotations

import os
import random
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager

import numpy as np
import torch
from torch.nn.attention import SDPBackend, sdpa_kernel


@contextmanager
def repeatable(seed: int, device: str) -> Iterator[None]:
    """Return a context with all seeds set; at its end the random states and the choice of kernels are restored.

    Args:
        seed: of Python, NumPy and PyTorch.
        device: "cpu", "cuda" or "mps".
    """
    python, numpy = random.getstate(), np.random.get_state()  # noqa: NPY002
    deterministic = torch.are_deterministic_algorithms_enabled()
    warned = torch.is_deterministic_algorithms_warn_only_enabled()
    devices = range(torch.cuda.device_count()) if device == "cuda" else []
    with ExitStack() as stack:
        stack.enter_context(torch.random.fork_rng(devices=devices))
        if device == "cuda":
            # cuBLAS is deterministic only with its own workspace; the backward pass of fused attention is not.
            os.environ.setdefault("CUBLAS_WORKSPACE_CONFIG", ":4096:8")
            stack.enter_context(sdpa_kernel(SDPBackend.MATH))
            torch.use_deterministic_algorithms(True, warn_only=True)
        try:
            random.seed(seed)
            np.random.seed(seed)  # noqa: NPY002
            torch.manual_seed(seed)
            yield
        finally:
            random.setstate(python)
            np.random.set_state(numpy)  # noqa: NPY002
            torch.use_deterministic_algorithms(deterministic, warn_only=warned)
