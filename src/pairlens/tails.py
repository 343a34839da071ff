"""The rest of an encoder behind layer ℓ: embeddings of hidden states, and their derivatives for groups of tokens."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

from torch import Tensor
from torch._C._functorch import is_functorch_wrapped_tensor

from pairlens import dual
from pairlens.graphs import Graphs, padded
from pairlens.rules import push
from pairlens.shapes import Embeddings, Points, Rows

SMALL = 2**16
"""Tokens, those of all tangents counted, up to which a device waits for launches rather than for its products."""
Embed = Callable[[Tensor, dict[str, Any]], Tensor]


class Tail:
    """Embeddings of hidden states of texts of one length, as a function that can be differentiated.

    Args:
        embed: from states (n, tokens, width) and the model's other inputs to embeddings (n, dim).
        features: the model's inputs, one row a text.
        name: tells this tail from others of the same encoder.
        precision: how exactly the tangents are multiplied, "highest", "high" or "bf16".
        graphs: captured computations, or None where nothing may be captured.
    """

    def __init__(
        self, embed: Embed, features: dict[str, Any], name: Hashable, precision: str, graphs: Graphs | None
    ) -> None:
        self._embed = embed
        self._tensors = {key: value for key, value in features.items() if isinstance(value, Tensor)}
        self._rest = {key: value for key, value in features.items() if not isinstance(value, Tensor)}
        self._name = (name, precision, tuple(sorted((key, repr(value)) for key, value in self._rest.items())))
        self._precision = precision
        self._graphs = graphs

    def __call__(self, states: Points, rows: Rows) -> Embeddings:
        """Embeddings of states, (n, dim); row i of them belongs to text `rows[i]`."""
        if isinstance(states, dual.Dual) or not self._captures(states.shape[0] * states.shape[1], states):
            return self._run(states, [value[rows] for value in self._tensors.values()])
        return self._captured("values", lambda h, *rest: (self._run(h, list(rest)),), [states], rows)

    def derivatives(self, points: Points, direction: Points, rows: Rows, groups: dual.Groups) -> Tensor:
        """Derivatives at points in the direction of every group, (n, groups, dim); see `rules.push`."""

        def run(points: Tensor, direction: Tensor, *rest: Tensor) -> tuple[Tensor]:
            own, features = dual.Groups(*rest[:3]), list(rest[3:])
            with dual.precision(self._precision):
                return (push(lambda h: self._run(h, features), points, direction, own)[1],)

        inputs = [points, direction, groups.labels, groups.members, groups.valid]
        if not self._captures(points.shape[0] * points.shape[1] * (len(groups) + 1), points):
            return run(*inputs, *[value[rows] for value in self._tensors.values()])[0]
        return self._captured("derivatives", run, inputs, rows)

    def _captures(self, tokens: int, states: Tensor) -> bool:
        if self._graphs is None or not self._graphs.enabled or not states.is_cuda or tokens > SMALL:
            return False
        # Nothing is written down while PyTorch differentiates.
        return not is_functorch_wrapped_tensor(states)

    def _captured(
        self, what: str, function: Callable[..., tuple[Tensor]], inputs: list[Tensor], rows: Tensor
    ) -> Tensor:
        """By way of a graph of one of few sizes, of which only so many rows count."""
        assert self._graphs is not None
        given = inputs + [value[rows] for value in self._tensors.values()]
        return self._graphs.run((what, self._name), function, given, size=padded(len(rows)))[0]

    def _run(self, states: Tensor, features: list[Tensor]) -> Tensor:
        return self._embed(states, {**dict(zip(self._tensors, features, strict=True)), **self._rest})
