"""Larger products of NumPy arrays, by PyTorch.

NumPy has threads of its own. They go on waiting busily when they are done, and for that while take turns with those
that the model's next passes run on.
"""

from __future__ import annotations

import numpy as np
import torch

from pairlens.shapes import Array


def product(a: Array, b: Array) -> Array:
    """The product of two matrices.

    Example:
        >>> product(np.array([[1.0, 2.0]]), np.array([[3.0], [4.0]]))
        array([[11.]])
    """
    return (_tensor(a) @ _tensor(b)).numpy()


def inverse(a: Array) -> Array:
    """The inverse of a matrix.

    Example:
        >>> inverse(np.array([[2.0, 0.0], [0.0, 4.0]]))
        array([[0.5 , 0.  ],
               [0.  , 0.25]])
    """
    return torch.linalg.inv(_tensor(a)).numpy()


def _tensor(a: Array) -> torch.Tensor:
    # As it is where that is possible: PyTorch knows no negative strides, and warns of what may not be written to.
    return torch.from_numpy(a if a.flags.writeable and min(a.strides, default=0) >= 0 else np.array(a))
