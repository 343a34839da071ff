"""A SentenceTransformer seen as head (text to hidden states of layer ℓ) and tail (those states to the embedding)."""

from __future__ import annotations

import contextlib
import functools
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp

from pairlens import progress
from pairlens.autodiff import dual
from pairlens.autodiff.graphs import Graphs
from pairlens.autodiff.modes import capturing, differentiable
from pairlens.autodiff.streams import Lanes, Pending
from pairlens.autodiff.tail import Tail, Then
from pairlens.errors import ModelError
from pairlens.model.deletion import Deletions, TokenDeletions
from pairlens.model.gates import Gates, Positions, gated, pooling_weights
from pairlens.model.loaded import PROBE, LoadedModel
from pairlens.model.reference import reference_ids, reference_key, reference_token
from pairlens.model.route import Route
from pairlens.model.states import Heads, Start, first_rows
from pairlens.model.tokenize import Text, batch
from pairlens.model.weight_cache import WeightCache
from pairlens.quadrature.paths import BUDGET
from pairlens.quadrature.planner import Habit
from pairlens.shapes import Array, Embeddings, Rows, States

PASSES = 4096
"""Tokens that plain forward passes take at a time: large enough for the matrix products, small enough for memory."""
STEP = 2e10
"""Operations that a step takes where somebody watches: a fraction of a second on one core."""


