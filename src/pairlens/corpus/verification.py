"""Verification: does an index hold what its model computes now?"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens.attribution.contributions import Contributions
from pairlens.corpus.records import from_table
from pairlens.corpus.settings import IndexSettings
from pairlens.corpus.store import Store
from pairlens.errors import InputError, NotConverged, NumericalError, TruncationWarning
from pairlens.lens import Lens

TOLERANCE = 2e-3
"""How far a stored contribution may be from a fresh one, relative to the embedding; float16 is off by 2e-4."""


@dataclass(frozen=True)
class Verification:
    """The result of decomposing stored texts again.

    Attributes:
        checked: how many texts were decomposed again.
        difference: the largest distance between a stored row and a fresh one, relative to the embedding's length.
        wrong: the ids of texts that differ by more than 2e-3, or cannot be decomposed any more.
        doubled: ids that more than one row has.
    """

    checked: int
    difference: float
    wrong: tuple[str, ...] = ()
    doubled: tuple[str, ...] = ()

    @property
    def passed(self) -> bool:
        """Whether no text differs and no id occurs twice."""
        return not self.wrong and not self.doubled


def verify(
    store: Store, lens: Lens, settings: IndexSettings, common: Mapping[str, Any], sample: int, seed: int
) -> Verification:
    """Decompose some texts again and compare with what is stored; look for ids that occur twice.

    Args:
        store: the table.
        lens: the model.
        settings: how the texts in the table were decomposed.
        common: the settings that all stored contributions share.
        sample: how many texts, drawn at random.
        seed: of the draw.
    """
    rows = store.sample(sample, seed)
    wrong, worst = [], 0.0
    with warnings.catch_warnings(action="ignore", category=TruncationWarning):
        for name, stored in zip(rows.column("id").to_pylist(), from_table(rows, common), strict=True):
            try:
                (fresh,) = lens.decompose([stored.text], progress=False, **settings.options())
                difference = _difference(stored, fresh)
            except (InputError, NotConverged, NumericalError):
                difference = float("inf")
            worst = max(worst, difference)
            wrong += [name] if difference > TOLERANCE else []
    return Verification(len(rows), worst, tuple(wrong), _doubled(store))


def _doubled(store: Store) -> tuple[str, ...]:
    seen: set[str] = set()
    double: list[str] = []
    for batch in store.column("id"):
        for name in batch.to_pylist():
            double += [name] if name in seen else []
            seen.add(name)
    return tuple(double)


def _difference(stored: Contributions, fresh: Contributions) -> float:
    """The largest distance between two rows, relative to the embedding's length."""
    if stored.units != fresh.units:
        return float("inf")
    pairs = [(stored.values, fresh.values), (stored.reference, fresh.reference), (stored.embedding, fresh.embedding)]
    distances = [np.linalg.norm(np.atleast_2d(a - b), axis=1).max(initial=0.0) for a, b in pairs]
    return float(max(distances) / np.linalg.norm(fresh.embedding))
