"""How much work a table is, so that the time that is left can be told from the first texts on."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import islice
from typing import Any

from pairlens.corpus.layout import Layout
from pairlens.corpus.records import Reject, TextRecord
from pairlens.io import InputTable

WEIGHED = 100_000
"""Rows that are weighed beforehand; each row beyond them counts as much as their mean."""
CHARACTERS = 5
"""Characters of a token, roughly. Only the ratio of two texts matters, and whether a text is cut."""
LONGER = 20_000
"""Words of a text that is longer than most models take: its tokens show how many the model takes."""


class Workload:
    """Weighs texts by the square of their tokens: a longer text has more sentences, and longer forward passes.

    Args:
        encoder: the model.
        role: of the texts.
        passages: whether what the model does not take of a text becomes further passages.
    """

    def __init__(self, encoder: Any, role: str | None, *, passages: bool) -> None:
        longest = encoder.read("a " * LONGER, role)
        self._most = len(longest.tokens) if longest.truncated else math.inf
        self._passages = passages

    def of(self, record: TextRecord | Reject) -> float:
        """The weight of a row; 0 if it is rejected."""
        if isinstance(record, Reject):
            return 0.0
        tokens = 2 + len(record.text) / CHARACTERS
        if tokens <= self._most:
            return tokens**2
        full, rest = divmod(tokens, self._most)
        return full * self._most**2 + rest**2 if self._passages else self._most**2

    def sum(self, records: Iterable[TextRecord | Reject]) -> float:
        """The weight of rows."""
        return sum(map(self.of, records))

    def mean(self, data: InputTable, layout: Layout, rows: int | None = None) -> float:
        """The mean weight of the first rows of a table, or of all."""
        first = islice(data.rows(), WEIGHED if rows is None else min(rows, WEIGHED))
        weights = [self.of(layout.read(row)) for row in first]
        return sum(weights) / max(1, len(weights))


@dataclass
class Pace:
    """How far a run is, and how fast.

    Attributes:
        count: the rows of the table, or None where counting them would take long.
        mean: the mean weight of a row.
        rows: rows that are finished.
        done: the weight of the texts that this run has decomposed.
        spared: the weight of the texts that it need not decompose, such as those of an earlier run.
    """

    count: int | None
    mean: float
    rows: int = 0
    done: float = 0.0
    spared: float = 0.0

    @property
    def total(self) -> float | None:
        """The weight of all texts that this run decomposes, where the rows of the table are known."""
        return None if self.count is None else max(self.done, self.count * self.mean - self.spared)

    def per_text(self, elapsed: float) -> float | None:
        """Seconds for a text of mean weight, from the seconds that the run took so far; None before the first text."""
        return elapsed / self.done * self.mean if self.done and self.done >= self.mean else None

    def left(self, elapsed: float) -> float | None:
        """The seconds that are left, likewise."""
        each = self.per_text(elapsed)
        return None if each is None or self.total is None else each * (self.total - self.done) / self.mean
