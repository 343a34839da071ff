"""A loaded model: its modules for each role, its properties, and how it reads texts."""

from __future__ import annotations

import copy
import functools
import threading
from collections.abc import Sequence
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor, nn

from pairlens.autodiff import differentiable
from pairlens.errors import InputError, ModelError, NumericalError
from pairlens.model.adjusted_layout import ADJUSTED, class_name
from pairlens.model.layers import tap_layers, twin, untap
from pairlens.model.loading import SHIFTING, fingerprint, load
from pairlens.model.pooling import pooling_modes
from pairlens.model.route import Route, routed
from pairlens.model.tokenize import Reader, Text, batch

ROLES = ("query", "document")
"""Which embedding is meant: of length one, the model's output, or the embedding before a final Normalize."""
PROBE = "one two three"
"""A text to run a model on once, to look at its structure."""


class LoadedModel:
    """One model, seen through a twin of it on the same weights: the caller's model is never changed.

    Args:
        model: None, a hub id, a path or a SentenceTransformer.
        device: where to compute; the model's own device by default.
        dtype: torch.float32 or torch.float64.

    Attributes:
        name: the model's name, for results.
        adjusted: whether the model subtracts the embedding of its reference.
        sentence_transformer: the caller's model, or the one that was loaded.
    """

    has_layers = True
    finest_level = "token"

    def __init__(self, model: Any = None, *, device: Any = None, dtype: torch.dtype = torch.float32) -> None:
        wanted = None if device is None else _check_device(device)
        loaded, self.name, self.adjusted = load(model, wanted)
        self.device = torch.device(loaded.device) if wanted is None else wanted
        self.dtype = dtype
        # Kept, because the caller may later set another truncation, measure, prompt or length on the model.
        self.sentence_transformer = loaded
        self._twin = twin(nn.ModuleList(loaded.children()), dtype=dtype, device=self.device)
        for module in self._twin:
            shifting = [i for i, cls in enumerate(type(module).__mro__) if SHIFTING in cls.__name__]
            if shifting:
                # The papers' own class, if it is installed, would subtract the reference a second time.
                module.__class__ = type(module).__mro__[shifting[-1] + 1]
        self._routes: dict[str | None, Route] = {}
        # The tap has state, so only one thread at a time may run the twin.
        self._lock = threading.RLock()

    def fork(self) -> Any:
        """Return a second model on the same weights, for another thread."""
        other = copy.copy(self)
        with self._lock:
            second = untap(twin(self._twin, dtype=self.dtype, device=self.device))
        vars(other).update(_twin=second, _routes={}, _lock=threading.RLock())
        return other

    # Properties of the model.

    @property
    def measure(self) -> str:
        """The model's own similarity measure."""
        return str(getattr(self.sentence_transformer, "_similarity_fn_name", None) or "cosine")

    @property
    def precision(self) -> str:
        """The name of the dtype that embeddings are computed in."""
        return str(self.dtype).removeprefix("torch.")

    @property
    def truncate_dim(self) -> int | None:
        """How many dimensions of the embedding the model keeps, None for all."""
        return getattr(self.sentence_transformer, "truncate_dim", None)

    @functools.cached_property
    def fingerprint(self) -> str:
        """A short hash of the weights, from a few numbers of each tensor."""
        return fingerprint(self.sentence_transformer)

    def route(self, role: str | None = None) -> Route:
        """Return the modules for a role; None is the role of `SentenceTransformer.encode`."""
        if role is not None and role not in ROLES:
            raise InputError(f"a role is 'query', 'document' or None, not {role!r}.")
        with self._lock:
            if role not in self._routes:
                self._routes[role] = self._open(role)
            return self._routes[role]

    def layers(self, role: str | None = None) -> int:
        """Return L, the number of layers; 0 for static embeddings."""
        return self.route(role).layers

    def layer_index(self, layer: int, role: str | None = None) -> int:
        """Return a layer from 0 to L; negative numbers count from the end, so -1 is L."""
        count = self.layers(role)
        if role is not None and self.route(role).static:
            return 0  # A router's static route has no layers; the layer is meant for the other route.
        if not -count - 1 <= layer <= count:
            raise InputError(
                f"layer {layer} does not exist: this model has {count} layers, so 0 (the embedding layer's output) "
                f"to {count} (the last layer's), or -1 to {-count - 1} from the end."
            )
        return layer if layer >= 0 else layer + count + 1

    def pooling(self, role: str | None = None) -> str:
        """Return the names of the pooling modes, joined by +."""
        route = self.route(role)
        return pooling_modes(route.modules) or ("mean" if route.static else "none")

    def space(self, role: str | None, wanted: str, *, path: bool = True) -> str:
        """Return one name for spaces that are the same here: without a final Normalize "output" is "raw", and so on."""
        route = self.route(role)
        if path and (self.adjusted or route.static):
            # The reference's embedding is zero, and no path from zero can be normalised.
            return "raw"
        if wanted == "output":
            if not route.ending:
                return "raw"
            if self.truncate_dim is None:
                return "unit"
        return wanted

    def read(self, text: str, role: str | None = None, prompt: str | None = None) -> Text:
        """Return a text as the model reads it, with a prompt before it: by default the role's."""
        route = self.route(role)
        with self._lock:
            for module, original in zip(self._twin, self.sentence_transformer.children(), strict=True):
                length = getattr(original, "max_seq_length", None)
                if length is not None and getattr(module, "max_seq_length", None) != length:
                    module.max_seq_length = length
            return route.reader.read(text, self._prompt(role) if prompt is None else prompt)

    def running(self) -> threading.RLock:
        """Return the lock to hold while the twin runs."""
        return self._lock

    def not_finite(self) -> NumericalError:
        """Return the error for an embedding that is not a number, naming the weights that are not numbers."""
        bad = [name for name, p in self._twin.named_parameters() if not torch.isfinite(p).all()]
        where = f"these weights: {', '.join(bad[:3])}{' …' if len(bad) > 3 else ''}" if bad else "the forward pass"
        return NumericalError(f"the model's embedding is not a number, from {where}. Load the model anew.")

    @property
    def prompts(self) -> dict[str, str]:
        """The model's prompts by name."""
        return getattr(self.sentence_transformer, "prompts", None) or {}

    def _prompt(self, role: str | None) -> str:
        """Return the prompt for a role, as `encode_query`, `encode_document` and `encode` choose it."""
        names = {"query": ("query",), "document": ("document", "passage", "corpus")}.get(role or "", ())
        prompts = self.prompts
        for name in (*names, getattr(self.sentence_transformer, "default_prompt_name", None)):
            if name is not None and name in prompts:
                return prompts[name] or ""
        return ""

    def _open(self, role: str | None) -> Route:
        """Return the modules for a role, with a tap on the transformer's layers."""
        modules: list[nn.Module] = []
        adjusted = None
        for module in self._twin:
            if class_name(module) == ADJUSTED:
                adjusted = module
                modules += list(module.body)  # pyright: ignore[reportArgumentType]
            else:
                modules += list(routed(module, role)) if hasattr(module, "sub_modules") else [module]
        reader = Reader(modules[0], role, adjusted)
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

    def _features(self, texts: Sequence[Text], rows: Tensor) -> dict[str, Any]:
        """Return the model's input for a batch in which row i is text `rows[i]`."""
        rows = rows.to(self.device)
        features = batch([text.features for text in texts])
        return {
            name: value.to(self.device)[rows] if isinstance(value, Tensor) else value
            for name, value in features.items()
        }

    def _finish(self, route: Route, ran: dict[str, Any], space: str) -> Tensor:
        """Return the embedding in a space from the transformer's output."""
        stop = len(route.modules) - (route.ending if space == "raw" else 0)
        embedding = route.run(dict(ran), 1, stop)["sentence_embedding"]
        if self.truncate_dim is not None:
            embedding = embedding[..., : self.truncate_dim]
        # After the model's own Normalize the embedding already has length one.
        normalized = route.ending and self.truncate_dim is None
        return F.normalize(embedding, dim=-1) if space == "unit" and not normalized else embedding

    def _before_ending(self, route: Route, ran: dict[str, Any]) -> Tensor:
        """Return the whole embedding before a final Normalize from the transformer's output."""
        return route.run(dict(ran), 1, len(route.modules) - route.ending)["sentence_embedding"]

    def _end_shifted(self, route: Route, shifted: Tensor, space: str) -> Tensor:
        """Return an adjusted model's embedding in a space from its shifted embedding."""
        if space == "unit" or (space == "output" and route.ending):
            shifted = F.normalize(shifted, dim=-1)
        return shifted if self.truncate_dim is None else shifted[..., : self.truncate_dim]


def _check_device(device: Any) -> torch.device:
    """Return the torch device, or raise if this machine does not have it."""
    try:
        checked = torch.device(device)
        torch.empty(0, device=checked)
    except (RuntimeError, AssertionError, TypeError) as error:
        names = [name for name in ("cuda", "mps") if getattr(torch, name, None) and getattr(torch, name).is_available()]
        raise InputError(
            f"device {device!r} cannot be used: PyTorch finds {', '.join(['cpu', *names])} on this machine."
        ) from error
    return checked
