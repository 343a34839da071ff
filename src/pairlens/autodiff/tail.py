"""Derivatives of a function for groups of tokens, and the tail of an encoder as such a function."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.func import jvp

from pairlens.autodiff import operations  # noqa: F401  # pyright: ignore[reportUnusedImport]  Registers the rules.
from pairlens.autodiff.dual import Dual, Groups, precision
from pairlens.autodiff.graphs import Graphs
from pairlens.autodiff.modes import differentiable
from pairlens.shapes import Embeddings, Points, Rows

Embed = Callable[[Tensor, dict[str, Any]], Tensor]


def derivatives(function: Callable[[Tensor], Tensor], points: Points, direction: Points, groups: Groups) -> Tensor:
    """Return the derivatives of a function in every group's direction, (n, groups, dim).

    Args:
        function: maps states (n, tokens, width) to embeddings (n, dim).
        points: the states.
        direction: the sum of all groups' tangents, (n, tokens, width).
        groups: which tokens belong together, for every point.
    """
    start: Any = Dual.__new__(Dual, points, direction[:, None], groups, axis=1)
    result = function(start)
    if not isinstance(result, Dual):
        return torch.zeros(len(result), len(groups), result.shape[-1], dtype=result.dtype, device=result.device)
    return result.spread().tangent


class Tail:
    """The rest of an encoder behind a layer: from hidden states of texts of one length to embeddings.

    Args:
        embed: from states (n, tokens, width) and the model's other inputs to embeddings (n, dim).
        features: the model's inputs on the host, one row per text.
        name: tells this tail from others of the same encoder.
        precision: how exactly tangents are multiplied, "highest", "high" or "bf16".
        graphs: the encoder's CUDA graphs, or None where nothing can be captured.
    """

    def __init__(
        self, embed: Embed, features: dict[str, Any], name: Hashable, precision: str, graphs: Graphs | None
    ) -> None:
        self._embed = embed
        self.tensors = {key: value for key, value in features.items() if isinstance(value, Tensor)}
        self._rest = {key: value for key, value in features.items() if not isinstance(value, Tensor)}
        self.name = (name, precision, tuple(sorted((key, repr(value)) for key, value in self._rest.items())))
        self._precision = precision
        self.graphs = graphs

    def on(self, tensors: Sequence[Tensor]) -> Tail:
        """Return the same tail with other inputs of the model, in the order of `tensors`."""
        other = copy.copy(self)
        other.tensors = dict(zip(self.tensors, tensors, strict=True))
        return other

    def __call__(self, states: Points, rows: Rows) -> Embeddings:
        """Return embeddings of states, (n, dim); states[i] belongs to text `rows[i]`."""
        tensors = {name: value.to(states.device)[rows] for name, value in self.tensors.items()}
        return self._embed(states, {**tensors, **self._rest})

    def derivatives(self, points: Points, direction: Points, rows: Rows, groups: Groups) -> Tensor:
        """Return derivatives at points in every group's direction, (n, groups, dim); see `derivatives`."""
        with precision(self._precision):
            return derivatives(lambda h: self(h, rows), points, direction, groups)

    def takes_duals(self, x: Tensor, r: Tensor) -> bool:
        """Return whether dual numbers give the derivatives of PyTorch's forward mode, tried on one text.

        Args:
            x: the text's states, (1, tokens, width).
            r: the states of its reference, (1, tokens, width).
        """
        row = torch.zeros(1, dtype=torch.long, device=x.device)
        point, direction = (x + r) / 2, x - r
        labels = torch.arange(x.shape[1], device=x.device)[None] // 2
        groups = Groups.of(labels, int(labels.max()) + 1, x.dtype)
        tangents = [torch.where((labels == group)[..., None], direction, 0) for group in range(len(groups))]
        with differentiable():
            expected = torch.stack([jvp(lambda h: self(h, row), (point,), (t,))[1] for t in tangents], 1)
            try:
                result = self.derivatives(point, direction, row, groups)
            except Exception:  # noqa: BLE001  A model may do anything that the rules do not foresee.
                return False
        tolerance = 1e-4 if self._precision == "highest" else 3e-2
        return bool((result - expected).norm() <= tolerance * expected.norm())
