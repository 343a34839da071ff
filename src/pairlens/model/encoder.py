"""The encoder: a loaded model as head (text to hidden states of layer ℓ) and tail (those states to the embedding)."""

from __future__ import annotations

import contextlib
from collections.abc import Hashable, Mapping, Sequence
from contextlib import AbstractContextManager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pairlens.autodiff import Graphs, Lanes, Pending, Tail, capturing, differentiable
from pairlens.errors import ModelError
from pairlens.model.deletion import ForwardPasses
from pairlens.model.loaded import PROBE
from pairlens.model.reference import reference_ids, reference_key, reference_token
from pairlens.model.route import Route
from pairlens.model.states import HeadInputs, TextStates
from pairlens.model.tokenize import Text, batch
from pairlens.model.weight_cache import WeightCache
from pairlens.shapes import Array, States


class Encoder(ForwardPasses):
    """One model that can be entered at any layer. The caller's model is never changed.

    Args:
        model: None, a hub id, a path or a SentenceTransformer.
        device: where to compute; the model's own device by default.
        dtype: torch.float32 or torch.float64.
        matmul: how exactly tangents are multiplied, one of `autodiff.PRECISIONS`.
    """

    has_layers = True
    finest_level = "token"

    def __init__(
        self, model: Any = None, *, device: Any = None, dtype: torch.dtype = torch.float32, matmul: str = "highest"
    ) -> None:
        super().__init__(model, device=device, dtype=dtype)
        self.matmul = matmul
        self._prepare()

    def fork(self) -> Encoder:
        """Return another encoder on the same weights, for another thread."""
        other: Encoder = super().fork()
        other._prepare()
        return other

    def __reduce__(self) -> tuple[Any, ...]:
        """Pickle the model and the settings; the rest is made anew."""
        return _reopened, (self.sentence_transformer, self.name, str(self.device), self.dtype, self.matmul)

    def _prepare(self) -> None:
        """Create what threads must not share."""
        self.graphs, self._references = Graphs(self.device), WeightCache()
        self._lanes = Lanes(self.device) if self.device.type == "cuda" else None

    def is_static(self, role: str | None) -> bool:
        """Return whether texts of this role are embedded as a mean of token vectors, without layers."""
        return self.route(role).static

    @property
    def concurrent_batches(self) -> int:
        """How many batches may run beside each other: 2 on a CUDA device, as a pair's texts rarely have one length."""
        return 1 if self._lanes is None else 2

    def forget(self) -> None:
        """Clear the cached states of references, so that the next text costs what the first one did."""
        self._references.forget()

    def lanes(self, count: int) -> list[AbstractContextManager[object]]:
        """Return one context per batch in which batches run concurrently: CUDA streams, elsewhere nothing."""
        return [contextlib.nullcontext()] * count if self._lanes is None else [*self._lanes.take(count)]

    # Head.

    def states(self, texts: Sequence[Text], layer: int, reference: str, space: str) -> TextStates:
        """Run texts of one length and role up to a layer: each layer runs once per text and once per reference.

        Args:
            texts: the texts.
            layer: the layer, 0 to L.
            reference: where the paths start, "padding", "mask" or "zero".
            space: the embedding wanted.
        """
        with self._lock, _outside_inference_mode():
            inputs = self._head_inputs(texts, layer, reference, space)

            def run(*given: Tensor) -> tuple[Tensor, ...]:
                x, r, ends = self._run_head(inputs, given)
                return torch.stack([x, r]), *ends

            if self._capturable(inputs.route) and self.graphs.take(inputs.features["input_ids"].numel()):
                ((x, r),), pending = self.graphs.run(("head", inputs.name), run, inputs.tensors, wanted=3)
            else:
                (x, r), *ends = run(*[tensor.to(self.device) for tensor in inputs.tensors])
                pending = Pending(*ends)
        tap = inputs.route.tap
        handed = tap.handed if tap else ()
        return TextStates(tuple(texts), layer, space, x, r, inputs.text_features, handed, pending)

    def arrived(self, pending: Pending) -> tuple[Array, Array, Array]:
        """Return which tokens move, (texts, tokens), and embeddings in the space and as output, (texts, dim).

        Args:
            pending: that of `TextStates`; this waits until its numbers have arrived.
        """
        moved, embeddings, outputs = pending.arrays()
        if not (np.isfinite(embeddings).all() and np.isfinite(outputs).all()):
            raise self.not_finite()
        return moved, embeddings, outputs

    def _head_inputs(self, texts: Sequence[Text], layer: int, reference: str, space: str) -> HeadInputs:
        """Return the inputs with which texts and their references run together up to a layer."""
        route = self.route(texts[0].role)
        if layer > 0 and route.pools_layers:
            raise ModelError("the model pools the states of all its layers, so only layer 0 determines its embedding.")
        token, _ = reference_token(reference, route.reader)
        ids = [reference_ids(text, token) for text in texts]
        keys = [reference_key(text, row, layer) for text, row in zip(texts, ids, strict=True)]
        known = self._known_references(route, dict(zip(keys, zip(texts, ids, strict=True), strict=True)), layer)
        # References that are not cached run in one batch with the texts; the states of cached ones come behind it.
        fresh = {key: row for row, key in enumerate(keys) if key not in known}
        rows = {key: row for row, key in enumerate([*fresh, *known], len(texts))}
        # A text that equals its reference does not move, not even by a rounding error.
        same = [torch.equal(row, text.features["input_ids"][0]) for row, text in zip(ids, texts, strict=True)]
        places = torch.tensor([row if same[row] else rows[key] for row, key in enumerate(keys)])
        others = [texts[row].features_with(ids[row]) for row in fresh.values()]
        features = batch([*(text.features for text in texts), *others])
        kept = torch.tensor([text.kept for text in texts]) if reference == "zero" else None
        return HeadInputs(route, layer, space, features, places, [*known.values()], kept, self.truncate_dim)

    def _run_head(
        self, inputs: HeadInputs, given: Sequence[Tensor]
    ) -> tuple[States, States, tuple[Tensor, Tensor, Tensor]]:
        """Return the states of texts and of their references, and the three tensors that `arrived` returns.

        Args:
            inputs: what runs.
            given: its tensors on the device.
        """
        route, count = inputs.route, len(inputs.places)
        places, features, kept = inputs.filled(given)
        with self._passing():
            states, ran = self._record(route, features, inputs.layer)
            x = states[:count]
            r = (torch.cat([states, torch.stack(inputs.known)]) if inputs.known else states)[places]
            if kept is not None:
                r = torch.where(kept[..., None], r, 0)
            if self.adjusted:
                whole = self._before_ending(route, ran)
                shifted = whole[:count] - whole[places]
                embedding, output = (self._end_shifted(route, shifted, name) for name in (inputs.space, "output"))
            else:
                embedding = self._finish(route, ran, inputs.space)[:count]
                same = inputs.space == self.space(route.role, "output")
                output = embedding if same else self._finish(route, ran, "output")[:count]
        return x, r, ((x != r).any(-1), embedding, output)

    def _record(self, route: Route, features: dict[str, Any], layer: int) -> tuple[States, dict[str, Any]]:
        """Return the states at a layer, (rows, tokens, width), and the transformer's output."""
        assert route.tap is not None
        ran, inputs = route.tap.record(lambda: self._run_without_mask(route, features))
        return ran["token_embeddings"] if layer == route.layers else inputs[layer], ran

    def _passing(self) -> AbstractContextManager[None]:
        """Return a context for plain passes; on a CUDA device attention is one kernel there instead of eight."""
        return differentiable(attention=self.device.type != "cuda")

    def _known_references(
        self, route: Route, references: Mapping[Hashable, tuple[Text, Tensor]], layer: int
    ) -> dict[Hashable, Tensor]:
        """Return the states of references at a layer, (tokens, width), from the cache where it has them.

        All texts of one length share them. Each is computed by itself, so that it does not depend on the batch. Nothing
        is cached on CUDA devices, where a reference in a text's captured batch costs nothing and checking the weights
        would; nor for adjusted models, which need their references' embeddings too; nor for models with hooks.
        """
        if self.device.type == "cuda" or self.adjusted or route.hooked:
            return {}
        self._references.check(self._twin)

        def compute(key: Hashable) -> dict[Hashable, Tensor]:
            text, ids = references[key]
            features = self._features([text.replaced(ids)], torch.zeros(1, dtype=torch.long))
            with self._passing():
                return {(route.role, key): self._record(route, features, layer)[0][0]}

        return {key: self._references.look_up((route.role, key), lambda key=key: compute(key)) for key in references}

    # Tail.

    def tail(self, states: TextStates) -> Tail:
        """Return the rest of the encoder, as a function of the hidden states that enter the layer."""
        route, layer, space = self.route(states.texts[0].role), states.layer, states.space

        def embed(points: Tensor, features: dict[str, Any]) -> Tensor:
            if layer == route.layers:
                ran = {**features, "token_embeddings": points}
            else:
                assert route.tap is not None
                ran = route.tap.enter(layer, points, states.handed, lambda: self._run_without_mask(route, features))
            return self._finish(route, ran, space)

        graphs = self.graphs if self._capturable(route) else None
        return Tail(embed, states.features, (route.role, layer, space, self.truncate_dim), self.matmul, graphs)

    def takes_duals(self, role: str | None = None) -> bool:
        """Return whether dual numbers differentiate the tails of this model; tried once, on a probe text."""
        route = self.route(role)
        if route.duals is None:
            with self._lock:
                states = self.states([route.reader.read(PROBE, "")], 0, "padding", "unit")
                route.duals = self.tail(states).takes_duals(states.x, states.r)
        return route.duals

    def _capturable(self, route: Route) -> bool:
        """Return whether runs may be captured. A graph does not see what layers hand on besides states, as T5's do."""
        return self.device.type == "cuda" and not self.adjusted and route.tap is not None and not route.tap.carries

    def _run_without_mask(self, route: Route, features: dict[str, Any]) -> dict[str, Any]:
        """Run the transformer; during capture without the mask, which is all ones and which models read on the host."""
        if not capturing(self.device):
            return route.run(dict(features), 0, 1)
        bare = {name: value for name, value in features.items() if name != "attention_mask"}
        return {**route.run(bare, 0, 1), "attention_mask": features["attention_mask"]}


def _outside_inference_mode() -> AbstractContextManager[object]:
    """Return a context whose tensors can be differentiated later, in any mode of the caller."""
    return torch.inference_mode(False) if torch.is_inference_mode_enabled() else contextlib.nullcontext()


def _reopened(model: Any, name: str, device: str, dtype: torch.dtype, matmul: str) -> Encoder:
    """Return the encoder that was pickled."""
    encoder = Encoder(model, device=device, dtype=dtype, matmul=matmul)
    encoder.name = name
    return encoder
