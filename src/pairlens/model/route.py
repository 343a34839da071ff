"""The modules that texts of one role pass through, and what they are like."""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from typing import Any

from torch import nn

from pairlens.errors import ModelError
from pairlens.model.gates import Positions
from pairlens.model.layers import Tap, widths
from pairlens.model.tokenize import Reader


class Route:
    """The modules that the texts of one role pass through: an input module, pooling and any others.

    Attributes:
        static: whether the model is a bag of static token vectors.
        ending: how many Normalize modules are at the end.
        tap, layers: the tap on the transformer's layers, and their number.
        positions: the modules that fading found to compute positions; None until looked for.
        duals: whether the transformer can run on dual numbers; None until tried.
        pools_layers: whether the pooling uses the states of all layers.
        hooked: whether the model has forward hooks, whose results may differ from call to call.
    """

    def __init__(self, modules: Sequence[nn.Module], role: str | None, reader: Reader) -> None:
        self.modules = list(modules)
        self.role = role
        self.reader = reader
        self.static = isinstance(getattr(self.modules[0], "embedding", None), nn.EmbeddingBag)
        ending = 0
        while ending < len(self.modules) - 1 and type(self.modules[-1 - ending]).__name__ == "Normalize":
            ending += 1
        self.ending = ending
        self.tap: Tap | None = None
        self.layers = 0
        self.positions: Positions | None = None
        self.duals: bool | None = None
        self.pools_layers = any(hasattr(module, "layer_weights") for module in self.modules)
        self.widths = widths(self.modules[0])
        inner = [part for module in self.modules for part in module.modules()]
        self.hooked = any(part._forward_hooks or part._forward_pre_hooks for part in inner)

    def run(self, features: dict[str, Any], start: int, stop: int) -> dict[str, Any]:
        """Return the features after modules `start` to `stop`, as SentenceTransformer.forward computes them."""
        for module in self.modules[start:stop]:
            accepted = getattr(module, "forward_kwargs", ())
            extra = {"task": self.role} if "task" in accepted and self.role is not None else {}
            features = module(features, **extra)
        return features


def routed(module: nn.Module, role: str | None) -> Sequence[nn.Module]:
    """Return a Router's modules for a role."""
    routes: Any = module.sub_modules
    name = role if role in routes else getattr(module, "default_route", None)
    resolve = getattr(module, "_resolve_route", None)
    if resolve is not None and "modality" in inspect.signature(resolve).parameters:
        try:
            name = resolve(task=role, modality="text")
        except ValueError:
            name = None
    if name is None or name not in routes:
        raise ModelError(
            f"the model's router has no route for {'no role' if role is None else f'the role {role!r}'}; it has "
            f"{', '.join(routes)}. Say which text is which: roles=('query', 'document')."
        )
    return list(routes[name])
