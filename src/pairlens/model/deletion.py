"""Deletion of units, embedded in batches: the plain forward passes of a loaded model.

The units of a text are the players. Special tokens and the prompt are no players: they always stay, so of the empty
subset the special tokens are left. Texts with tokens deleted run in batches of one length. Whole texts and texts whose
tokens have gates (Fade) use the same passes.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pairlens import progress
from pairlens.linalg import FastLinear
from pairlens.model.gates import Gates, Positions, gated
from pairlens.model.loaded import LoadedModel
from pairlens.model.pooling import pooling_weights
from pairlens.model.protocol import FIXED, Deletions
from pairlens.model.reference import reference_ids, reference_token
from pairlens.model.route import Route
from pairlens.model.tokenize import Text
from pairlens.quadrature import BUDGET
from pairlens.shapes import Array, Embeddings, Rows

PASSES = 4096
"""Tokens per forward pass: enough for fast matrix products, few enough for memory."""
STEP = 2e10
"""Operations per step where progress is reported: a fraction of a second on one core."""


class TokenDeletions:
    """Deletion of token ids; the tokens that are left move together.

    Args:
        embed: takes, for every forward pass, the index of its text and which tokens stay; returns (passes, dim).
        texts: texts of one role.
        labels: for every token of every text, the unit it belongs to, or `FIXED`.
    """

    def __init__(
        self,
        embed: Callable[[Sequence[int], Sequence[Array]], Array],
        texts: Sequence[Text],
        labels: Sequence[Sequence[int]],
    ) -> None:
        self._embed = embed
        self.players: list[list[int]] = []
        self.sizes: list[Array] = []
        self.fixed: list[int] = []
        self._members: list[Array] = []
        for text, row in zip(texts, labels, strict=True):
            free = ~np.array(text.kept) & (np.array(row) != FIXED)
            players = sorted({unit for unit, is_free in zip(row, free, strict=True) if is_free})
            self.players.append(players)
            self._members.append((np.array(players)[:, None] == np.array(row)) & free)
            self.sizes.append(self._members[-1].sum(1))
            self.fixed.append(list(row).count(FIXED))

    def embeddings(self, subsets: Sequence[Array]) -> list[Array]:
        """Return the embeddings of what is left: for every text, (subsets, players) booleans to (subsets, dim)."""
        counts = [len(rows) for rows in subsets]
        passes = np.repeat(np.arange(len(subsets)), counts)
        keeps = [
            ~deleted
            for rows, members in zip(subsets, self._members, strict=True)
            for deleted in (~rows).astype(int) @ members > 0
        ]
        return np.split(self._embed(passes.tolist(), keeps), np.cumsum(counts)[:-1])


class ForwardPasses(LoadedModel):
    """A loaded model with its plain forward passes, in batches that fit into memory.

    Attributes:
        matmul: how exactly derivatives and texts with deletions are computed, one of `autodiff.PRECISIONS`.
    """

    matmul: str = "highest"

    def deletions(self, texts: Sequence[Text], labels: Sequence[Sequence[int]], space: str) -> Deletions:
        """Return the embeddings of texts of one role with units deleted; see `EmbeddingModel.deletions`."""
        encode = self._encode_rounded if self.matmul == "bf16" else self.encode
        return TokenDeletions(lambda rows, keeps: encode(texts, rows, keeps, space), texts, labels)

    def outputs(self, texts: Sequence[Text]) -> Array:
        """Return the model's own embeddings of texts of one role, (texts, dim)."""
        whole = [np.ones(len(text.tokens), dtype=bool) for text in texts]
        return self.encode(texts, range(len(texts)), whole, "output")

    def encode(self, texts: Sequence[Text], rows: Sequence[int], keeps: Sequence[Array], space: str) -> Array:
        """Return embeddings of texts of one role with tokens deleted, (passes, dim); the tokens left close up.

        Args:
            texts: the texts.
            rows: for every pass, which text it is over.
            keeps: for every pass, which tokens of that text are kept, booleans.
            space: the embedding wanted.
        """
        route = self.route(texts[0].role)
        lengths = np.array([int(keep.sum()) for keep in keeps])
        embeddings, steps = np.zeros((0, 0)), progress.Steps(lengths.sum())
        with self._lock:
            for length in np.unique(lengths):
                places = np.flatnonzero(lengths == length)
                size = max(1, self._stride(route) // max(1, int(length)))
                for start in range(0, len(places), size):
                    part = places[start : start + size]
                    with torch.inference_mode(), FastLinear():
                        embedding = self._encode(route, [texts[rows[i]] for i in part], [keeps[i] for i in part], space)
                    if not embeddings.size:
                        embeddings = np.zeros((len(keeps), embedding.shape[1]))
                    embeddings[part] = embedding.double().cpu().numpy()
                    steps.advance(len(part) * length)
        if not np.isfinite(embeddings).all():
            raise self.not_finite()
        return embeddings

    def _encode_rounded(self, texts: Sequence[Text], rows: Sequence[int], keeps: Sequence[Array], space: str) -> Array:
        """Return what `encode` does, computed in bfloat16 and moved by what that changes in the whole text.

        The rounding errors of a text and of the same text without some words are much alike.
        """
        with torch.autocast(self.device.type, torch.bfloat16):
            rounded = self.encode(texts, rows, keeps, space)
        used = sorted(set(rows))
        whole = [np.ones(len(texts[row].tokens), dtype=bool) for row in used]
        with torch.autocast(self.device.type, torch.bfloat16):
            off = -self.encode(texts, used, whole, space)
        off += self.encode(texts, used, whole, space)
        return rounded + off[np.searchsorted(used, rows)]

    def faded(
        self,
        texts: Sequence[Text],
        rows: Rows,
        gates: Gates,
        positions: Positions,
        space: str,
        ids: Tensor | None = None,
    ) -> Embeddings:
        """Return embeddings of texts of one length and role whose tokens have gates.

        Args:
            texts: the texts.
            rows: for every pass, which text it is over.
            gates: for every pass, its tokens' gates.
            positions: the modules whose positions close up as tokens fade.
            space: the embedding wanted.
            ids: token ids that replace those of the texts, (texts, tokens).
        """
        route = self.route(texts[0].role)
        features = self._features(texts, rows)
        if ids is not None:
            features["input_ids"] = ids.to(self.device)[rows]
        with gated(gates, positions, route.layers):
            ran = route.run(features, 0, 1)
        weights = pooling_weights(gates, self.pooling(route.role), closing_up=bool(positions))
        return self._finish(route, {**ran, "attention_mask": weights}, space)

    def cost(self, tokens: int, role: str | None = None, *, scores: bool = True) -> int:
        """Return roughly the bytes that a forward pass over one text keeps alive, with or without its `scores`."""
        inner, heads = self.route(role).widths
        return tokens * max(inner, heads * tokens if scores else 0) * 4 * torch.finfo(self.dtype).bits // 8

    def effort(self, role: str | None = None) -> float:
        """Return roughly how many operations a forward pass takes per token."""
        inner, _ = self.route(role).widths
        # A layer multiplies each token by 12 square matrices of the hidden width, which is a quarter of the inner one.
        return 1.5 * inner**2 * max(1, self.layers(role))

    def budget(self, tokens: int, role: str | None = None) -> int:
        """Return the bytes that intermediate results of one chunk may take; fewer where progress is reported."""
        budget = self._room
        if not progress.watched():
            return budget
        return min(budget, self.cost(tokens, role) * max(2, self._stride(self.route(role)) // tokens))

    @functools.cached_property
    def _room(self) -> int:
        """Bytes that one chunk may take: a quarter of a CUDA device's free memory, on a CPU what its caches hold."""
        return torch.cuda.mem_get_info(self.device)[0] // 4 if self.device.type == "cuda" else BUDGET

    def _stride(self, route: Route) -> int:
        """Return the number of tokens per forward pass."""
        if not progress.watched():
            return PASSES
        return min(PASSES, int((STEP if self.device.type == "cpu" else 50 * STEP) / self.effort(route.role)))

    def _encode(self, route: Route, texts: Sequence[Text], keeps: Sequence[Array], space: str) -> Tensor:
        """Return embeddings of texts that have one length after deletion, from one batch."""
        if route.static:
            weight: Tensor = route.modules[0].embedding.weight  # pyright: ignore[reportAttributeAccessIssue, reportAssignmentType]
            kept = [
                text.features["input_ids"].flatten()[torch.as_tensor(keep)]
                for text, keep in zip(texts, keeps, strict=True)
            ]
            means = [weight[ids].mean(0) if len(ids) else torch.zeros_like(weight[0]) for ids in kept]
            return self._finish(route, {"sentence_embedding": torch.stack(means)}, space)
        inputs = [self._kept(text.features, keep) for text, keep in zip(texts, keeps, strict=True)]
        features = {
            name: torch.cat([row[name] for row in inputs]).to(self.device) if isinstance(value, Tensor) else value
            for name, value in inputs[0].items()
        }
        ran = route.run(dict(features), 0, 1)
        if not self.adjusted:
            return self._finish(route, ran, space)
        token, _ = reference_token("padding", route.reader)
        ids = [reference_ids(text, token) for text in texts]
        kept = [row[torch.as_tensor(keep)] for row, keep in zip(ids, keeps, strict=True)]
        features["input_ids"] = torch.stack(kept).to(self.device)
        reference = self._before_ending(route, route.run(features, 0, 1))
        return self._end_shifted(route, self._before_ending(route, ran) - reference, space)

    def _kept(self, features: dict[str, Any], keep: Array) -> dict[str, Any]:
        """Return the features of the kept tokens alone."""
        columns = torch.as_tensor(np.flatnonzero(keep))
        return {
            name: value[:, columns]
            if isinstance(value, Tensor) and value.ndim == 2 and value.shape[1] == len(keep)
            else value
            for name, value in features.items()
        }
