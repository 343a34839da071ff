"""Static embeddings: the embedding is a mean of token vectors, so it is its own decomposition, exact and free."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import Tensor

from pairlens.errors import InputError, ModelError
from pairlens.model.encoder import Encoder
from pairlens.model.tokenize import Text
from pairlens.quadrature.integrate import Integral
from pairlens.shapes import Array


def decompose_static(
    encoder: Encoder, texts: Sequence[Text], labels: Sequence[Sequence[int]], counts: Sequence[int], reference: str
) -> list[tuple[Integral, Array]]:
    """Contributions of groups of tokens with a zero reference: U[s] = v_s / n, before any Normalize."""
    if reference == "mask":
        raise InputError("static embeddings have no layers to put a mask token into; their reference is zero.")
    route = encoder.route(texts[0].role)
    between = route.modules[1 : len(route.modules) - route.ending]
    if between:
        raise ModelError(
            f"static embeddings followed by {type(between[0]).__name__} are not a mean of token vectors any more; "
            "pairlens explains StaticEmbedding alone or with Normalize."
        )
    weight: Tensor = route.modules[0].embedding.weight  # pyright: ignore[reportAttributeAccessIssue, reportAssignmentType]
    found = []
    for text, row, count in zip(texts, labels, counts, strict=True):
        ids = text.features["input_ids"].flatten()
        vectors = weight[ids].double().cpu().numpy() / len(ids)
        vectors = vectors[:, : encoder.truncate_dim]
        values = np.zeros((count, vectors.shape[1]))
        np.add.at(values, list(row), vectors)
        full = (weight[ids].double().mean(0)).cpu()
        output = torch.nn.functional.normalize(full, dim=-1) if route.ending else full
        embedding = vectors.sum(0)
        if not np.isfinite(embedding).all():
            raise encoder.not_finite()
        integral = Integral(values, np.zeros(len(values)), np.zeros_like(embedding), embedding, gap=0.0, nodes=0)
        found.append((integral, output[: encoder.truncate_dim].numpy()))
    return found
