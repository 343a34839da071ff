"""Statistics that several studies share: similarities, correlations, and means over rows of a table."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from scipy.stats import rankdata

from pairlens.shapes import Array

FEWEST = 3
"""Any two numbers correlate perfectly, so a correlation needs three."""
Record = dict[str, Any]
"""One row of a study's table, by the names of its columns."""


def score(a: Array, b: Array, measure: str) -> Array:
    """The similarity of embeddings, row by row; 0 for an embedding of zeros.

    Example:
        >>> score(np.array([[3.0, 0.0]]), np.array([[2.0, 0.0]]), "cosine")
        array([1.])
    """
    if measure == "cosine":
        a, b = (x / np.maximum(np.linalg.norm(x, axis=-1, keepdims=True), 1e-12) for x in (a, b))
    return (a * b).sum(-1)


def pearson(x: Array, y: Array) -> float | None:
    """Pearson's correlation of two arrays of one shape; None for fewer than three values or constant ones.

    Example:
        >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
        1.0
    """
    if np.size(x) < FEWEST:
        return None
    a, b = (np.ravel(values) - np.mean(values) for values in (x, y))
    size = np.sqrt((a**2).sum() * (b**2).sum())
    return float(np.clip(a @ b / size, -1, 1)) if size else None


def spearman(x: Array, y: Array) -> float | None:
    """Spearman's rank correlation of two arrays of one shape; None for fewer than three values or constant ones.

    Example:
        >>> spearman(np.array([1.0, 2.0, 9.0]), np.array([0.1, 0.2, 0.3]))
        1.0
        >>> spearman(np.array([1.0, 1.0, 1.0]), np.array([0.1, 0.2, 0.3])) is None
        True
    """
    return pearson(*(rankdata(np.ravel(values)) for values in (x, y)))


def mean_of(values: Iterable[float | None]) -> float | None:
    """The mean of the values that are not None, or None if there are none."""
    return spread(values)["mean"]


def spread(values: Iterable[float | None]) -> Record:
    """Mean, standard deviation and median of the values that are not None; None each if there are none.

    Example:
        >>> spread([1.0, None, 3.0])
        {'mean': 2.0, 'sd': 1.0, 'median': 2.0}
    """
    known = [value for value in values if value is not None]
    if not known:
        return {"mean": None, "sd": None, "median": None}
    return {"mean": float(np.mean(known)), "sd": float(np.std(known)), "median": float(np.median(known))}


# Rows of a table.


def means(rows: Sequence[Record], *columns: str) -> Record:
    """The mean and the standard deviation of columns, as COLUMN_mean and COLUMN_sd.

    Example:
        >>> means([{"gap": 1.0}, {"gap": 3.0}], "gap")
        {'gap_mean': 2.0, 'gap_sd': 1.0}
    """
    spreads = {column: spread(row[column] for row in rows) for column in columns}
    return {f"{column}_{name}": spreads[column][name] for column in columns for name in ("mean", "sd")}


def columns(rows: Sequence[Record], *names: str) -> tuple[Array, ...]:
    """The values of some columns, one array each.

    Example:
        >>> columns([{"layer": 0, "gap": 0.5}, {"layer": 1, "gap": 0.25}], "layer", "gap")
        (array([0, 1]), array([0.5 , 0.25]))
    """
    return tuple(np.array([row[name] for row in rows]) for name in names)


def distinct(rows: Iterable[Record], column: str) -> list[Any]:
    """The values of a column, each once, in order of appearance."""
    return list(dict.fromkeys(row[column] for row in rows))


def where(rows: Iterable[Record], **values: Any) -> list[Record]:
    """The rows whose columns have these values.

    Example:
        >>> where([{"layer": 0, "gap": 0.1}, {"layer": 1, "gap": 0.2}], layer=1)
        [{'layer': 1, 'gap': 0.2}]
    """
    return [row for row in rows if all(row[column] == value for column, value in values.items())]


def group_by(rows: Iterable[Record], *columns: str) -> dict[tuple[Any, ...], list[Record]]:
    """The rows by their values in some columns, in order of appearance.

    Example:
        >>> {key: len(rows) for key, rows in group_by([{"layer": 0}, {"layer": 1}, {"layer": 0}], "layer").items()}
        {(0,): 2, (1,): 1}
    """
    groups: dict[tuple[Any, ...], list[Record]] = {}
    for row in rows:
        groups.setdefault(tuple(row[column] for column in columns), []).append(row)
    return groups
