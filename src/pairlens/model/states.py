"""Texts of one length with their references: the inputs of an encoder's head, and the states that enter layer ℓ."""

from __future__ import annotations

import functools
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any

from torch import Tensor

from pairlens.autodiff import Pending
from pairlens.model.route import Route
from pairlens.model.tokenize import Text
from pairlens.shapes import States


@dataclass(frozen=True)
class TextStates:
    """Hidden states of texts that enter a layer.

    Attributes:
        texts: the texts, of one length and role.
        layer: the layer.
        space: the embedding wanted.
        x: the states of the texts, (texts, tokens, width).
        r: the states of their references, (texts, tokens, width).
        features: the model's inputs on the host, one row per text.
        handed: what the layers hand on besides states.
        pending: which tokens move, and embeddings of the texts, on their way to the host; see `Encoder.arrived`.
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
class HeadInputs:
    """The inputs with which texts and their references run together up to a layer.

    Attributes:
        route: the modules that the texts pass through.
        layer: the layer.
        space: the embedding wanted.
        features: the model's inputs on the host: those of the texts, then those of references.
        places: for every text, where its reference's states are: among the rows of features, or behind them.
        known: cached states of references, (tokens, width) each.
        kept: which tokens of the references keep their states, the others being zero; None for all.
        truncate_dim: how many dimensions of the embedding are kept; None for all.
    """

    route: Route
    layer: int
    space: str
    features: dict[str, Any]
    places: Tensor
    known: list[Tensor]
    kept: Tensor | None
    truncate_dim: int | None

    @functools.cached_property
    def _per_row(self) -> dict[str, Tensor]:
        """The features that are tensors, with one row per text."""
        return {name: value for name, value in self.features.items() if isinstance(value, Tensor)}

    @property
    def text_features(self) -> dict[str, Any]:
        """The features of the texts alone."""
        count = len(self.places)
        return {key: value[:count] if isinstance(value, Tensor) else value for key, value in self.features.items()}

    @property
    def tensors(self) -> list[Tensor]:
        """All tensors that go to the device."""
        return [self.places, *self._per_row.values(), *([] if self.kept is None else [self.kept])]

    def filled(self, given: Sequence[Tensor]) -> tuple[Tensor, dict[str, Any], Tensor | None]:
        """Return places, features and kept tokens with other tensors in the place of `tensors`."""
        places, *rest = given
        kept = rest.pop() if self.kept is not None else None
        return places, self.features | dict(zip(self._per_row, rest, strict=True)), kept

    @property
    def name(self) -> Hashable:
        """What the run depends on besides the tensors, to tell CUDA graphs apart."""
        others = {name: value for name, value in self.features.items() if not isinstance(value, Tensor)}
        role, full = self.route.role, self.kept is None
        return (role, self.layer, self.space, self.truncate_dim, full, repr(sorted(others.items())))
