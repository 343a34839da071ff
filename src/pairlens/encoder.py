"""A SentenceTransformer seen as head (text to hidden states of layer ℓ) and tail (those states to the embedding)."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn
from torch.func import jvp

from pairlens import dual, progress
from pairlens.adjusted.layout import ADJUSTED
from pairlens.architectures import differentiable, tap_layers, twin, untap, widths
from pairlens.errors import InputError, ModelError, NumericalError
from pairlens.games import Games, TokenGames
from pairlens.gating import Gates, Positions, gated, pooling_weights
from pairlens.graphs import Graphs
from pairlens.integrate import BUDGET
from pairlens.loading import SHIFTING, class_name, fingerprint, load
from pairlens.reading import Reader, Text
from pairlens.reference import reference_ids, reference_states
from pairlens.routes import Route, routed
from pairlens.shapes import Array, Embeddings, Rows, States
from pairlens.tails import Tail

ROLES = ("query", "document")
SPACES = ("unit", "output", "raw")
"""Which embedding is meant: of length one, as the model gives it, or as it is before a final normalisation."""
PROBE = "one two three"
PASSES = 4096
"""Tokens that plain forward passes take at a time: large enough for the matrix products, small enough for memory."""
STEP = 2e10
"""Operations that a step takes where somebody watches: a fraction of a second on one core."""


@dataclass(frozen=True)
class Heads:
    """Texts of one length as they enter layer ℓ.

    `x` and `r`: hidden states of the texts and of their references, (texts, tokens, width). `embedding`: the model's
    plain forward pass, in the space asked for, and `output` as the model gives it, (texts, dim).
    """

    texts: tuple[Text, ...]
    layer: int
    space: str
    x: States
    r: States
    embedding: Tensor
    output: Tensor


class Encoder:
    """One model, ready to be entered at any layer. The caller's model is never changed.

    Args:
        model: None, a hub id, a path or a SentenceTransformer.
        device: where to compute; the model's own device by default.
        dtype: torch.float32 or torch.float64.
        matmul: how exactly tangents are multiplied, see `dual.precision`.
    """

    def __init__(
        self, model: Any = None, *, device: Any = None, dtype: torch.dtype = torch.float32, matmul: str = "highest"
    ) -> None:
        wanted = None if device is None else _check_device(device)
        loaded, self.name, self.adjusted = load(model, wanted)
        self.device = torch.device(loaded.device) if wanted is None else wanted
        self.dtype = dtype
        self.matmul = matmul
        self._graphs = Graphs()
        # Asked again every time: the caller may set another truncation, measure, prompt or length on the model.
        self._model = loaded
        self._twin = twin(nn.ModuleList(loaded.children()), dtype=dtype, device=self.device)
        for module in self._twin:
            shifting = [i for i, cls in enumerate(type(module).__mro__) if SHIFTING in cls.__name__]
            if shifting:
                # The papers' own class, where it is installed: its shift is ours to make.
                module.__class__ = type(module).__mro__[shifting[-1] + 1]
        self._routes: dict[str | None, Route] = {}
        # The tap is state, so one thread at a time may run the twin.
        self._lock = threading.RLock()

    def fork(self) -> Encoder:
        """Another encoder on the same weights, for another thread."""
        other = copy.copy(self)
        with self._lock:
            other._twin = untap(twin(self._twin, dtype=self.dtype, device=self.device))
        other._routes, other._lock, other._graphs = {}, threading.RLock(), Graphs()
        return other

    # What the model is like.

    @property
    def measure(self) -> str:
        """The model's own similarity measure."""
        return str(getattr(self._model, "_similarity_fn_name", None) or "cosine")

    @property
    def precision(self) -> str:
        """The name of the dtype that is computed in."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def truncate_dim(self) -> int | None:
        """How many dimensions the model keeps, None for all."""
        return getattr(self._model, "truncate_dim", None)

    @functools.cached_property
    def fingerprint(self) -> str:
        """A short name for the weights, from a few numbers of every one."""
        return fingerprint(self._model)

    def route(self, role: str | None = None) -> Route:
        """The modules for a role; None is what `SentenceTransformer.encode` does without one."""
        if role is not None and role not in ROLES:
            raise InputError(f"a role is 'query', 'document' or None, not {role!r}.")
        with self._lock:
            if role not in self._routes:
                self._routes[role] = self._open(role)
            return self._routes[role]

    def layers(self, role: str | None = None) -> int:
        """L, the number of layers; 0 for static embeddings."""
        return self.route(role).layers

    def layer_index(self, layer: int, role: str | None = None) -> int:
        """A layer from 0 to L; negative ones count from the end, so -1 is L."""
        count = self.layers(role)
        if role is not None and self.route(role).static:
            return 0  # A router's static side has no layers; the layer is meant for the other side.
        if not -count - 1 <= layer <= count:
            raise InputError(
                f"layer {layer} does not exist: this model has {count} layers, so 0 (the embedding layer's output) "
                f"to {count} (the last layer's), or -1 to {-count - 1} from the end."
            )
        return layer if layer >= 0 else layer + count + 1

    def pooling(self, role: str | None = None) -> str:
        """The names of the pooling modes, joined by +."""
        for module in self.route(role).modules:
            if hasattr(module, "pooling_mode"):
                mode: Any = module.pooling_mode
                return mode if isinstance(mode, str) else "+".join(mode)
            if hasattr(module, "get_pooling_mode_str"):
                return module.get_pooling_mode_str()  # pyright: ignore[reportCallIssue]
        return "mean" if self.route(role).static else "none"

    def space(self, role: str | None, wanted: str) -> str:
        """The name of a space, told apart only where it differs: without Normalize "output" is "raw", and so on."""
        route = self.route(role)
        ending = route.ending
        if self.adjusted or route.static:
            # The reference's embedding is zero, and zero cannot be normalised.
            return "raw"
        if wanted == "output":
            if not ending:
                return "raw"
            if self.truncate_dim is None:
                return "unit"
        return wanted

    # Head.

    def read(self, text: str, role: str | None = None) -> Text:
        """A text as the model reads it."""
        route = self.route(role)
        with self._lock:
            for module, own in zip(self._twin, self._model.children(), strict=True):
                length = getattr(own, "max_seq_length", None)
                if length is not None and getattr(module, "max_seq_length", None) != length:
                    module.max_seq_length = length
            return route.reader.read(text, self._prompt(role))

    def heads(self, texts: Sequence[Text], layer: int, reference: str, space: str) -> Heads:
        """Texts of one length and role, up to layer ℓ: each layer runs once per text, and once per reference."""
        route = self.route(texts[0].role)
        if layer > 0 and any(hasattr(module, "layer_weights") for module in route.modules):
            raise ModelError("the model pools the states of all its layers, so only layer 0 determines its embedding.")
        count = len(texts)
        with self._lock, differentiable():
            features = self._features(texts, torch.arange(count).repeat(2))
            own = torch.cat([text.features["input_ids"] for text in texts]).cpu()
            ids = torch.stack([reference_ids(text, reference, route.reader) for text in texts])
            same = (ids == own).all(-1).to(self.device)
            features["input_ids"] = torch.cat([features["input_ids"][:count], ids.to(self.device)])
            tensors = {name: value for name, value in features.items() if isinstance(value, Tensor)}
            rest = {name: value for name, value in features.items() if name not in tensors}

            def run(*given: Tensor) -> tuple[Tensor, ...]:
                return self._head(route, {**dict(zip(tensors, given, strict=True)), **rest}, layer, space, count)

            if self._capturable(route):
                name = (route.role, layer, space, self.truncate_dim, tuple(sorted(map(repr, rest.items()))))
                both, embedding, output = self._graphs.run(("head", name), run, list(tensors.values()))
            else:
                both, embedding, output = run(*tensors.values())
            if not torch.isfinite(embedding).all():
                raise self.not_finite()
            # A text that is its own reference goes nowhere, not even by a rounding error.
            x, r = both[:count], torch.where(same[:, None, None], both[:count], both[count:])
            r = reference_states(r, texts, reference)
            return Heads(tuple(texts), layer, space, x, r, embedding[:count], output[:count])

    def _head(
        self, route: Route, features: dict[str, Any], layer: int, space: str, count: int
    ) -> tuple[Tensor, Tensor, Tensor]:
        """States of texts and of their references at a layer, and the texts' embeddings in a space and as put out."""
        assert route.tap is not None
        ran, inputs = route.tap.record(lambda: self._uncovered(route, features))
        both = ran["token_embeddings"] if layer == route.layers else inputs[layer]
        if self.adjusted:
            whole = self._before_ending(route, ran)
            shifted = whole[:count] - whole[count:]
            return both, self._end_shifted(route, shifted, space), self._end_shifted(route, shifted, "output")
        return both, self._finish(route, ran, space), self._finish(route, ran, "output")

    # Deletion.

    def games(self, texts: Sequence[Text], labels: Sequence[Sequence[int]], space: str) -> Games:
        """What becomes of texts of one role when units of theirs are deleted; `labels` has every token's unit."""
        return TokenGames(self, texts, labels, space)

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
        every = self._features(heads.texts, torch.arange(len(heads.texts)))

        def embed(states: Tensor, features: dict[str, Any]) -> Tensor:
            if heads.layer == route.layers:
                ran = {**features, "token_embeddings": states}
            else:
                assert route.tap is not None
                ran = route.tap.enter(heads.layer, states, lambda: self._uncovered(route, features))
            return self._finish(route, ran, heads.space)

        graphs = self._graphs if self._capturable(route) else None
        return Tail(embed, every, (route.role, heads.layer, heads.space, self.truncate_dim), self.matmul, graphs)

    def takes_duals(self, role: str | None = None) -> bool:
        """Whether tails can be run on `Dual` states: tried out, once, against PyTorch's own forward mode."""
        route = self.route(role)
        if route.duals is None:
            with self._lock:
                route.duals = self._agree(self.heads([route.reader.read(PROBE, "")], 0, "padding", "unit"))
        return route.duals

    def cost(self, tokens: int, role: str | None = None, *, scores: bool = True) -> int:
        """Bytes that a forward pass over one text keeps alive at a time, roughly; without its attention `scores`."""
        inner, heads = widths(self.route(role).modules[0])
        return tokens * max(inner, heads * tokens if scores else 0) * 4 * torch.finfo(self.dtype).bits // 8

    def effort(self, role: str | None = None) -> float:
        """Operations that a forward pass takes for one token, roughly."""
        inner, _ = widths(self.route(role).modules[0])
        # A layer multiplies each token by 12 square matrices of the hidden width, which is a quarter of the inner one.
        return 1.5 * inner**2 * max(1, self.layers(role))

    def budget(self, tokens: int, role: str | None = None) -> int:
        """Bytes that the intermediate results of one chunk may take: less where somebody watches."""
        budget = self._memory
        if not progress.watched():
            return budget
        return min(budget, self.cost(tokens, role) * max(2, self._stride(self.route(role)) // tokens))

    @functools.cached_property
    def _memory(self) -> int:
        """Bytes that one chunk may take: on a device a quarter of what is free, on a processor what its caches like."""
        return torch.cuda.mem_get_info(self.device)[0] // 4 if self.device.type == "cuda" else BUDGET

    def running(self) -> threading.RLock:
        """A lock to hold while the tail is in use."""
        return self._lock

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
        if not (self.device.type == "cuda" and torch.cuda.is_current_stream_capturing()):
            return route.run(dict(features), 0, 1)
        bare = {name: value for name, value in features.items() if name != "attention_mask"}
        return {**route.run(bare, 0, 1), "attention_mask": features["attention_mask"]}

    def _prompt(self, role: str | None) -> str:
        names = {"query": ("query",), "document": ("document", "passage", "corpus")}.get(role or "", ())
        prompts: dict[str, str] = getattr(self._model, "prompts", None) or {}
        for name in (*names, getattr(self._model, "default_prompt_name", None)):
            if name is not None and name in prompts:
                return prompts[name] or ""
        return ""

    def _open(self, role: str | None) -> Route:
        modules: list[nn.Module] = []
        adjusted = None
        for module in self._twin:
            if class_name(module) == ADJUSTED:
                adjusted = module
                modules += list(module.body)  # pyright: ignore[reportArgumentType]
            else:
                modules += list(routed(module, role)) if hasattr(module, "sub_modules") else [module]
        reader = Reader(modules[0], role, self.device, adjusted)
        route = Route(modules, role, reader)
        if route.static:
            return route
        if not hasattr(modules[0], "auto_model"):
            raise ModelError(
                f"the model begins with {type(modules[0]).__name__}; pairlens explains transformers and static "
                "embeddings."
            )
        shared = next((r for r in self._routes.values() if r.tap is not None and r.modules[0] is modules[0]), None)
        if shared is not None:
            route.tap, route.layers = shared.tap, shared.layers
            return route
        with differentiable():
            features = self._features([reader.read(PROBE, "")], torch.zeros(1, dtype=torch.long))
            route.tap, route.layers = tap_layers(modules[0], lambda: route.run(features, 0, 1))
        return route

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
            name: torch.cat([own[name] for own in inputs]) if isinstance(value, Tensor) else value
            for name, value in inputs[0].items()
        }
        ran = route.run(dict(features), 0, 1)
        if not self.adjusted:
            return self._finish(route, ran, space)
        ids = [reference_ids(text, "padding", route.reader) for text in texts]
        kept = [own[torch.as_tensor(keep)] for own, keep in zip(ids, keeps, strict=True)]
        features["input_ids"] = torch.stack(kept).to(self.device)
        reference = self._before_ending(route, route.run(features, 0, 1))
        return self._end_shifted(route, self._before_ending(route, ran) - reference, space)

    def _kept(self, features: dict[str, Any], keep: Array) -> dict[str, Any]:
        """A text's features with only the tokens that stay."""
        columns = torch.as_tensor(np.flatnonzero(keep))
        return {
            name: value[:, columns.to(value.device)].to(self.device)
            if isinstance(value, Tensor) and value.ndim == 2 and value.shape[1] == len(keep)
            else value
            for name, value in features.items()
        }

    def _features(self, texts: Sequence[Text], rows: Tensor) -> dict[str, Any]:
        """The model's input for a batch in which row i is text `rows[i]`."""
        features: dict[str, Any] = {}
        rows = rows.to(self.device)
        for name, first in texts[0].features.items():
            if isinstance(first, Tensor):
                features[name] = torch.cat([text.features[name] for text in texts]).to(self.device)[rows]
            else:
                features[name] = first
        return features

    def _finish(self, route: Route, ran: dict[str, Any], space: str) -> Tensor:
        """From the transformer's output to the embedding in a space."""
        stop = len(route.modules) - (route.ending if space == "raw" else 0)
        embedding = route.run(dict(ran), 1, stop)["sentence_embedding"]
        if self.truncate_dim is not None:
            embedding = embedding[..., : self.truncate_dim]
        return F.normalize(embedding, dim=-1) if space == "unit" else embedding

    def _before_ending(self, route: Route, ran: dict[str, Any]) -> Tensor:
        """From the transformer's output to the whole embedding before a final Normalize."""
        return route.run(dict(ran), 1, len(route.modules) - route.ending)["sentence_embedding"]

    def _end_shifted(self, route: Route, shifted: Tensor, space: str) -> Tensor:
        """What an adjusted model makes of its shifted embedding, in a space."""
        if space == "output" and route.ending:
            shifted = F.normalize(shifted, dim=-1)
        return shifted if self.truncate_dim is None else shifted[..., : self.truncate_dim]

    def not_finite(self) -> NumericalError:
        """The error for an embedding that is not a number, with the weights to blame."""
        bad = [name for name, p in self._twin.named_parameters() if not torch.isfinite(p).all()]
        where = f"these weights: {', '.join(bad[:3])}{' …' if len(bad) > 3 else ''}" if bad else "the forward pass"
        return NumericalError(f"the model's embedding is not a number, from {where}. Load the model anew.")


def _check_device(device: Any) -> torch.device:
    """A torch device that this machine has."""
    try:
        found = torch.device(device)
        torch.empty(0, device=found)
    except (RuntimeError, AssertionError, TypeError) as error:
        names = [name for name in ("cuda", "mps") if getattr(torch, name, None) and getattr(torch, name).is_available()]
        here = ", ".join(["cpu", *names])
        raise InputError(
            f"device {device!r} cannot be used on this machine, which has {here}: {str(error).splitlines()[0]}"
        ) from error
    return found
