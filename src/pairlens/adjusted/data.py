"""Pairs of texts with a score from 0 to 1, to train on and to measure with."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pairlens.errors import InputError
from pairlens.io import PairRow, PairTable

SHOWN = 3  # lines that an error names
Data = str | Path | Iterable[tuple[str, str, float]]


@dataclass(frozen=True)
class ScoredPairs:
    """Pairs of texts and how similar people find them, from 0 to 1.

    Attributes:
        name: the file or dataset that they come from.
        a: the first text of every pair.
        b: the second text of every pair.
        scores: from 0 to 1.
        max_score: what the scores were divided by.
    """

    name: str
    a: Sequence[str]
    b: Sequence[str]
    scores: Sequence[float]
    max_score: float

    def __len__(self) -> int:
        return len(self.scores)

    def fingerprint(self) -> str:
        """Return a hash of the pairs and their scores."""
        content = json.dumps([list(self.a), list(self.b), list(self.scores)])
        return hashlib.sha256(content.encode()).hexdigest()

    def describe(self) -> dict[str, Any]:
        """Return name, number, scale and hash of the pairs, for the record."""
        return {"name": self.name, "pairs": len(self), "max_score": self.max_score, "sha256": self.fingerprint()}


def read_pairs(
    data: Data,
    *,
    split: str = "train",
    columns: tuple[str, str] | None = None,
    score: str | None = None,
    max_score: float | None = None,
) -> ScoredPairs:
    """Return scored pairs from a table, a hub dataset or a list.

    Args:
        data: a file (.csv, .tsv, .jsonl, .parquet), a hub dataset (`owner/name`, `owner/name/configuration`; a colon
            adds another split than `split`, `owner/name:dev`), or triples of two texts and a score.
        split: the split of a hub dataset.
        columns: the names of the two columns of texts; None to find them.
        score: the name of the column of scores; None to find it.
        max_score: what the scores are divided by; None is 5 where any score is above 1, else 1.

    Example:
        >>> read_pairs([("A cat.", "A dog.", 2.5), ("A cat.", "A cat.", 5)]).scores
        [0.5, 1.0]
    """
    if isinstance(data, str | Path):
        name, rows = _from_table(str(data), split, columns, score)
    else:
        name, rows = "given pairs", _from_triples(data)
    _refuse(name, [(row, row.reason or "the score is missing") for row in rows if row.reason or row.score is None])
    scores = [row.score for row in rows if row.score is not None]
    if not scores:
        raise InputError(f"{name} holds no pairs.")
    if max_score is None:
        max_score = 5.0 if max(scores) > 1 else 1.0
    if not max_score > 0 or not math.isfinite(max_score):
        raise InputError(f"max_score is a number above 0, not {max_score!r}.")
    outside = [row for row, value in zip(rows, scores, strict=True) if not 0 <= value <= max_score]
    _refuse(name, [(row, f"the score {row.score:g} is not between 0 and {max_score:g}") for row in outside])
    scaled = [value / max_score for value in scores]
    return ScoredPairs(name, [row.a for row in rows], [row.b for row in rows], scaled, float(max_score))


def check_evaluation(pairs: ScoredPairs) -> ScoredPairs:
    """Return the pairs, or raise if all scores are the same, so that no rank correlation exists."""
    if len(set(pairs.scores)) < 2:
        raise InputError(f"all scores of {pairs.name} are the same, so that nothing can be measured with them.")
    return pairs


def _from_table(
    given: str, split: str, columns: tuple[str, str] | None, score: str | None
) -> tuple[str, list[PairRow]]:
    """Return the name and the rows of a file or a hub dataset."""
    name, colon, end = given.rpartition(":")
    # A drive's letter or a file's name may hold a colon too.
    if colon and "/" in name and "/" not in end and not Path(given).exists():
        given, split = name, end
    table = PairTable(Path(given).expanduser(), columns, score, split)
    return f"{given}:{split}" if table.dataset else given, list(table.rows())


def _from_triples(data: Iterable[tuple[str, str, float]]) -> list[PairRow]:
    """Return triples of two texts and a score as rows."""
    rows = []
    for number, given in enumerate(data, 1):
        triple: list[Any] = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
        if len(triple) != 3 or not all(isinstance(text, str) and text.strip() for text in triple[:2]):
            raise InputError(f"pair {number} is not two texts and a score, but {given!r:.60}.")
        try:
            rows.append(PairRow(number, number, triple[0], triple[1], score=float(triple[2])))
        except (TypeError, ValueError):
            raise InputError(f"the score of pair {number} is not a number, but {triple[2]!r:.40}.") from None
    return rows


def _refuse(name: str, wrong: Sequence[tuple[PairRow, str]]) -> None:
    """Raise if there are rows that cannot be used, naming the first three."""
    if not wrong:
        return
    lines = "; ".join(f"line {row.line}: {reason}" for row, reason in wrong[:SHOWN])
    more = f"; and {len(wrong) - SHOWN} more" if len(wrong) > SHOWN else ""
    raise InputError(f"{name} cannot be used: {lines}{more}. Every row needs two texts and a score.")
