"""Sums of all contributions of texts, rule by rule, for the study of convergence.

The error of an explanation depends on the sum of all contributions of each text alone, so that each text is decomposed
as a single unit: one tangent per point.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from pairlens.attribution.contributions import Contributions
from pairlens.attribution.similarity import explain, space_for
from pairlens.errors import InputError, NotConverged, ReferenceWarning, TruncationWarning
from pairlens.methods import Batch, Decomposition
from pairlens.methods.integrated_jacobian import IntegratedJacobian
from pairlens.model import Text
from pairlens.quadrature import NodeTable, Riemann, Rule
from pairlens.study.materials import Materials
from pairlens.study.statistics import Record
from pairlens.study.views import View
from pairlens.text import Unit


@dataclass(frozen=True)
class Odd(Riemann):
    """The nodes that n equal steps have and n/2 do not: their sum plus half the sum of n/2 steps is that of n steps."""

    def table(self) -> NodeTable:
        """The new nodes, with the weights of n steps."""
        nodes = (np.arange(1, self.n + 1) / self.n)[:: 2 if self.n > 1 else 1]
        weights = np.full(len(nodes), 1 / self.n)
        return NodeTable(nodes, weights, weights)


class Totals:
    """The sums of all contributions of some texts by the rule applied last; texts of one length share a batch.

    Args:
        materials: the model and the measure.
        view: the layer and the reference terms.
        texts: the texts.
    """

    def __init__(self, materials: Materials, view: View, texts: Iterable[str]) -> None:
        self.encoder: Any = materials.lens.encoder
        self._method = IntegratedJacobian(view.layer or 0)
        self._terms, self._measure = view.reference_terms, str(materials.measure)
        self._space = self.encoder.space(None, space_for(self._terms, self._measure))
        self._sums: dict[str, Decomposition] = {}
        self._unread: dict[str, str] = {}
        self._groups: dict[int, list[Text]] = {}
        for text in texts:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", TruncationWarning)
                    read = self.encoder.read(text)
                self._groups.setdefault(len(read.tokens), []).append(read)
            except InputError as error:
                self._unread[text] = str(error)

    def unread(self, a: str, b: str) -> str | None:
        """The reason why a pair cannot be read, or None if it can."""
        sides = (("a", a), ("b", b))
        return next((f"text {side}: {self._unread[text]}" for side, text in sides if text in self._unread), None)

    def apply(self, rule: Rule) -> None:
        """Apply a rule; a text for which the rule does not reach its tolerance keeps its former sum."""
        for group in self._groups.values():
            self._apply(group, rule)

    def _apply(self, group: Sequence[Text], rule: Rule) -> None:
        labels = [[0] * len(text.tokens) for text in group]
        try:
            solved = self._method.decompose(self.encoder, Batch(group, labels, [1] * len(group), self._space), rule)
        except NotConverged:
            # In single precision the tightest tolerances are out of reach at the first layers. Halving the group finds
            # the texts that do not reach them.
            middle = len(group) // 2
            for half in (group[:middle], group[middle:]) if middle else ():
                self._apply(half, rule)
            return
        self._sums |= {text.text: decomposition for text, decomposition in zip(group, solved, strict=True)}

    def refine(self, count: int) -> None:
        """Apply `count` equal steps, a power of two, after half as many: only the new nodes are computed."""
        before = {text: done.values / 2 for text, done in self._sums.items()} if count > 1 else {}
        self.apply(Odd(count))
        for text, done in self._sums.items():
            self._sums[text] = replace(done, values=before.get(text, 0.0) + done.values, nodes=count)

    def compare(self, a: str, b: str) -> Record:
        """The papers' error and the gap of a pair, with the points per text."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReferenceWarning)
            e = explain(
                self._contributions(a), self._contributions(b), reference_terms=self._terms, measure=self._measure
            )
        points = (self._sums[a].nodes + self._sums[b].nodes) / 2
        return {"points": points, "error": abs(e.gap), "gap": (e.gap_a + e.gap_b) / 2}

    def _contributions(self, text: str) -> Contributions:
        """The sum of a text, as the contributions of one unit."""
        done = self._sums[text]
        target = done.embedding - done.reference
        size = float(np.linalg.norm(target))
        return Contributions(
            text=text,
            units=(Unit(text, 0, len(text)),),
            tokens=(),
            values=done.values,
            error=np.zeros(1),
            reference=done.reference,
            embedding=done.embedding,
            output=done.output.astype(np.float64),
            gap=float(np.linalg.norm(done.values[0] - target)) / size if size else 0.0,
            settings={"space": self._space},
        )
