"""What the units of one text contribute to its embedding, and where that came from."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np

from pairlens import storage
from pairlens.errors import InputError
from pairlens.shapes import Array, PerUnit, Values, Vector
from pairlens.tokens import Level, Unit, group, plain_level


@dataclass(frozen=True, eq=False)
class Contributions:
    """An embedding written as a reference plus one vector per unit: embedding ≈ reference + values.sum(0).

    Attributes:
        text: the text.
        units: what the rows of `values` belong to.
        tokens: the model's tokens.
        values: one vector a unit, (units, dim), float64.
        error: an estimate of the norm of each row's own error, (units,).
        reference: the reference's embedding, (dim,).
        embedding: the text's embedding, (dim,).
        output: the model's own output for the text, (dim,); the same as `embedding`, or a multiple of it.
        gap: the relative error of the total, ‖reference + Σ values - embedding‖ / ‖embedding - reference‖.
        truncated: the text was longer than the model takes.
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
    truncated: bool = False
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        freeze(self)

    def __repr__(self) -> str:
        what = f"{len(self.units)} units, dim {self.values.shape[1]}, gap {self.gap:.1e}"
        return f"Contributions({self.text!r:.50}, {what}, {self.settings.get('method')})"

    def at(self, level: Level) -> Contributions:
        """The same contributions at a coarser level: rows that belong together are added up."""
        units, sums = regroup(self.text, self.units, self.settings.get("level", "token"), level)
        settings = {**self.settings, "level": plain_level(level)}
        return replace(self, units=units, values=sums @ self.values, error=sums @ self.error, settings=settings)

    def save(self, path: str | Path) -> Path:
        """Write to a file: .json (lossless), .npz, .csv or .parquet."""
        return storage.save(self, path)

    @staticmethod
    def load(path: str | Path) -> Contributions:
        """Read what `save` wrote."""
        return storage.load(Contributions, path)


def freeze(result: object) -> None:
    """Make a result's arrays read-only, and its settings its own: a change would belie the identity."""
    for name, value in vars(result).items():
        if isinstance(value, np.ndarray):
            view = value.view()
            view.flags.writeable = False
            object.__setattr__(result, name, view)
        elif isinstance(value, Mapping):
            object.__setattr__(result, name, dict(value))


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
