"""Shapley values of real deletions, for every dimension of the embedding at once.

The value of unit s is what s adds to the embedding, averaged over all orders in which the units could be added. A text
of n units has 2ⁿ subsets. Where these are too many, some are tried and the values of the rest are predicted (the room
`subsets`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairlens.errors import InputError, whole
from pairlens.methods.sampled import Sampled
from pairlens.shapes import Array
from pairlens.subsets import BalancedSampler, Fit, shapley

FEWEST, PER_UNIT, MOST = 160, 8, 400
"""Subsets tried by default: 8 per unit, between 160 and 400."""


@dataclass(frozen=True, kw_only=True)
class Shapley(Sampled):
    """Shapley values of deletions: complete, exact for short texts, else with standard errors.

    Attributes:
        permutations: spend as many forward passes as this many permutations, n each; excludes `passes`.
        passes: forward passes per text, at least 4; by default 8 per unit, between 160 and 400. A text with fewer
            subsets is solved exactly.
    """

    permutations: int | None = None
    name = "shapley"

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.permutations is not None:
            if self.passes is not None:
                raise InputError("permutations and passes say the same thing twice: give one of them.")
            whole("Shapley's permutations", self.permutations, 1)

    def describe(self, encoder: Any, role: str | None) -> dict[str, Any]:
        """The method's own entries of a result's settings."""
        options = {"permutations": self.permutations, "passes": self.passes, "error": self.error}
        given = {name: value for name, value in options.items() if value is not None}
        return {"layer": None, "reference": "empty", "rule": None, **given, "seed": self.seed}

    def sampler(self, players: int, random: np.random.Generator) -> BalancedSampler:
        """What draws the subsets of one text."""
        return BalancedSampler(players, random)

    def fit(self, tried: Array, values: Array, sizes: Array | None = None) -> Fit:
        """The linear model of the subsets tried; see `Sampled.fit`."""
        return shapley(tried, values)

    def with_passes(self, passes: int | None) -> Shapley:
        """The same method with another budget of forward passes; None keeps that of `permutations`, if any."""
        return replace(self, passes=passes, permutations=self.permutations if passes is None else None)

    def budget(self, players: int, *, long: bool = False, part: bool = False) -> int:
        """The forward passes that a text of this many units gets."""
        if self.permutations is not None:
            return self.permutations * players
        return min(max(FEWEST, PER_UNIT * players), MOST) if self.passes is None else self.passes
