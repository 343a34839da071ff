"""Ways to take a text's embedding apart, one file each: every one turns texts into `Contributions`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Protocol

from pairlens.model.tokenize import Text
from pairlens.quadrature.integrate import Integral
from pairlens.quadrature.rules import Rule
from pairlens.shapes import Array


class Method(Protocol):
    """What the workshop asks of a method."""

    @property
    def name(self) -> str:
        """The method's name, as users write it."""
        ...

    def describe(self, encoder: Any, role: str | None) -> dict[str, Any]:
        """What of this method belongs into a result's settings."""
        ...

    def decompose(
        self,
        encoder: Any,
        texts: Sequence[Text],
        labels: Sequence[Sequence[int]],
        counts: Sequence[int],
        *,
        space: str,
        rule: Rule,
    ) -> list[tuple[Integral, Array]]:
        """Contributions of groups of tokens, for texts of one length and role.

        Args:
            encoder: the model.
            texts: the texts.
            labels: for every token of every text, the group it belongs to.
            counts: how many groups every text has, those without a token among them.
            space: the embedding to take apart.
            rule: the rule of integration, for methods that integrate.

        Returns:
            One integral a text, with the model's own output for it.
        """
        ...
