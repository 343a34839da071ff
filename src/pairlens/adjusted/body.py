"""Check the modules that an adjusted module holds, and name their classes as they are saved."""

from __future__ import annotations

from collections.abc import Sequence

from torch import nn

from pairlens.errors import ModelError
from pairlens.model.adjusted_layout import ADJUSTED, class_name


def without_normalize(modules: Sequence[nn.Module]) -> Sequence[nn.Module]:
    """Return the modules up to any Normalize at the end; the first module always stays."""
    count = len(modules)
    while count > 1 and type(modules[count - 1]).__name__ == "Normalize":
        count -= 1
    return modules[:count]


def check_body(body: Sequence[nn.Module]) -> None:
    """Raise unless these modules are a sentence encoder that can be shifted."""
    if not body:
        raise ModelError("an adjusted model needs the modules of a model: a Transformer, a Pooling and so on.")
    first, last = body[0], type(body[-1]).__name__
    if any(class_name(module) == ADJUSTED for module in body):
        raise ModelError("the model is adjusted already.")
    if hasattr(first, "sub_modules"):
        raise ModelError("a model with a router cannot be adjusted; adjust the encoders that it routes to.")
    if isinstance(getattr(first, "embedding", None), nn.EmbeddingBag):
        raise ModelError("static embeddings are their own exact attributions: there is nothing to adjust in them.")
    if not hasattr(first, "auto_model"):
        raise ModelError(f"the model begins with {type(first).__name__}; a Transformer can be adjusted.")
    if last == "Normalize":
        raise ModelError("a final Normalize belongs after the adjusted module: the zero vector has no direction.")
    for module in body:
        class_path(module)


def class_path(module: nn.Module) -> str:
    """Return the path that a module's class is imported from, as sentence-transformers writes it."""
    home, name = type(module).__module__, type(module).__name__
    if not home.startswith("sentence_transformers."):
        raise ModelError(f"{home}.{name} is not part of sentence-transformers, so it cannot be in an adjusted model.")
    return home if home.endswith(f".{name}") else f"{home}.{name}"
