"""Products of NumPy arrays, larger ones by PyTorch, and the lengths of vectors.

NumPy has threads of its own. They go on waiting busily when they are done, and for that while take turns with those
that the model's next passes run on. A small product needs none of them, and waking PyTorch's takes longer than it does:
on a host of many cores a hundred times as long.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from pairlens.shapes import Array

SMALL = 2**18
"""Multiplications up to which OpenBLAS stays in the thread that asks."""
LARGE = 2**22
"""Multiplications from which on other threads are worth waking."""


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


def _tensor(a: Array) -> torch.Tensor:
    # As it is where that is possible: PyTorch knows no negative strides, and warns of what may not be written to.
    return torch.from_numpy(a if a.flags.writeable and min(a.strides, default=0) >= 0 else np.array(a))
