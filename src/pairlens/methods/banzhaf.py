"""Weighted Banzhaf values of real deletions: the explanation that predicts what deleting words will do."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens.errors import InputError, whole
from pairlens.methods.sampled import Sampled
from pairlens.shapes import Array
from pairlens.subsets import DeletionSampler, Fit, banzhaf

KEEP = 0.82
"""The default probability that a unit stays. Larger values predict single deletions better, smaller ones those of many
units; 0.75 to 0.85 are within 0.02 of each other in R² (docs/faithfulness.md)."""
FEWEST, MOST = 48, 400
"""The smallest and the largest number of subsets tried by default."""


@dataclass(frozen=True, kw_only=True)
class Banzhaf(Sampled):
    """The linear model of a text that predicts random deletions best; exact for short texts, else with standard errors.

    Its reference is its own constant: what would be left of the embedding if words did no more than they do near the
    whole text. Each unit's own deletion is always among those tried, so a text of n units takes n + 1 passes at least.

    Attributes:
        keep: the probability that a unit stays, in the deletions that are to be predicted.
        passes: forward passes per text; by default 4 for each unit but the first three, or 8 per unit with compounds,
            between 48 and 400; for long units such as sentences 2 per unit and 10 more; for the words inside a sentence
            of a long text 3 per word. A text with fewer subsets is solved exactly.
        compounds: up to this many pairs of units that act together ("not … good") get a row of their own, each while
            that improves the prediction of held-out deletions.

    Example:
        >>> from pairlens import Lens
        >>> e = Lens().explain("The coffee is bad.", "This coffee is not good.", method=Banzhaf(), level="word")
        >>> bool(e.forecast.r2 > 0.9)
        True
    """

    keep: float = KEEP
    compounds: int = 0
    name = "banzhaf"

    def __post_init__(self) -> None:
        super().__post_init__()
        if isinstance(self.keep, bool) or not isinstance(self.keep, int | float) or not 0.01 <= self.keep <= 0.99:
            raise InputError(f"Banzhaf's keep must lie between 0.01 and 0.99, for example 0.8; it is {self.keep!r}.")
        whole("Banzhaf's compounds", self.compounds, 0)

    def describe(self, encoder: Any, role: str | None) -> dict[str, Any]:
        """The method's own entries of a result's settings."""
        options = {"passes": self.passes, "error": self.error, "compounds": self.compounds or None}
        given = {name: value for name, value in options.items() if value is not None}
        return {"layer": None, "reference": "fitted", "rule": None, "keep": self.keep, **given, "seed": self.seed}

    def sampler(self, players: int, random: np.random.Generator) -> DeletionSampler:
        """What draws the subsets of one text.

        They keep a fraction that is smaller by one standard deviation than that of the deletions to be predicted: these
        tell more. For 11 to 15 words R² at keep 0.75 rises by 0.006, and there are fewer tokens to compute.
        """
        less = math.sqrt(self.keep * (1 - self.keep) / players)
        return DeletionSampler(players, random, max(self.keep - less, self.keep / 2))

    def fit(self, tried: Array, values: Array, sizes: Array | None = None) -> Fit:
        """The linear model of the subsets tried; see `Sampled.fit`."""
        return banzhaf(tried, values, self.keep, self.compounds, sizes)

    def budget(self, players: int, *, long: bool = False, part: bool = False) -> int:
        """The forward passes that a text of this many units gets; see `Sampled.budget`."""
        if self.passes is not None:
            return max(self.passes, players + 1)
        if part:
            return max(16, 3 * players)
        if long:
            return max(16, 2 * players + 10)
        wanted = 8 * players if self.compounds else 4 * players - 12
        return min(max(FEWEST, wanted), max(MOST, players + FEWEST))