class Encoder(LoadedModel):
    """One model, ready to be entered at any layer. The caller's model is never changed.

    Args:
        model: None, a hub id, a path or a SentenceTransformer.
        device: where to compute; the model's own device by default.
        dtype: torch.float32 or torch.float64.
        matmul: how exactly tangents are multiplied, see `dual.precision`.

    Attributes:
        habits: what methods have found most texts to need. Forks share them. They are kept when weights change: a habit
            that no longer fits costs time, never the tolerance.
    """

    has_layers = True
    finest_level = "token"

    def __init__(
        self, model: Any = None, *, device: Any = None, dtype: torch.dtype = torch.float32, matmul: str = "highest"
    ) -> None:
        super().__init__(model, device=device, dtype=dtype)
        self.matmul = matmul
        self._graphs, self._memory = Graphs(self.device), WeightCache()
        self.habits: dict[Hashable, Habit | None] = {}
        self._lanes = Lanes(self.device) if self.device.type == "cuda" else None

    def fork(self) -> Encoder:
        """Another encoder on the same weights, for another thread."""
        other: Encoder = super().fork()
        other._graphs, other._memory = Graphs(self.device), WeightCache()
        other._lanes = Lanes(self.device) if self._lanes else None
        return other

    def is_static(self, role: str | None) -> bool:
        """Whether texts of this role are embedded as a mean of token vectors, without layers."""
        return self.route(role).static

    @property
    def concurrent_batches(self) -> int:
        """How many batches may run beside each other: 2 on a CUDA device, as a pair's texts rarely have one length."""
        return 1 if self._lanes is None else 2

    def forget(self) -> None:
        """Forget the references' states: what comes next costs what it costs the first time."""
        self._memory.forget()

    def lanes(self, count: int) -> list[AbstractContextManager[object]]:
        """Contexts in which so many works do not stand in one another's way."""
        return [contextlib.nullcontext()] * count if self._lanes is None else [*self._lanes.take(count)]

    # Head.

    def heads(self, texts: Sequence[Text], layer: int, reference: str, space: str) -> Heads:
        """Texts of one length and role, up to layer ℓ: each layer runs once per text, and once per reference.

        Args:
            texts: the texts.
            layer: the layer.
            reference: where the paths start, "padding", "mask" or "zero".
            space: the embedding wanted.
        """
        with self._lock, _plainly():
            start = self._start(texts, layer, reference, space)

            def run(*given: Tensor) -> tuple[Tensor, ...]:
                x, r, _, ends = self._run_head(start, given)
                return torch.stack([x, r]), *ends

            if self._capturable(start.route) and self._graphs.take(start.features["input_ids"].numel()):
                ((x, r),), pending = self._graphs.run(("head", start.name), run, start.inputs, wanted=4)
            else:
                (x, r), *ends = run(*[own.to(self.device) for own in start.inputs])
                pending = Pending(*ends)
        tap = start.route.tap
        return Heads(tuple(texts), layer, space, x, r, start.own, tap.handed if tap else (), pending)

    def launch(self, texts: Sequence[Text], layer: int, reference: str, space: str, then: Then) -> Pending:
        """As `heads` with what is wanted then, where that is `launched`: nothing stays on the device; see `arrived`."""
        with self._lock, _plainly():
            start = self._start(texts, layer, reference, space)

            def run(*given: Tensor) -> tuple[Tensor, ...]:
                x, r, own, ends = self._run_head(start, given[: len(start.inputs)])
                tail = self._tail(start.route, layer, space, own, start.route.tap.handed if start.route.tap else ())
                return *ends, then.work(tail, x, r, given[len(start.inputs) :])

            inputs = [*start.inputs, *then.inputs]
            return self._graphs.run(("head and tail", start.name, then.name), run, inputs, wanted=5)[1]

    def arrived(self, pending: Pending) -> list[Array]:
        """Which tokens move, (texts, tokens), the texts' embeddings in the space and as put out, (texts, dim).

        Behind them the embeddings of their references in the space, as far as the model has them (`has_starts`), else
        zeros; and what was to be computed then, if anything was.
        """
        found = pending.arrays()
        if not (np.isfinite(found[1]).all() and np.isfinite(found[2]).all()):
            raise self.not_finite()
        return found

    def has_starts(self, reference: str) -> bool:
        """Whether references are texts to the model: its own embeddings of them are where the paths start."""
        return reference != "zero" and not self.adjusted

    def launched(self, tokens: int, role: str | None = None) -> bool:
        """Whether work on so many tokens, those of all tangents counted, is one captured launch."""
        return self._capturable(self.route(role)) and self._graphs.take(tokens)

    def _start(self, texts: Sequence[Text], layer: int, reference: str, space: str) -> Start:
        """What texts and their references need to run together."""
        route = self.route(texts[0].role)
        if layer > 0 and route.pools_layers:
            raise ModelError("the model pools the states of all its layers, so only layer 0 determines its embedding.")
        token, _ = reference_token(reference, route.reader)
        ids = [reference_ids(text, token) for text in texts]
        keys = [reference_key(text, own, layer) for text, own in zip(texts, ids, strict=True)]
        known = self._remembered(route, dict(zip(keys, zip(texts, ids, strict=True), strict=True)), layer, space)
        # References that are not known yet run with the texts, in one batch; those that are, come behind it.
        fresh = {key: row for row, key in enumerate(keys) if key not in known}
        rows = {key: row for row, key in enumerate([*fresh, *known], len(texts))}
        # A text that is its own reference goes nowhere, not even by a rounding error.
        same = [torch.equal(own, text.features["input_ids"][0]) for own, text in zip(ids, texts, strict=True)]
        places = torch.tensor([row if same[row] else rows[key] for row, key in enumerate(keys)])
        others = [texts[row].features_with(ids[row]) for row in fresh.values()]
        features = batch([*(text.features for text in texts), *others])
        kept = torch.tensor([text.kept for text in texts]) if reference == "zero" else None
        return Start(route, layer, space, features, places, [*known.values()], kept, self.truncate_dim)

    def _run_head(
        self, start: Start, given: Sequence[Tensor]
    ) -> tuple[States, States, dict[str, Any], tuple[Tensor, ...]]:
        """Texts' states and those of their references, the texts' own features, and what `arrived` tells.

        Args:
            start: what runs.
            given: its inputs on the device.
        """
        route, count = start.route, len(start.places)
        places, features, kept = start.filled(given)
        with self._passing():
            states, ran = self._record(route, features, start.layer)
            x, r = states[:count], _behind(states, [own for own, _ in start.known])[places]
            if kept is not None:
                r = torch.where(kept[..., None], r, 0)
            if self.adjusted:
                whole = self._before_ending(route, ran)
                shifted = whole[:count] - whole[places]
                embedding, output = (self._end_shifted(route, shifted, name) for name in (start.space, "output"))
                begin = torch.zeros_like(embedding)
            else:
                whole = self._finish(route, ran, start.space)
                embedding, begin = whole[:count], _behind(whole, [own for _, own in start.known])[places]
                same = start.space == self.space(route.role, "output")
                output = embedding if same else self._finish(route, ran, "output")[:count]
        ends = (x != r).any(-1), embedding, output, torch.zeros_like(begin) if kept is not None else begin
        return x, r, first_rows(features, count), ends

    def _record(self, route: Route, features: dict[str, Any], layer: int) -> tuple[States, dict[str, Any]]:
        """States at a layer, (rows, tokens, width), and what the transformer puts out."""
        assert route.tap is not None
        ran, inputs = route.tap.record(lambda: self._uncovered(route, features))
        return ran["token_embeddings"] if layer == route.layers else inputs[layer], ran

    def _passing(self) -> AbstractContextManager[None]:
        """A context for plain passes; on a CUDA device with the fastest attention, one kernel instead of eight."""
        return differentiable(attention=self.device.type != "cuda")

    def _remembered(
        self, route: Route, references: Mapping[Hashable, tuple[Text, Tensor]], layer: int, space: str
    ) -> dict[Hashable, tuple[Tensor, Tensor]]:
        """States of references at a layer, (tokens, width), and their embeddings, (dim,), from before where known.

        Those of one length are the same for all texts; each is computed by itself, so that it does not depend on what
        else there is. Nothing is remembered where it would not pay, or might not hold: on CUDA devices, where a text
        and its reference in one captured batch take no longer than the text alone and looking at the weights would; of
        adjusted models, whose references' embeddings change too; of models with hooks, which may do anything.
        """
        if self.device.type == "cuda" or self.adjusted or route.hooked:
            return {}
        self._memory.check(self._twin)

        def compute(key: Hashable) -> dict[Hashable, Tensor]:
            text, ids = references[key]
            features = self._features([text.replaced(ids)], torch.zeros(1, dtype=torch.long))
            with self._passing():
                states, ran = self._record(route, features, layer)
                return {(route.role, key): states[0], (route.role, key, space): self._finish(route, ran, space)[0]}

        def known(key: Hashable, *more: str) -> Tensor:
            return self._memory.look_up((route.role, key, *more), lambda: compute(key))

        return {key: (known(key), known(key, space)) for key in references}

    # Deletion.

    def deletions(self, texts: Sequence[Text], labels: Sequence[Sequence[int]], space: str) -> Deletions:
        """Return the embeddings of texts of one role with units deleted; `labels` has the unit of every token."""
        return TokenDeletions(lambda rows, keeps: self.encode(texts, rows, keeps, space), texts, labels)

    def outputs(self, texts: Sequence[Text]) -> Array:
        """The model's own embeddings of texts of one role, (texts, dim)."""
        whole = [np.ones(len(text.tokens), dtype=bool) for text in texts]
        return self.encode(texts, range(len(texts)), whole, "output")

    def encode(self, texts: Sequence[Text], rows: Sequence[int], keeps: Sequence[Array], space: str) -> Array:
        """Plain forward passes over texts of one role with tokens taken out, those left closing up, (passes, dim).

        Args:
            texts: the texts.
            rows: for every pass, which text it is over.
            keeps: for every pass, which tokens of that text stay, booleans.
            space: the embedding wanted.
        """
        route = self.route(texts[0].role)
        lengths = np.array([int(keep.sum()) for keep in keeps])
        found, steps = np.zeros((0, 0)), progress.Steps(lengths.sum())
        with self._lock:
            for length in np.unique(lengths):
                places = np.flatnonzero(lengths == length)
                size = max(1, self._stride(route) // max(1, int(length)))
                for start in range(0, len(places), size):
                    part = places[start : start + size]
                    with torch.inference_mode():
                        embedding = self._encode(route, [texts[rows[i]] for i in part], [keeps[i] for i in part], space)
                    if not found.size:
                        found = np.zeros((len(keeps), embedding.shape[1]))
                    found[part] = embedding.double().cpu().numpy()
                    steps.advance(len(part) * length)
        if not np.isfinite(found).all():
            raise self.not_finite()
        return found

    # Fading.

    def faded(
        self,
        texts: Sequence[Text],
        rows: Rows,
        gates: Gates,
        positions: Positions,
        space: str,
        ids: Tensor | None = None,
    ) -> Embeddings:
        """Embeddings of texts of one length and role whose tokens have gates.

        Args:
            texts: the texts.
            rows: for every pass, which text it is over.
            gates: for every pass, its tokens' gates.
            positions: the modules whose positions close up as tokens fade.
            space: the embedding wanted.
            ids: for every text, token ids to take instead of its own, (texts, tokens).
        """
        route = self.route(texts[0].role)
        features = self._features(texts, rows)
        if ids is not None:
            features["input_ids"] = ids.to(self.device)[rows]
        with gated(gates, positions, route.layers):
            ran = route.run(features, 0, 1)
        weights = pooling_weights(gates, self.pooling(route.role), closing_up=bool(positions))
        return self._finish(route, {**ran, "attention_mask": weights}, space)

    # Tail.

    def tail(self, heads: Heads) -> Tail:
        """The rest of the encoder, as a function of the hidden states that enter layer ℓ."""
        route = self.route(heads.texts[0].role)
        return self._tail(route, heads.layer, heads.space, heads.features, heads.handed)

    def _tail(self, route: Route, layer: int, space: str, features: dict[str, Any], handed: Sequence[Any]) -> Tail:
        def embed(states: Tensor, features: dict[str, Any]) -> Tensor:
            if layer == route.layers:
                ran = {**features, "token_embeddings": states}
            else:
                assert route.tap is not None
                ran = route.tap.enter(layer, states, handed, lambda: self._uncovered(route, features))
            return self._finish(route, ran, space)

        graphs = self._graphs if self._capturable(route) else None
        return Tail(embed, features, (route.role, layer, space, self.truncate_dim), self.matmul, graphs)

    def takes_duals(self, role: str | None = None) -> bool:
        """Whether tails can be run on `Dual` states: tried out, once, against PyTorch's own forward mode."""
        route = self.route(role)
        if route.duals is None:
            with self._lock:
                route.duals = self._agree(self.heads([route.reader.read(PROBE, "")], 0, "padding", "unit"))
        return route.duals

    def cost(self, tokens: int, role: str | None = None, *, scores: bool = True) -> int:
        """Bytes that a forward pass over one text keeps alive at a time, roughly; without its attention `scores`."""
        inner, heads = self.route(role).widths
        return tokens * max(inner, heads * tokens if scores else 0) * 4 * torch.finfo(self.dtype).bits // 8

    def effort(self, role: str | None = None) -> float:
        """Operations that a forward pass takes for one token, roughly."""
        inner, _ = self.route(role).widths
        # A layer multiplies each token by 12 square matrices of the hidden width, which is a quarter of the inner one.
        return 1.5 * inner**2 * max(1, self.layers(role))

    def budget(self, tokens: int, role: str | None = None) -> int:
        """Bytes that the intermediate results of one chunk may take: less where somebody watches."""
        budget = self._room
        if not progress.watched():
            return budget
        return min(budget, self.cost(tokens, role) * max(2, self._stride(self.route(role)) // tokens))

    @functools.cached_property
    def _room(self) -> int:
        """Bytes that one chunk may take: on a device a quarter of what is free, on a processor what its caches like."""
        return torch.cuda.mem_get_info(self.device)[0] // 4 if self.device.type == "cuda" else BUDGET

    # Inside.

    def _stride(self, route: Route) -> int:
        """Tokens that a forward pass takes at a time."""
        if not progress.watched():
            return PASSES
        return min(PASSES, int((STEP if self.device.type == "cpu" else 50 * STEP) / self.effort(route.role)))

    def _agree(self, heads: Heads) -> bool:
        """Whether rules for tangents and PyTorch's forward mode say the same about one text."""
        tail, row = self.tail(heads), torch.zeros(1, dtype=torch.long, device=self.device)
        exactly = 1e-4 if self.matmul == "highest" else 3e-2
        point, direction = (heads.x + heads.r) / 2, heads.x - heads.r
        labels = torch.arange(heads.x.shape[1], device=self.device)[None] // 2
        groups = dual.Groups.of(labels, int(labels.max()) + 1, self.dtype)
        with differentiable():
            expected = torch.stack(
                [
                    jvp(lambda h: tail(h, row), (point,), (torch.where((labels == g)[..., None], direction, 0),))[1]
                    for g in range(len(groups))
                ],
                1,
            )
            try:
                found = tail.derivatives(point, direction, row, groups)
            except Exception:  # noqa: BLE001  Whatever a model does that the rules do not foresee: PyTorch's way then.
                return False
        return bool((found - expected).norm() <= exactly * expected.norm())

    def _capturable(self, route: Route) -> bool:
        """Whether runs may be captured: not where layers hand on more than states, which a graph would not see."""
        return self.device.type == "cuda" and not self.adjusted and route.tap is not None and not route.tap.carries

    def _uncovered(self, route: Route, features: dict[str, Any]) -> dict[str, Any]:
        """Run the transformer; while a graph is captured without the mask, all ones, which models stop to look at."""
        if not capturing(self.device):
            return route.run(dict(features), 0, 1)
        bare = {name: value for name, value in features.items() if name != "attention_mask"}
        return {**route.run(bare, 0, 1), "attention_mask": features["attention_mask"]}

    def _encode(self, route: Route, texts: Sequence[Text], keeps: Sequence[Array], space: str) -> Tensor:
        """Texts of one length after deletion, in one batch."""
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
            name: torch.cat([own[name] for own in inputs]).to(self.device) if isinstance(value, Tensor) else value
            for name, value in inputs[0].items()
        }
        ran = route.run(dict(features), 0, 1)
        if not self.adjusted:
            return self._finish(route, ran, space)
        token, _ = reference_token("padding", route.reader)
        ids = [reference_ids(text, token) for text in texts]
        kept = [own[torch.as_tensor(keep)] for own, keep in zip(ids, keeps, strict=True)]
        features["input_ids"] = torch.stack(kept).to(self.device)
        reference = self._before_ending(route, route.run(features, 0, 1))
        return self._end_shifted(route, self._before_ending(route, ran) - reference, space)

    def _kept(self, features: dict[str, Any], keep: Array) -> dict[str, Any]:
        """A text's features with only the tokens that stay."""
        columns = torch.as_tensor(np.flatnonzero(keep))
        return {
            name: value[:, columns]
            if isinstance(value, Tensor) and value.ndim == 2 and value.shape[1] == len(keep)
            else value
            for name, value in features.items()
        }


def _plainly() -> AbstractContextManager[object]:
    """A context in which tensors are made that can be differentiated with later, whatever mode the caller is in."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else contextlib.nullcontext()


def _behind(rows: Tensor, more: Sequence[Tensor]) -> Tensor:
    """Further rows behind those of a tensor."""
    return torch.cat([rows, torch.stack(list(more))]) if more else rows
