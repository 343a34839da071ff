"""Static embeddings: the embedding is a mean of token vectors, so it is its own decomposition, exact and free."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from pairlens.errors import InputError, ModelError
from pairlens.methods.base import Batch, Decomposition
from pairlens.model import Encoder


def decompose_static(encoder: Encoder, batch: Batch, reference: str) -> list[Decomposition]:
    """Contributions of units with a zero reference: U[s] = v_s / n, before any Normalize."""
    if reference == "mask":
        raise InputError("static embeddings have no layers to put a mask token into; their reference is zero.")
    route = encoder.route(batch.role)
    between = route.modules[1 : len(route.modules) - route.ending]
    if between:
        raise ModelError(
            f"static embeddings followed by {type(between[0]).__name__} are not a mean of token vectors any more; "
            "pairlens explains StaticEmbedding alone or with Normalize."
        )
    weight: Tensor = route.modules[0].embedding.weight  # pyright: ignore[reportAttributeAccessIssue, reportAssignmentType]
    decompositions = []
    for text, labels, count in zip(batch.texts, batch.labels, batch.counts, strict=True):
        ids = text.features["input_ids"].flatten()
        vectors = weight[ids].double().cpu().numpy() / len(ids)
        vectors = vectors[:, : encoder.truncate_dim]
        values = np.zeros((count, vectors.shape[1]))
        np.add.at(values, list(labels), vectors)
        mean = weight[ids].double().mean(0).cpu()
        output = torch.nn.functional.normalize(mean, dim=-1) if route.ending else mean
        embedding = vectors.sum(0)
        if not np.isfinite(embedding).all():
            raise encoder.not_finite()
        decompositions.append(
            Decomposition(
                values=values,
                error=np.zeros(len(values)),
                reference=np.zeros_like(embedding),
                embedding=embedding,
                output=output[: encoder.truncate_dim].numpy(),
                gap=0.0,
                nodes=0,
            )
        )
    return decompositions
