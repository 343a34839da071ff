"""The papers' decomposition: integrate the tail's Jacobian along the straight path from a reference to the text."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pairlens.dual import LIMITS
from pairlens.encoder import Encoder, Heads
from pairlens.errors import ModelError, NotConverged, choose, whole
from pairlens.integrate import Integral, Problems, integrate, spread
from pairlens.methods.static import decompose_static
from pairlens.quadrature import Rule
from pairlens.reading import Text
from pairlens.reference import REFERENCES, reference_token
from pairlens.shapes import Array


@dataclass(frozen=True)
class IntegratedJacobian:
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
        # Frozen, but a NumPy integer is to be a plain one. How many layers there are, the model will say.
        object.__setattr__(self, "layer", whole("layer", self.layer, -10_000, 10_000))

    def describe(self, encoder: Encoder, role: str | None) -> dict[str, Any]:
        """What of this method belongs into a result's settings."""
        if encoder.route(role).static:
            return {"layer": 0, "reference": "zero"}
        token = reference_token(self.reference, encoder.route(role).reader)[1]
        return {
            "layer": encoder.layer_index(self.layer, role),
            "reference": self.reference,
            "reference_token": token,
            **({} if encoder.matmul == "highest" else {"precision": encoder.matmul}),
        }

    def decompose(
        self,
        encoder: Encoder,
        texts: Sequence[Text],
        labels: Sequence[Sequence[int]],
        counts: Sequence[int],
        *,
        space: str,
        rule: Rule,
    ) -> list[tuple[Integral, Array]]:
        """Contributions of groups of tokens, for texts of one length and role; see `Method`."""
        if encoder.route(texts[0].role).static:
            return decompose_static(encoder, texts, labels, counts, self.reference)
        with encoder.running():
            heads = self._heads(encoder, texts, space)
            # Tokens that are the same in the reference (special ones at layer 0) contribute nothing: no tangent there.
            moved = (heads.x != heads.r).any(-1).cpu().numpy()
            groups = np.array([list(row) for row in labels])
            active = [np.unique(row[kept]).tolist() for row, kept in zip(groups, moved, strict=True)]
            compact = [
                [places.get(group, -1) for group in row.tolist()]
                for row, places in zip(groups, ({g: i for i, g in enumerate(own)} for own in active), strict=True)
            ]
            marks = torch.tensor(compact, device=heads.x.device)[..., None]
            integrals = self._integrate(encoder, heads, marks, tuple(map(len, active)), rule)
        rows = [spread(*parts) for parts in zip(integrals, active, counts, strict=True)]
        return list(zip(rows, heads.output.double().cpu().numpy(), strict=True))

    def features(
        self, encoder: Encoder, text: Text, tokens: Sequence[int], *, space: str, rule: Rule
    ) -> tuple[Integral, Array]:
        """Contributions of the hidden dimensions of some tokens together, (width, dim), and the model's own output."""
        with encoder.running():
            heads = self._heads(encoder, [text], space)
            _, count, width = heads.x.shape
            # All the rest is a group too, so that the total can be measured.
            labels = torch.full((1, count, width), width, device=heads.x.device)
            labels[0, list(tokens)] = torch.arange(width, device=heads.x.device)
            integral = self._integrate(encoder, heads, labels, (width + 1,), rule)[0]
        own = replace(integral, values=integral.values[:width], error=integral.error[:width])
        return own, heads.output[0].double().cpu().numpy()

    def _heads(self, encoder: Encoder, texts: Sequence[Text], space: str) -> Heads:
        """The texts up to this method's layer."""
        role = texts[0].role
        if encoder.adjusted and self.reference != "padding":
            raise ModelError(
                "an adjusted model is zero at its padding reference, which its attributions rest on; "
                f"reference={self.reference!r} is for other models."
            )
        layer = encoder.layer_index(self.layer, role)
        encoder.takes_duals(role)  # The first time this runs a probe, which must not come between head and tail.
        return encoder.heads(texts, layer, self.reference, space)

    def _integrate(
        self, encoder: Encoder, heads: Heads, labels: Tensor, groups: tuple[int, ...], rule: Rule
    ) -> list[Integral]:
        size = heads.x.shape[1], heads.texts[0].role
        tail = encoder.tail(heads)
        push = tail.derivatives if labels.shape[-1] == 1 and encoder.takes_duals(heads.texts[0].role) else None
        # Rules for tangents hold the scores of a few at a time.
        cost, budget = encoder.cost(*size, scores=push is None), encoder.budget(*size)
        limit = 0.0 if push is None else LIMITS[encoder.matmul]
        problems = Problems(tail, heads.x, heads.r, labels, groups, cost, budget, push, limit)
        try:
            integrals = integrate(problems, rule)
        except NotConverged as error:
            text = heads.texts[error.index].text
            raise NotConverged(f"in {text!r:.60} {error}", gap=error.gap, tol=error.tol) from None
        if encoder.adjusted:
            # The model subtracts its reference's embedding, which leaves exactly nothing of it.
            integrals = [
                replace(i, reference=np.zeros_like(i.reference), embedding=i.embedding - i.reference) for i in integrals
            ]
        for integral, plain in zip(integrals, heads.embedding.double().cpu().numpy(), strict=True):
            miss = np.linalg.norm(integral.embedding - plain)
            if not miss <= 1e-3 * np.linalg.norm(plain):
                raise ModelError(
                    f"entering this model at layer {heads.layer} does not reproduce its own embedding (off by "
                    f"{miss:.1e}), so it would explain another function. Please report the model's family."
                )
        return integrals
