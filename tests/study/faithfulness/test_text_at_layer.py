"""A text at a layer: the rest of the model as a function, its derivatives, and the models that have no layers."""

from __future__ import annotations

import numpy as np
import pytest
import torch

import zoo
from judging import PAIRS
from pairlens import Lens
from pairlens.autodiff import differentiable
from pairlens.errors import ModelError
from pairlens.study.faithfulness.text_at_layer import TextAtLayer, differentiable_model, layered_encoder


@pytest.fixture(scope="module", params=[True, False], ids=["normalized", "raw"])
def double_lens(request) -> Lens:
    """A lens in float64 on a model with and on one without a final normalisation."""
    return Lens(zoo.encoder(normalize=request.param), dtype="float64")


@pytest.mark.parametrize("layer", [0, 2])
def test_tail_of_the_texts_states_is_its_embedding(double_lens, layer):
    text = TextAtLayer.read(double_lens, PAIRS[0][0], "cosine", layer)
    with differentiable():
        embeddings = text.tail(torch.cat([text.states.x, text.states.x])).numpy()
    assert np.allclose(embeddings, text.embedding, atol=1e-9)


@pytest.mark.parametrize("measure", ["cosine", "dot"])
def test_product_of_two_vectors_is_the_score(double_lens, measure):
    text_a, text_b = (TextAtLayer.read(double_lens, text, measure) for text in PAIRS[0])
    expected = double_lens.explain(*PAIRS[0], method="output", measure=measure).score
    assert text_a.vector @ text_b.vector == pytest.approx(expected)


@pytest.mark.parametrize("space", [None, "raw"])
def test_products_are_derivatives_of_the_vector_by_the_scale_of_a_token(double_lens, space):
    text = TextAtLayer.read(double_lens, PAIRS[0][0], "dot", space=space)
    with differentiable_model(double_lens):
        products = text.products()
    step = 1e-4

    def embed(token: int, factor: float) -> torch.Tensor:
        states = text.states.x.clone()
        states[0, token] *= 1 + factor
        with differentiable():
            return text.tail(states)[0]

    assert products.shape == (len(text.text.units), len(text.vector))
    for token in (0, 2):
        difference = (embed(token, step) - embed(token, -step)) / (2 * step)
        assert np.allclose(products[token], difference.numpy() * text.scale, atol=1e-7)


def test_black_boxes_and_static_embeddings_have_no_layers():
    with pytest.raises(ModelError, match="no layers to look into"):
        layered_encoder(Lens(zoo.static()))
    with pytest.raises(ModelError, match="black box"):
        layered_encoder(Lens.from_function(lambda texts: [[1.0, len(text)] for text in texts]))
