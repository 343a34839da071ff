"""The shapes that travel between the files, named once. Tests execute them; without jaxtyping they are plain arrays.

Axes: `texts`, `tokens`, `width` (hidden), `dim` (embedding), `units`, `nodes`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from torch import Tensor

if TYPE_CHECKING:
    from jaxtyping import Bool, Float, Int
else:
    try:
        from jaxtyping import Bool, Float, Int
    except ImportError:

        class _Plain:
            """Stands in for jaxtyping where it is not installed: `Float[Tensor, "a b"]` is then just `Tensor`."""

            def __getitem__(self, item: tuple[Any, str]) -> Any:
                return item[0]

        Bool = Float = Int = _Plain()

States = Float[Tensor, "texts tokens width"]
"""Hidden states of texts of one length."""
Points = Float[Tensor, "nodes *shape"]
"""Points on paths, one a row."""
Embeddings = Float[Tensor, "nodes dim"]
"""Embeddings of points."""
Rows = Int[Tensor, " nodes"]
"""For every point, the text it belongs to."""
Array = np.ndarray
Values = Float[np.ndarray, "units dim"]
"""Contributions of one text: one vector a unit."""
Vector = Float[np.ndarray, " dim"]
"""One embedding."""
PerUnit = Float[np.ndarray, " units"]
"""One number a unit."""
PerUnitA = Float[np.ndarray, " units_a"]
"""One number a unit of text a."""
PerUnitB = Float[np.ndarray, " units_b"]
"""One number a unit of text b."""
Mask = Bool[np.ndarray, "units_a units_b"]
"""Which pairs of units."""
Matrix = Float[np.ndarray, "units_a units_b"]
"""One number for every pair of units."""

__all__ = [
    "Array",
    "Embeddings",
    "Float",
    "Int",
    "Matrix",
    "PerUnit",
    "PerUnitA",
    "PerUnitB",
    "Points",
    "Rows",
    "States",
    "Values",
    "Vector",
]
