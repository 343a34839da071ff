"""The rest of an encoder behind layer ℓ: embeddings of hidden states, and their derivatives for groups of tokens."""

from __future__ import annotations

import copy
from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from pairlens.autodiff import dual
from pairlens.autodiff.graphs import Graphs
from pairlens.autodiff.operations import push
from pairlens.shapes import Embeddings, Points, Rows, States

Embed = Callable[[Tensor, dict[str, Any]], Tensor]


class Tail:
    """Embeddings of hidden states of texts of one length, as a function that can be differentiated.

    Args:
        embed: from states (n, tokens, width) and the model's other inputs to embeddings (n, dim).
        features: the model's inputs on the host, one row a text.
        name: tells this tail from others of the same encoder.
        precision: how exactly the tangents are multiplied, "highest", "high" or "bf16".
        graphs: captured computations, or None where nothing may be captured.
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
        """The same tail with other inputs of the model, in the order of `tensors`."""
        other = copy.copy(self)
        other.tensors = dict(zip(self.tensors, tensors, strict=True))
        return other

    def __call__(self, states: Points, rows: Rows) -> Embeddings:
        """Embeddings of states, (n, dim); row i of them belongs to text `rows[i]`."""
        here = {name: value.to(states.device)[rows] for name, value in self.tensors.items()}
        return self._embed(states, {**here, **self._rest})

    def derivatives(self, points: Points, direction: Points, rows: Rows, groups: dual.Groups) -> Tensor:
        """Derivatives at points in the direction of every group, (n, groups, dim); see `rules.push`."""
        with dual.precision(self._precision):
            return push(lambda h: self(h, rows), points, direction, groups)[1]


@dataclass(frozen=True)
class Then:
    """What is computed of hidden states as soon as they are there, in the launch that makes them.

    Attributes:
        name: with the inputs' shapes, says what.
        inputs: tensors that it needs besides.
        work: from the tail, the texts' states, those of their references, and the inputs on the device to a tensor.
    """

    name: Hashable
    inputs: tuple[Tensor, ...]
    work: Callable[[Tail, States, States, Sequence[Tensor]], Tensor]
