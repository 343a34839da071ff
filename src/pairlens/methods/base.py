"""What every method shares: the batch of texts that it decomposes, and the decomposition that it returns."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, NamedTuple

import numpy as np

from pairlens.autodiff import Steps
from pairlens.errors import ModelError
from pairlens.model import Text
from pairlens.quadrature import Integral, Rule
from pairlens.shapes import Array, PerUnit, Values, Vector


@dataclass(frozen=True)
class Batch:
    """Texts of one role that a method decomposes together.

    Attributes:
        texts: the texts as the model reads them; of one length unless the method deletes.
        labels: for every token of every text, the unit it belongs to; for methods that delete, `FIXED` if it stays.
        counts: how many units every text has, those without a token included.
        space: the embedding to decompose, "unit", "output" or "raw".
    """

    texts: Sequence[Text]
    labels: Sequence[Sequence[int]]
    counts: Sequence[int]
    space: str

    @property
    def role(self) -> str | None:
        """The role that all texts share."""
        return self.texts[0].role


class Trials(NamedTuple):
    """The deletions that a method tried on a text.

    Attributes:
        kept: which units stayed, (tried, units), booleans.
        embeddings: the embeddings of what was left, (tried, dim).
        predictions: these embeddings as predicted by a fit that has not seen them, (tried, dim); None where the method
            fits nothing.
        compound_predictions: likewise, with compounds; None where they were not fitted for comparison.
        weights: what each deletion counts in a forecast, (tried,); None for its share of random deletions.
    """

    kept: Array
    embeddings: Array
    predictions: Array | None = None
    compound_predictions: Array | None = None
    weights: Array | None = None


@dataclass(frozen=True)
class Decomposition:
    """One text's embedding as a reference plus one vector per unit: embedding ≈ reference + values.sum(0).

    Attributes:
        values: one vector per unit, (units, dim).
        error: an estimate of the norm of each row's error, (units,).
        reference: the embedding that the path or the deletions start from, (dim,).
        embedding: the text's embedding in the batch's space, (dim,).
        output: the model's own output for the text, (dim,).
        gap: ‖reference + Σ values - embedding‖ / ‖embedding - reference‖, measured.
        nodes: quadrature nodes, or forward passes for methods that delete.
        noise: for methods that sample, the errors as independent draws: weights (draws, units) and residuals
            (draws, dim). Draw d is off by weights[d, unit] times residuals[d].
        trials: for methods that delete, the deletions that were tried.
        compounds: groups of units that have a row of their own after those of the units.
    """

    values: Values
    error: PerUnit
    reference: Vector
    embedding: Vector
    output: Vector
    gap: float
    nodes: int
    noise: tuple[Array, Array] | None = None
    trials: Trials | None = None
    compounds: tuple[tuple[int, ...], ...] = ()

    @classmethod
    def from_integral(cls, integral: Integral, output: Array) -> Decomposition:
        """The decomposition that an integral gives, with the model's own output."""
        return cls(
            values=integral.values,
            error=integral.error,
            reference=integral.reference,
            embedding=integral.embedding,
            output=output,
            gap=integral.gap,
            nodes=integral.nodes,
        )

    def expand(self, active: Sequence[int], count: int) -> Decomposition:
        """The decomposition of `count` units and the compounds, zero for units that are not among the `active` ones."""
        rows = [*active, *range(count, count + len(self.compounds))]
        values = np.zeros((count + len(self.compounds), self.values.shape[1]))
        error = np.zeros(len(values))
        values[rows], error[rows] = self.values, self.error
        compounds = tuple(tuple(active[player] for player in group) for group in self.compounds)
        noise, trials = None, None
        if self.noise is not None:
            weights = np.zeros((len(self.noise[0]), len(values)))
            weights[:, rows] = self.noise[0]
            noise = (weights, self.noise[1])
        if self.trials is not None:
            kept = np.ones((len(self.trials.kept), len(values)), dtype=bool)
            kept[:, active] = self.trials.kept
            for row, group in enumerate(compounds, start=count):
                kept[:, row] = kept[:, group].all(1)
            trials = self.trials._replace(kept=kept)
        return replace(self, values=values, error=error, noise=noise, trials=trials, compounds=compounds)


class Method(ABC):
    """A way to decompose texts. Subclasses are frozen dataclasses whose fields are the method's options.

    Attributes:
        name: the method's name, as users write it.
        deletes: whether the method deletes units and looks at the new embedding. Such a method takes no quadrature
            rule, decomposes texts of any length together, explains functions without layers, and treats another level
            as another game, not as a sum.
    """

    name: ClassVar[str]
    deletes: ClassVar[bool] = False

    @abstractmethod
    def describe(self, encoder: Any, role: str | None) -> dict[str, Any]:
        """The method's own entries of a result's settings."""

    @abstractmethod
    def decompose(self, encoder: Any, batch: Batch, rule: Rule) -> list[Decomposition]:
        """One decomposition per text of the batch; `rule` is ignored by methods that delete."""

    def decompose_in_steps(self, encoder: Any, batch: Batch, rule: Rule) -> Steps[list[Decomposition]]:
        """As `decompose`, yielding where the method would wait for a device. By default it never waits."""
        yield from ()
        return self.decompose(encoder, batch, rule)

    def resolve(self, encoder: Any, role: str | None) -> Method:
        """The same method with its options as the model understands them, such as a layer counted from 0."""
        return self

    def with_passes(self, passes: int | None) -> Method:
        """The same method with another budget of forward passes, where it has one; None is its default budget."""
        return self

    def decompose_features(
        self, encoder: Any, text: Text, tokens: Sequence[int], *, space: str, rule: Rule
    ) -> Decomposition:
        """Contributions of the hidden dimensions of some tokens together, (width, dim)."""
        raise ModelError("only integrated-jacobian has hidden dimensions to look at.")
