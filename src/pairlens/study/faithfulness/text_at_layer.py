"""A text run up to a layer, with the rest of the model as a function of hidden states; the rivals compute with it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp, vmap

from pairlens.attribution import space_for
from pairlens.autodiff import differentiable
from pairlens.errors import ModelError
from pairlens.lens import Lens
from pairlens.model import Encoder, Text
from pairlens.model.states import TextStates
from pairlens.shapes import Values, Vector


@dataclass(frozen=True)
class TextAtLayer:
    """One text, run up to a layer.

    Attributes:
        encoder: the model.
        text: the text.
        states: the hidden states of the text and of its padding reference.
        embedding: the embedding that `tail` gives for the hidden states of the text, (dim,).
        vector: the text's factor in the score, (dim,): score = vector_a · vector_b.
    """

    encoder: Encoder
    text: Text
    states: TextStates
    embedding: Vector
    vector: Vector

    @classmethod
    def read(cls, lens: Lens, text: str, measure: str, layer: int = 0, space: str | None = None) -> TextAtLayer:
        """Tokenize a text and run it up to a layer, by default up to the embedding layer's output."""
        encoder = layered_encoder(lens)
        tokenized = encoder.read(text)
        space = encoder.space(None, space or space_for("project", measure))
        states = encoder.states([tokenized], layer, "padding", space)
        _, embeddings, outputs = encoder.arrived(states.pending)
        vector = outputs[0] if measure == "dot" else embeddings[0] / np.linalg.norm(embeddings[0])
        return cls(encoder, tokenized, states, embeddings[0], vector)

    def tail(self, states: Tensor) -> Tensor:
        """The rest of the model: hidden states, (points, tokens, width), to embeddings, (points, dim)."""
        rows = torch.zeros(len(states), dtype=torch.long, device=states.device)
        return self.encoder.tail(self.states)(states, rows)

    def products(self) -> Values:
        """U[s] = J_s · x_s: the derivative of the embedding by the scale of token s's hidden states, (tokens, dim).

        Multiplied by `scale`, so that U is in the units of `vector`.
        """
        states = self.states.x

        def push(token: Tensor) -> Tensor:
            is_token = torch.arange(states.shape[1], device=states.device) == token
            return jvp(self.tail, (states,), (torch.where(is_token[:, None], states, 0),))[1][0]

        products = vmap(push)(torch.arange(states.shape[1], device=states.device))
        return products.double().cpu().numpy() * self.scale

    @property
    def scale(self) -> float:
        """The factor from the norm of `embedding` to the norm of `vector`, which the rivals treat as a constant."""
        return float(np.linalg.norm(self.vector)) / float(np.linalg.norm(self.embedding))


def layered_encoder(lens: Lens) -> Encoder:
    """The lens's encoder, if it has layers; raises for black boxes and static embeddings."""
    encoder = lens.encoder
    if not isinstance(encoder, Encoder):
        raise ModelError("a black box has no layers to look into.")
    if encoder.is_static(None):
        raise ModelError("static embeddings have no layers to look into.")
    return encoder


@contextmanager
def differentiable_model(lens: Lens) -> Iterator[None]:
    """A context that holds the model's lock and in which the model can be differentiated."""
    with layered_encoder(lens).running(), differentiable():
        yield
