"""What the units of one text contribute to its embedding, and where that came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pairlens.errors import InputError
from pairlens.shapes import Array, PerUnit, Values, Vector
from pairlens.subsets import squared_errors
from pairlens.text import Level, Unit, group, plain_level

LARGE = ("noise_residuals", "tried_embeddings", "tried_predictions", "tried_with_compounds")
"""Arrays that are larger than the values, and need no more than single precision."""
ROUNDED = 1e-4
"""Squared errors that differ by less than this part of them are equal but for rounding."""


@dataclass(frozen=True, eq=False)
class Contributions:
    """An embedding written as a reference plus one vector per unit: embedding ≈ reference + values.sum(0).

    Attributes:
        text: the text.
        units: what the rows of `values` belong to.
        tokens: the model's tokens.
        values: one vector per unit, (units, dim), float64.
        error: an estimate of the norm of each row's own error, (units,).
        reference: the reference's embedding, (dim,).
        embedding: the text's embedding, (dim,).
        output: the model's own output for the text, (dim,); the same as `embedding`, or a multiple of it.
        gap: the relative error of the total, ‖reference + Σ values - embedding‖ / ‖embedding - reference‖.
        noise_weights: for methods that sample, the errors of `values` as independent draws: draw d is off by
            noise_weights[d, unit] times noise_residuals[d], (draws, units); None where nothing was sampled.
        noise_residuals: the directions of those errors, (draws, dim), float32, or None.
        tried: for methods that delete, which units stayed in each deletion that was tried, (tried, units), booleans.
        tried_embeddings: what was left, (tried, dim), float32.
        tried_predictions: the same as predicted by a fit that has not seen it, (tried, dim), float32, or None.
        tried_with_compounds: likewise by a fit with compounds, or None.
        tried_weights: what each deletion counts in a forecast, (tried,), where they are of several kinds; else None.
        truncated: the text was longer than the model takes.
        unknown: the words that the tokenizer does not know; to the model they are all the same.
        settings: model, method, layer, reference, space, level, rule, nodes, role, dtype.
    """

    text: str
    units: tuple[Unit, ...]
    tokens: tuple[str, ...]
    values: Values
    error: PerUnit
    reference: Vector
    embedding: Vector
    output: Vector
    gap: float
    noise_weights: Array | None = None
    noise_residuals: Array | None = None
    tried: Array | None = None
    tried_embeddings: Array | None = None
    tried_predictions: Array | None = None
    tried_with_compounds: Array | None = None
    tried_weights: Array | None = None
    truncated: bool = False
    unknown: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        for name in LARGE:
            if (array := getattr(self, name)) is not None:
                vars(self)[name] = array.astype(np.float32, copy=False)
        if self.tried is not None:
            vars(self)["tried"] = self.tried.astype(bool, copy=False)
        freeze(self)

    def __repr__(self) -> str:
        what = f"{len(self.units)} units, dim {self.values.shape[1]}, gap {self.gap:.1e}"
        return f"Contributions({self.text!r:.50}, {what}, {self.settings.get('method')})"

    @property
    def bounds(self) -> PerUnit:
        """The part of each row's error that is known by its size alone, and not by draws, (units,)."""
        if self.noise_weights is None or self.noise_residuals is None:
            return self.error
        left = self.error**2 - squared_errors(self.noise_weights, self.noise_residuals)
        return np.sqrt(np.where(left > ROUNDED * self.error**2, left, 0.0))

    def at(self, level: Level) -> Contributions:
        """The same contributions at a coarser level: rows that belong together are added up.

        The deletions that were tried belong to the finer level and are left out.
        """
        units, sums = regroup(self.text, self.units, self.settings.get("level", "token"), level)
        settings = {**self.settings, "level": plain_level(level), **summed(self.settings, sums)}
        error, weights = sums @ self.error, self.noise_weights
        if weights is not None and self.noise_residuals is not None:
            weights = weights @ sums.T
            error = np.sqrt(squared_errors(weights, self.noise_residuals) + (sums @ self.bounds) ** 2)
        values = sums @ self.values
        left_out = {} if units == self.units else dict.fromkeys(name for name in vars(self) if "tried" in name)
        return replace(
            self, units=units, values=values, error=error, noise_weights=weights, settings=settings, **left_out
        )

    def save(self, path: str | Path) -> Path:
        """Write to a file: .json (lossless), .npz, .csv or .parquet."""
        from pairlens.io import documents

        return documents.save(self, path)

    @staticmethod
    def load(path: str | Path) -> Contributions:
        """Read what `save` wrote."""
        from pairlens.io import documents

        return documents.load(Contributions, path)


def freeze(result: object) -> None:
    """Make the arrays of a result read-only and copy its `settings`: a change would break the identity."""
    attributes = vars(result)
    for name, value in attributes.items():
        if isinstance(value, np.ndarray) and value.flags.writeable:
            attributes[name] = value.view()
            attributes[name].flags.writeable = False
    attributes["settings"] = dict(attributes["settings"])


def deletes(settings: Mapping[str, Any]) -> bool:
    """Whether these are the settings of a method that deletes units."""
    return settings.get("reference") in ("empty", "fitted")


def predicts(settings: Mapping[str, Any]) -> bool:
    """Whether an explanation with these settings is a model of what deletions do to the score."""
    return deletes(settings) and settings.get("reference_terms") == "keep"


def summed(settings: Mapping[str, Any], sums: Array) -> dict[str, str]:
    """A note for the settings of summed units: for methods that delete, a coarser level is another game, not a sum.

    Only the words of a zoomed text add up to what its sentences have.
    """
    if not deletes(settings) or sums.shape[0] == sums.shape[1] or settings.get("level") == "zoom":
        return {}
    return {"sums": settings.get("sums") or f"summed from {_plural(settings.get('level', 'token'))}"}


def _plural(level: Any) -> str:
    return f"{level}s" if isinstance(level, str) else "spans"


def regroup(text: str, units: tuple[Unit, ...], old: Level, new: Level) -> tuple[tuple[Unit, ...], Array]:
    """Coarser units and the matrix (new units, old units) that adds up what belongs to them."""
    if plain_level(old) == plain_level(new):
        return units, np.eye(len(units))
    if new == "token":
        raise InputError("this is coarser than tokens already; ask for level='token' in the first place.")
    coarse, index = group(text, units, new, finest=old == "token")
    sums = np.zeros((len(coarse), len(units)))
    sums[list(index), np.arange(len(units))] = 1.0
    return coarse, sums
