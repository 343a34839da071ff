"""The protocols that `Encoder` and `EmbeddingFunction` share: other rooms need not ask which of the two they hold."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any, Protocol, runtime_checkable

from pairlens.model.tokenize import Text
from pairlens.shapes import Array

FIXED = -1
"""The label of a token that belongs to no unit: it is never deleted."""


@runtime_checkable
class Deletions(Protocol):
    """Deletions in several texts, embedded together so that the forward passes run in batches.

    Attributes:
        players: for every text, the units that can be deleted; a subset has a boolean for each of them.
        sizes: for every text, the tokens of each of these units; a function's tokens are words.
        fixed: for every text, how many of its tokens belong to no unit and always stay.
    """

    players: list[list[int]]
    sizes: list[Array]
    fixed: list[int]

    def embeddings(self, subsets: Sequence[Array]) -> list[Array]:
        """Return the embeddings of what is left: for every text, (subsets, players) booleans to (subsets, dim)."""
        ...


@runtime_checkable
class EmbeddingModel(Protocol):
    """A model whose embeddings can be explained.

    Attributes:
        name: what results call the model.
        has_layers: whether hidden states and derivatives can be computed; False for a function from texts to vectors.
        finest_level: the finest level of units, "token" or "word".
    """

    name: str
    has_layers: bool
    finest_level: str

    @property
    def measure(self) -> str:
        """The model's own similarity measure."""
        ...

    @property
    def adjusted(self) -> bool:
        """Whether the model subtracts the embedding of its reference."""
        ...

    @property
    def precision(self) -> str:
        """The name of the dtype that embeddings are computed in."""
        ...

    @property
    def fingerprint(self) -> str | None:
        """A short hash of the weights, or None if there are none to look at."""
        ...

    @property
    def concurrent_batches(self) -> int:
        """How many batches are worth computing at the same time."""
        ...

    def lanes(self, count: int) -> Sequence[AbstractContextManager[object]]:
        """Return contexts for `count` computations at the same time; none where they cannot overlap."""
        ...

    def is_static(self, role: str | None) -> bool:
        """Return whether the embedding is a mean of token vectors that do not depend on each other."""
        ...

    def fork(self) -> Any:
        """Return a second model on the same weights, for another thread."""
        ...

    def layers(self, role: str | None = None) -> int:
        """Return L, the number of layers; 0 without layers."""
        ...

    def pooling(self, role: str | None = None) -> str:
        """Return the names of the pooling modes, joined by +."""
        ...

    def space(self, role: str | None, wanted: str, *, path: bool = True) -> str:
        """Return the name of the space that embeddings are in if `wanted` ("unit", "output" or "raw") is asked for.

        Args:
            role: of the texts.
            wanted: the space asked for.
            path: whether a path from the reference's embedding is needed, which may be zero.
        """
        ...

    @property
    def prompts(self) -> Mapping[str, str]:
        """The model's prompts by name."""
        ...

    def read(self, text: str, role: str | None = None, prompt: str | None = None) -> Text:
        """Return a text as the model reads it, with a prompt before it: by default the role's."""
        ...

    def outputs(self, texts: Sequence[Text]) -> Array:
        """Return the model's own embeddings of texts of one role, (texts, dim)."""
        ...

    def deletions(self, texts: Sequence[Text], labels: Sequence[Sequence[int]], space: str) -> Deletions:
        """Return the embeddings of texts with some of their units deleted.

        Args:
            texts: the texts.
            labels: the unit of every token; `FIXED` for tokens that always stay.
            space: the embedding wanted.
        """
        ...
