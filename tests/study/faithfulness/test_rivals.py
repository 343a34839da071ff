"""Every rival against a formula or an independent implementation, and that none of them changes the model."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

import zoo
from judging import PAIRS
from pairlens import Lens
from pairlens.autodiff import differentiable
from pairlens.errors import MissingExtra, ModelError
from pairlens.study.faithfulness import rivals
from pairlens.study.faithfulness.rivals import RIVALS
from pairlens.study.faithfulness.text_at_layer import TextAtLayer, layered_encoder

A, B = PAIRS[0]


def double_lens(family="bert", **options) -> Lens:
    """A lens in float64."""
    return Lens(zoo.encoder(family, **options), dtype="float64")


@pytest.fixture(scope="module")
def lens() -> Lens:
    return double_lens()


def model_without_biases(family="bert") -> Any:
    """A model that does not normalise, on which relevance is conserved: a bias would take a part of it."""
    model = zoo.encoder(family, normalize=False)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    return model


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_explain_the_models_score_and_report_the_gap(lens, name):
    e = RIVALS[name](lens, A, B, "cosine")
    assert e.score == pytest.approx(lens.explain(A, B, method="output").score, abs=1e-9)
    assert e.matrix.shape == (len(e.units_a), len(e.units_b)) == (len(e.tokens_a), len(e.tokens_b))
    assert e.matrix.sum() + e.gap == pytest.approx(e.score)
    assert e.gap_a == e.gap_b == pytest.approx(abs(e.gap / e.score))
    swapped = RIVALS[name](lens, B, A, "cosine").matrix.T
    assert np.allclose(e.matrix, swapped, atol=1e-9) is (name != "random")


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_leave_the_model_unchanged(name):
    model = zoo.encoder()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    embedding = model.encode(A)
    RIVALS[name](Lens(model), A, B, "cosine")
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert np.array_equal(model.encode(A), embedding)


@pytest.mark.parametrize("measure", ["cosine", "dot"])
@pytest.mark.parametrize("name", ["gradient-input", "bilrp", "integrated-gradients", "rollout"])
def test_rivals_explain_the_score_of_a_model_that_does_not_normalise(name, measure):
    lens = double_lens(normalize=False)
    e = RIVALS[name](lens, A, B, measure)
    assert e.score == pytest.approx(lens.explain(A, B, method="output", measure=measure).score)


def test_rivals_refuse_static_embeddings():
    with pytest.raises(ModelError, match="no layers to look into"):
        rivals.bertscore(Lens(zoo.static()), A, B, "cosine")


def test_rivals_refuse_black_boxes():
    with pytest.raises(ModelError, match="black box"):
        rivals.random(Lens.from_function(lambda texts: [[1.0, len(text)] for text in texts]), A, B, "cosine")


# Token cosines.


def test_bertscore_is_a_multiple_of_the_cosines_of_output_states(lens):
    model = layered_encoder(lens).sentence_transformer
    states = [model.encode(text, output_value="token_embeddings").numpy() for text in (A, B)]
    unit_a, unit_b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in states)
    e = rivals.bertscore(lens, A, B, "cosine")
    assert np.abs(e.matrix).sum() == pytest.approx(abs(e.score))
    factor = np.abs(e.matrix).sum() / np.abs(unit_a @ unit_b.T).sum()
    assert np.allclose(e.matrix, unit_a @ unit_b.T * factor, atol=1e-5)


def test_word_cosine_is_a_multiple_of_the_cosines_of_words_embedded_alone(lens):
    a, b = "tea coffee", "the music here"
    e = rivals.explain_by_rival("word-cosine", lens, a, b, "cosine", "word")
    vectors = [layered_encoder(lens).sentence_transformer.encode(text.split()) for text in (a, b)]
    unit_a, unit_b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in vectors)
    cosines = unit_a @ unit_b.T
    assert not e.matrix[[0, -1]].any()  # special tokens
    assert np.allclose(e.matrix[1:-1, 1:-1] / np.abs(e.matrix).sum(), cosines / np.abs(cosines).sum(), atol=1e-5)


# Gradient × input.


def test_gradient_input_is_the_mixed_second_derivative(lens):
    """The score of (1 + ε) x_s with (1 + δ) y_t, by differences: ∂²/∂ε∂δ at zero."""
    text_a, text_b = (TextAtLayer.read(lens, text, "cosine") for text in (A, B))
    step = 1e-4

    def embed(text: TextAtLayer, token: int, factor: float) -> torch.Tensor:
        states = text.states.x.clone()
        states[0, token] *= 1 + factor
        with differentiable():
            return text.tail(states)[0]

    def derivative(text: TextAtLayer, token: int) -> torch.Tensor:
        return (embed(text, token, step) - embed(text, token, -step)) / (2 * step)

    matrix = rivals.gradient_input(lens, A, B, "cosine").matrix
    for s, t in ((1, 1), (0, 3), (5, 2)):
        assert matrix[s, t] == pytest.approx(float(derivative(text_a, s) @ derivative(text_b, t)), abs=1e-7)


# Integrated gradients.


def test_captums_attributions_sum_to_the_difference_from_the_reference(lens):
    text_a, text_b = (TextAtLayer.read(lens, text, "cosine") for text in (A, B))
    with differentiable():
        attributions = rivals.attribute(text_a, text_b.vector)
        reference = text_a.tail(text_a.states.r)[0].numpy()
    assert attributions.shape == (len(text_a.text.units),)
    assert attributions.sum() == pytest.approx((text_a.vector - reference) @ text_b.vector, abs=1e-3)


def test_integrated_gradients_matrix_is_a_positive_multiple_of_the_outer_product(lens):
    text_a, text_b = (TextAtLayer.read(lens, text, "cosine") for text in (A, B))
    with differentiable():
        values_a, values_b = rivals.attribute(text_a, text_b.vector), rivals.attribute(text_b, text_a.vector)
    e = rivals.integrated_gradients(lens, A, B, "cosine")
    assert abs(e.matrix.sum()) == pytest.approx(abs(e.score))
    # Two tokens that both raise the score have a positive entry.
    factor = e.matrix[1, 1] / (values_a[1] * values_b[1])
    assert factor > 0
    assert np.allclose(e.matrix, factor * np.outer(values_a, values_b))


def test_missing_captum_raises_missing_extra_with_the_install_command(lens, monkeypatch):
    monkeypatch.setitem(sys.modules, "captum.attr", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pairlens\[study\]'"):
        rivals.integrated_gradients(lens, A, B, "cosine")


# Rollout.


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_attention_shares_are_rows_of_the_product_of_attention_matrices(pooling):
    lens = double_lens(pooling=pooling)
    text = TextAtLayer.read(lens, A, "cosine")
    model = zoo.transformer().auto_model.double()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        attentions = model(text.text.features["input_ids"], output_attentions=True).attentions
    through = torch.eye(len(text.text.units), dtype=torch.float64)
    for weights in attentions:
        through = (weights[0].mean(0) + torch.eye(len(through))) / 2 @ through
    expected = through.mean(0) if pooling == "mean" else through[0]
    assert np.allclose(rivals.attention_shares(text), expected.numpy(), atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "deberta-v2", "t5", "qwen3", "albert", "modernbert"])
def test_attention_shares_sum_to_one_and_rollout_to_the_score(family):
    lens = double_lens(family)
    assert rivals.attention_shares(TextAtLayer.read(lens, A, "cosine")).sum() == pytest.approx(1.0)
    e = rivals.rollout(lens, A, B, "cosine")
    assert e.matrix.sum() == pytest.approx(e.score)


def test_rollout_refuses_max_pooling():
    with pytest.raises(ModelError, match="max pooling; it knows mean, cls and lasttoken"):
        rivals.rollout(double_lens(pooling="max"), A, B, "cosine")


# BiLRP.


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_bilrp_has_no_gap_on_a_model_without_biases(family):
    lens = Lens(model_without_biases(family), dtype="float64")
    assert rivals.bilrp(lens, A, B, "dot").gap_a < 1e-9
    # Gradient × input has a gap, so it is the rules that conserve relevance.
    assert rivals.gradient_input(lens, A, B, "dot").gap_a > 1e-3


def test_bilrp_of_a_linear_model_is_exact():
    """Layers that do nothing: the embedding is the mean of the tokens' vectors, so each token's part is known."""
    model = model_without_biases()
    with torch.no_grad():
        for layer in model[0].auto_model.encoder.layer:
            for name, parameter in layer.named_parameters():
                if "output.dense" in name:
                    parameter.zero_()
                elif "LayerNorm.weight" in name:
                    parameter.fill_(1.0)
    lens = Lens(model, dtype="float64")
    # Each layer's two LayerNorms are all that is left of it.
    vectors = []
    for text in (A, B):
        states = TextAtLayer.read(lens, text, "dot", space="raw").states.x[0]
        for _ in range(2 * lens.layers):
            states = F.layer_norm(states, states.shape[-1:], eps=1e-12)
        vectors.append(states.numpy() / len(states))
    assert np.allclose(rivals.bilrp(lens, A, B, "dot").matrix, vectors[0] @ vectors[1].T, atol=1e-8)
