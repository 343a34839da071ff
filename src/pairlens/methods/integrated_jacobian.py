"""The papers' decomposition: integrate the tail's Jacobian along the straight path from a reference to the text."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from pairlens.autodiff import LIMITS, Groups, Steps, finish
from pairlens.errors import ModelError, NotConverged, choose, whole
from pairlens.linalg import length
from pairlens.methods.base import Batch, Decomposition, Method
from pairlens.methods.static import decompose_static
from pairlens.model import Encoder, Text
from pairlens.model.reference import REFERENCES, reference_token
from pairlens.model.states import TextStates
from pairlens.quadrature import Integral, Problems, Rule, first_values, integrate_in_steps
from pairlens.shapes import Array


@dataclass(frozen=True)
class IntegratedJacobian(Method):
    """Integrated Jacobians from layer ℓ to the embedding.

    Attributes:
        layer: 0, the embedding layer's output, to L, the last layer's; negative ones count from the end.
        reference: where the path starts: "padding" (the papers'), "mask" or "zero".
    """

    layer: int = 0
    reference: str = "padding"
    name = "integrated-jacobian"

    def __post_init__(self) -> None:
        choose("reference", self.reference, REFERENCES)
        # A NumPy integer becomes a plain one. The model checks the range.
        object.__setattr__(self, "layer", whole("layer", self.layer, -10_000, 10_000))

    def describe(self, encoder: Encoder, role: str | None) -> dict[str, Any]:
        """The method's own entries of a result's settings."""
        if encoder.route(role).static:
            return {"layer": 0, "reference": "zero"}
        _, token = reference_token(self.reference, encoder.route(role).reader)
        return {
            "layer": encoder.layer_index(self.layer, role),
            "reference": self.reference,
            "reference_token": token,
            **({} if encoder.matmul == "highest" else {"precision": encoder.matmul}),
        }

    def resolve(self, encoder: Encoder, role: str | None) -> IntegratedJacobian:
        """The same method with its layer counted from 0."""
        return replace(self, layer=encoder.layer_index(self.layer, role))

    def decompose(self, encoder: Encoder, batch: Batch, rule: Rule) -> list[Decomposition]:
        """One decomposition per text of the batch."""
        return finish(self.decompose_in_steps(encoder, batch, rule))

    def decompose_in_steps(self, encoder: Encoder, batch: Batch, rule: Rule) -> Steps[list[Decomposition]]:
        """As `decompose`, yielding where it would wait for a device."""
        if encoder.route(batch.role).static:
            return decompose_static(encoder, batch, self.reference)
        with encoder.running():
            states = self._states(encoder, batch.texts, batch.space)
            problems = self._problems(encoder, states)
            first = first_values(problems, rule)
            yield
            moved, embeddings, outputs = encoder.arrived(states.pending)
            # Tokens that equal the reference's (special ones at layer 0) contribute nothing and need no tangent.
            active = [sorted(set(itertools.compress(*row))) for row in zip(batch.labels, moved, strict=True)]
            compact = np.array([_renumbered(row, units) for row, units in zip(batch.labels, active, strict=True)])
            groups = tuple(map(len, active))
            problems = replace(problems, labels=torch.from_numpy(compact)[..., None], groups=groups)
            if encoder.takes_duals(batch.role):
                token_groups = Groups.cached(compact, max(groups), states.x.dtype, states.x.device)
                problems = replace(problems, token_groups=token_groups)
            integrals = yield from self._integrate(encoder, states, problems, rule, first.arrays(), embeddings)
        return [
            Decomposition.from_integral(integral, output).expand(units, count)
            for integral, output, units, count in zip(integrals, outputs, active, batch.counts, strict=True)
        ]

    def decompose_features(
        self, encoder: Encoder, text: Text, tokens: Sequence[int], *, space: str, rule: Rule
    ) -> Decomposition:
        """Contributions of the hidden dimensions of some tokens together, (width, dim)."""
        if encoder.route(text.role).static:
            raise ModelError("static embeddings have no hidden dimensions apart from the embedding's own.")
        with encoder.running():
            states = self._states(encoder, [text], space)
            _, embeddings, outputs = encoder.arrived(states.pending)
            _, count, width = states.x.shape
            # The rest of the text is one more group, so that the gap of the total can be measured.
            labels = torch.full((1, count, width), width)
            labels[0, list(tokens)] = torch.arange(width)
            cost = encoder.cost(count, text.role)
            problems = self._problems(encoder, states)
            problems = replace(problems, labels=labels, groups=(width + 1,), cost=cost, limit=0.0)
            seen = first_values(problems, rule).arrays()
            integral = finish(self._integrate(encoder, states, problems, rule, seen, embeddings))[0]
        dimensions = replace(integral, values=integral.values[:width], error=integral.error[:width])
        return Decomposition.from_integral(dimensions, outputs[0])

    def _states(self, encoder: Encoder, texts: Sequence[Text], space: str) -> TextStates:
        """The texts up to this method's layer."""
        role = texts[0].role
        if encoder.adjusted and self.reference != "padding":
            raise ModelError(
                "an adjusted model is zero at its padding reference, which its attributions rest on; "
                f"reference={self.reference!r} is for other models."
            )
        layer = encoder.layer_index(self.layer, role)
        encoder.takes_duals(role)  # The first call runs a probe, which must not come between head and tail.
        return encoder.states(texts, layer, self.reference, space)

    def _problems(self, encoder: Encoder, states: TextStates) -> Problems:
        """Return the paths of texts, without groups of tokens yet."""
        tokens, role = states.x.shape[1], states.texts[0].role
        ruled = encoder.takes_duals(role)
        # Dual numbers hold the attention scores of a few tangents at a time.
        cost, budget = encoder.cost(tokens, role, scores=not ruled), encoder.budget(tokens, role)
        limit = LIMITS[encoder.matmul] if ruled else 0.0
        return Problems(encoder.tail(states), states.x, states.r, NOWHERE, (), cost, budget, limit=limit)

    def _integrate(
        self,
        encoder: Encoder,
        states: TextStates,
        problems: Problems,
        rule: Rule,
        seen: Sequence[Array],
        embeddings: Array,
    ) -> Steps[list[Integral]]:
        """Solve the problems, and check that they end at the model's own embeddings, (texts, dim)."""
        try:
            integrals = yield from integrate_in_steps(problems, rule, seen)
        except NotConverged as error:
            text = states.texts[error.index].text
            raise NotConverged(f"in {text!r:.60} {error}", gap=error.gap, tol=error.tol) from None
        if encoder.adjusted:
            # The model subtracts its reference's embedding, so its reference is exactly zero.
            integrals = [
                replace(i, reference=np.zeros_like(i.reference), embedding=i.embedding - i.reference) for i in integrals
            ]
        _check(states, [integral.embedding for integral in integrals], embeddings)
        return integrals


NOWHERE = torch.zeros(0)
"""Labels of no groups."""


def _check(states: TextStates, reached: Iterable[Array], expected: Iterable[Array]) -> None:
    """Raise unless the tail's embeddings, (dim,) each, are the model's own."""
    for embedding, plain in zip(reached, expected, strict=True):
        miss = length(embedding - plain)
        if not miss <= 1e-3 * length(plain):
            raise ModelError(
                f"entering this model at layer {states.layer} does not reproduce its own embedding (off by "
                f"{miss:.1e}), so it would explain another function. Please report the model's family."
            )


def _renumbered(labels: Sequence[int], active: Sequence[int]) -> list[int]:
    """Return labels as places among the active ones, -1 for the others."""
    places = {group: place for place, group in enumerate(active)}
    return [places.get(group, -1) for group in labels]
