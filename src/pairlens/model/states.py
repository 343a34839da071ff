"""The front of an encoder: texts of one length with their references, as they start and as they enter layer ℓ."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from pairlens.autodiff.streams import Pending
from pairlens.model.route import Route
from pairlens.model.tokenize import Text
from pairlens.shapes import States


@dataclass(frozen=True)
class Heads:
    """Texts as they enter layer ℓ.

    `x` and `r`: hidden states of the texts and of their references, (texts, tokens, width). `features`: the model's
    inputs on the host, one row a text; `handed`: what its layers hand on besides states. `pending`: which tokens move
    at all, and the model's plain forward passes, on their way to the host; see `Encoder.arrived`.
    """

    texts: tuple[Text, ...]
    layer: int
    space: str
    x: States
    r: States
    features: dict[str, Any]
    handed: Sequence[Any]
    pending: Pending


@dataclass(frozen=True)
class Start:
    """What texts and their references need to run together up to a layer.

    Attributes:
        route: the modules.
        layer: the layer.
        space: the embedding wanted.
        features: the model's inputs on the host: the texts', and behind them those of references.
        places: for every text, where its reference's states are: among the rows of features, or behind them.
        known: states that need not be computed, (tokens, width) each, with their embeddings, (dim,).
        kept: which tokens of the texts have states in their references that are not zero; None for all.
        truncate_dim: the embedding's dimensions that are kept; None for all.
    """

    route: Route
    layer: int
    space: str
    features: dict[str, Any]
    places: Tensor
    known: Sequence[tuple[Tensor, Tensor]]
    kept: Tensor | None
    truncate_dim: int | None

    @functools.cached_property
    def tensors(self) -> dict[str, Tensor]:
        """The features that have a row for every text."""
        return {name: value for name, value in self.features.items() if isinstance(value, Tensor)}

    @property
    def own(self) -> dict[str, Any]:
        """The features of the texts alone."""
        return first_rows(self.features, len(self.places))

    @property
    def inputs(self) -> list[Tensor]:
        """All tensors that go to the device."""
        return [self.places, *self.tensors.values(), *([] if self.kept is None else [self.kept])]

    def filled(self, given: Sequence[Tensor]) -> tuple[Tensor, dict[str, Any], Tensor | None]:
        """Places, features and kept tokens with such inputs as `inputs` are."""
        places, *rest = given
        kept = rest.pop() if self.kept is not None else None
        return places, self.features | dict(zip(self.tensors, rest, strict=True)), kept

    @property
    def name(self) -> Hashable:
        """Tells what is computed from other things with inputs of the same shapes."""
        others = {name: value for name, value in self.features.items() if not isinstance(value, Tensor)}
        role, full = self.route.role, self.kept is None
        return (role, self.layer, self.space, self.truncate_dim, full, repr(sorted(others.items())))


def first_rows(features: dict[str, Any], count: int) -> dict[str, Any]:
    """The features of the first texts alone."""
    return {name: value[:count] if isinstance(value, Tensor) else value for name, value in features.items()}
