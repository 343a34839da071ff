"""Products of NumPy arrays, larger ones by PyTorch, linear layers by oneDNN, and the lengths of vectors.

NumPy has threads of its own. They go on waiting busily when they are done, and for that while take turns with those
that the model's next passes run on. A small product needs none of them, and waking PyTorch's takes longer than it does:
on a host of many cores a hundred times as long.

PyTorch gives linear layers in single precision to MKL, which reaches less than half of the speed of an AMD processor.
oneDNN, which PyTorch carries too, reaches all of it.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

from pairlens.shapes import Array

SMALL = 2**18
"""Multiplications up to which OpenBLAS stays in the thread that asks."""
LARGE = 2**22
"""Multiplications from which on other threads are worth waking."""
ONEDNN = getattr(torch.ops.mkldnn, "_linear_pointwise", None) if torch.backends.mkldnn.is_available() else None
"""PyTorch's own way to a linear layer by oneDNN, which its compiler uses; None where there is none."""


def product(a: Array, b: Array) -> Array:
    """The product of two matrices.

    Example:
        >>> product(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
        array([[11.]])
    """
    work = a.size * b.shape[1]
    if work <= SMALL:
        return a.dot(b)  # for small ones faster than `@`
    if work >= LARGE:
        return (_tensor(a) @ _tensor(b)).numpy()
    if len(a) < b.shape[1]:
        return product(b.T, a.T).T
    some = max(1, SMALL // b.size)
    return np.concatenate([a[start : start + some] @ b for start in range(0, len(a), some)])


def rough(a: Array, b: Array) -> Array:
    """The product of two matrices in single precision.

    Example:
        >>> rough(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]])).dtype
        dtype('float32')
    """
    return product(a.astype(np.float32, copy=False), b.astype(np.float32, copy=False))


def inverse(a: Array) -> Array:
    """The inverse of a matrix.

    Example:
        >>> inverse(np.array([[2.0, 0.0], [0.0, 4.0]]))
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    return torch.linalg.inv(_tensor(a)).numpy()


def solve(a: Array, b: Array) -> Array:
    """The solution x of the linear equations a x = b, for a matrix of right-hand sides.

    Example:
        >>> solve(np.array([[2.0, 0.0], [0.0, 4.0]]), np.array([[1.0], [1.0]]))
        array([[0.5 ],
               [0.25]])
    """
    return torch.linalg.solve(_tensor(a), _tensor(b)).numpy()


def length(a: Array) -> float:
    """The Euclidean length of a vector: `np.linalg.norm` without its detours, which for a few hundred numbers tell.

    Example:
        >>> length(np.array([3.0, 4.0]))
        5.0
    """
    return math.sqrt(a @ a)


def lengths(a: Array) -> Array:
    """The lengths of a matrix's rows.

    Example:
        >>> lengths(np.array([[3.0, 4.0], [0.0, 2.0]]))
        array([5., 2.])
    """
    return np.sqrt(np.einsum("nk,nk->n", a, a))


def linear(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """A linear layer, as `torch.nn.functional.linear`; on a processor in single precision by oneDNN, without gradients.

    oneDNN drops what forward mode carries along, so nothing here may run inside `torch.func.jvp`.

    Example:
        >>> linear(torch.tensor([[1.0, 2.0]]), torch.tensor([[3.0, 4.0]]))
        tensor([[11.]])
    """
    single = x.dtype == weight.dtype == torch.float32 and x.device.type == "cpu"
    if ONEDNN is not None and single and not torch.is_grad_enabled() and not torch.is_autocast_enabled("cpu"):
        return ONEDNN(x, weight, bias, "none", [], "")
    return functional.linear(x, weight, bias)


class FastLinear(TorchFunctionMode):
    """A context in which the linear layers of any model are computed by `linear`."""

    def __torch_function__(
        self, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        """Call a function of PyTorch; one on other kinds of tensors as it is."""
        plain = func is functional.linear and not kwargs and type(args[0]) is Tensor
        return linear(*args) if plain else func(*args, **(kwargs or {}))


def _tensor(a: Array) -> torch.Tensor:
    # As it is where that is possible: PyTorch knows no negative strides, and warns of what may not be written to.
    return torch.from_numpy(a if a.flags.writeable and min(a.strides, default=0) >= 0 else np.array(a))
