"""Each rival against a formula of its own, and that none of them touches the model."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812

import zoo
from pairlens import Lens
from pairlens.autodiff import differentiable
from pairlens.errors import MissingExtra, ModelError
from pairlens.study.faithfulness import relevance, rivals
from pairlens.study.faithfulness.relevance import LocallyLinear
from pairlens.study.faithfulness.rivals import RIVALS, Side

A, B = "The coffee here is not good.", "This coffee is bad."


def lens_on(family="bert", **options) -> Lens:
    return Lens(zoo.encoder(family, **options), dtype="float64")


@pytest.fixture(scope="module")
def lens() -> Lens:
    return lens_on()


def unbiased(family="bert", **options) -> Lens:
    """A model without biases, on which relevance is conserved: no share of it goes to a bias."""
    return Lens(without_biases(zoo.encoder(family, normalize=False, **options)), dtype="float64")


def without_biases(model: Any) -> Any:
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if name.endswith("bias"):
                parameter.zero_()
    return model


@pytest.mark.parametrize("name", RIVALS)
def test_every_rival_explains_the_models_own_score(lens, name):
    e = RIVALS[name](lens, A, B, "cosine")
    assert e.score == pytest.approx(lens.explain(A, B, method="output").score, abs=1e-9)
    assert e.matrix.shape == (len(e.units_a), len(e.units_b)) == (len(e.tokens_a), len(e.tokens_b))
    assert e.matrix.sum() + e.gap == pytest.approx(e.score)
    assert e.gap_a == e.gap_b == pytest.approx(abs(e.gap / e.score))
    swapped = RIVALS[name](lens, B, A, "cosine").matrix.T
    assert np.allclose(e.matrix, swapped, atol=1e-9) is (name != "random")


@pytest.mark.parametrize("name", RIVALS)
def test_rivals_leave_the_model_alone(name):
    model = zoo.encoder()
    before = {key: value.clone() for key, value in model.state_dict().items()}
    embedding = model.encode(A)
    RIVALS[name](Lens(model), A, B, "cosine")
    assert all(torch.equal(value, before[key]) for key, value in model.state_dict().items())
    assert np.array_equal(model.encode(A), embedding)


@pytest.mark.parametrize("measure", ["cosine", "dot"])
@pytest.mark.parametrize("name", ["gradient-input", "bilrp", "integrated-gradients", "rollout"])
def test_a_model_that_does_not_normalise(name, measure):
    lens = lens_on(normalize=False)
    e = RIVALS[name](lens, A, B, measure)
    assert e.score == pytest.approx(lens.explain(A, B, method="output", measure=measure).score)


def test_static_embeddings_have_nothing_to_look_into():
    with pytest.raises(ModelError, match="no layers to look into"):
        rivals.bertscore(Lens(zoo.static()), A, B, "cosine")


def test_a_black_box_has_nothing_to_look_into():
    with pytest.raises(ModelError, match="black box"):
        rivals.random(Lens.from_function(lambda texts: [[1.0, len(text)] for text in texts]), A, B, "cosine")


# Token cosines.


def test_bertscore_is_the_cosine_of_output_states(lens):
    model = layered_encoder(lens).sentence_transformer
    states = [model.encode(text, output_value="token_embeddings").numpy() for text in (A, B)]
    one, other = (own / np.linalg.norm(own, axis=1, keepdims=True) for own in states)
    assert np.allclose(rivals.bertscore(lens, A, B, "cosine").matrix, one @ other.T, atol=1e-5)


# Gradient × input.


def test_gradient_input_is_the_mixed_second_derivative(lens):
    """The score of (1 + ε) x_s with (1 + δ) y_t, by differences: ∂²/∂ε∂δ at zero."""
    sides = [Side.of(lens, text, "cosine") for text in (A, B)]
    step = 1e-4

    def embed(side: Side, token: int, factor: float) -> torch.Tensor:
        states = side.heads.x.clone()
        states[0, token] *= 1 + factor
        with differentiable():
            return side.tail(states)[0]

    def slope(side: Side, token: int) -> torch.Tensor:
        return (embed(side, token, step) - embed(side, token, -step)) / (2 * step)

    matrix = rivals.gradient_input(lens, A, B, "cosine").matrix
    for s, t in ((1, 1), (0, 3), (5, 2)):
        assert matrix[s, t] == pytest.approx(float(slope(sides[0], s) @ slope(sides[1], t)), abs=1e-7)


# Integrated gradients.


def test_captums_attributions_are_complete(lens):
    one, other = (Side.of(lens, text, "cosine") for text in (A, B))
    with differentiable():
        found = rivals.attribute(one, other.vector)
        start = one.tail(one.heads.r)[0].numpy()
    assert found.shape == (len(one.text.units),)
    assert found.sum() == pytest.approx((one.vector - start) @ other.vector, abs=1e-3)


def test_the_pair_form_of_integrated_gradients(lens):
    sides = [Side.of(lens, text, "cosine") for text in (A, B)]
    with differentiable():
        one, other = (rivals.attribute(own, rest.vector) for own, rest in (sides, sides[::-1]))
    e = rivals.integrated_gradients(lens, A, B, "cosine")
    assert abs(e.matrix.sum()) == pytest.approx(abs(e.score))
    # A positive multiple: what raises the score with what raises it is positive.
    factor = e.matrix[1, 1] / (one[1] * other[1])
    assert factor > 0
    assert np.allclose(e.matrix, factor * np.outer(one, other))


def test_a_missing_captum_names_the_command(lens, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "captum.attr", None)
    with pytest.raises(MissingExtra, match=r"pip install 'pairlens\[study\]'"):
        rivals.integrated_gradients(lens, A, B, "cosine")


# Rollout.


@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_rollout_is_the_product_of_attention(pooling):
    lens = lens_on(pooling=pooling)
    side = Side.of(lens, A, "cosine")
    model = zoo.transformer().auto_model.double()
    model.set_attn_implementation("eager")
    with torch.no_grad():
        attentions = model(side.text.features["input_ids"], output_attentions=True).attentions
    through = torch.eye(len(side.text.units), dtype=torch.float64)
    for weights in attentions:
        through = (weights[0].mean(0) + torch.eye(len(through))) / 2 @ through
    wanted = through.mean(0) if pooling == "mean" else through[0]
    assert np.allclose(rivals.looks(side), wanted.numpy(), atol=1e-6)


@pytest.mark.parametrize("family", ["bert", "deberta-v2", "t5", "qwen3", "albert", "modernbert"])
def test_rollouts_shares_sum_to_one(family):
    lens = lens_on(family)
    assert rivals.looks(Side.of(lens, A, "cosine")).sum() == pytest.approx(1.0)
    e = rivals.rollout(lens, A, B, "cosine")
    assert e.matrix.sum() == pytest.approx(e.score)


def test_rollout_knows_no_max_pooling():
    with pytest.raises(ModelError, match="max pooling; it knows mean, cls and lasttoken"):
        rivals.rollout(lens_on(pooling="max"), A, B, "cosine")


# BiLRP.


@pytest.mark.parametrize("family", ["bert", "distilbert", "mpnet"])
def test_relevance_is_conserved_where_there_are_no_biases(family):
    lens = unbiased(family)
    e = rivals.bilrp(lens, A, B, "dot")
    assert e.gap_a < 1e-9
    # The plain gradient is not: the rules are what conserves.
    assert rivals.gradient_input(lens, A, B, "dot").gap_a > 1e-3


def test_bilrp_of_a_linear_model_is_exact():
    """Layers that do nothing: the embedding is the mean of the tokens' vectors, so each token's share is known."""
    model = without_biases(zoo.encoder(normalize=False))
    with torch.no_grad():
        for layer in model[0].auto_model.encoder.layer:
            for name, parameter in layer.named_parameters():
                if "output.dense" in name:
                    parameter.zero_()
                elif "LayerNorm.weight" in name:
                    parameter.fill_(1.0)
    lens = Lens(model, dtype="float64")
    sides = [Side.of(lens, text, "dot", space="raw") for text in (A, B)]
    # A LayerNorm of what is normalised already takes off the mean and divides by the spread.
    vectors = []
    for side in sides:
        states = side.heads.x[0]
        for _ in range(2 * lens.layers):
            states = F.layer_norm(states, states.shape[-1:], eps=1e-12)
        vectors.append(states.numpy() / len(states))
    assert np.allclose(rivals.bilrp(lens, A, B, "dot").matrix, vectors[0] @ vectors[1].T, atol=1e-8)


def test_the_replaced_attention_is_attention():
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(2, 4, 5, 8, generator=generator)
    key, value = (torch.randn(2, 2, 5, 8, generator=generator) for _ in range(2))
    seen = torch.rand(2, 1, 5, 5, generator=generator) > 0.3
    seen |= torch.eye(5, dtype=torch.bool)
    bias = torch.randn(2, 4, 5, 5, generator=generator)
    cases: list[dict[str, Any]] = [{"is_causal": True}, {"attn_mask": seen}, {"attn_mask": bias, "scale": 0.5}]
    for options in cases:
        plain = F.scaled_dot_product_attention(query, key, value, enable_gqa=True, **options)
        noted: list[torch.Tensor] = []
        with LocallyLinear(noted):
            replaced = F.scaled_dot_product_attention(query, key, value, enable_gqa=True, **options)
        assert torch.allclose(plain, replaced, atol=1e-6)
        assert torch.allclose(noted[0].sum(-1), torch.ones(2, 4, 5))


@pytest.mark.parametrize("family", ["bert", "t5", "qwen3", "embeddinggemma", "deberta-v2"])
def test_the_locally_linear_model_computes_the_same(family):
    side = Side.of(lens_on(family), A, "cosine")
    with differentiable():
        plain = side.tail(side.heads.x)
        with LocallyLinear():
            linear = side.tail(side.heads.x)
    assert torch.allclose(plain, linear, atol=1e-6)


@pytest.mark.parametrize("function", [F.gelu, F.silu, F.relu, torch.tanh, lambda x: F.rms_norm(x, (3,))])
def test_an_activation_is_a_constant_times_its_input(function):
    x = torch.tensor([-1.5, 0.0, 2.0], dtype=torch.float64)
    with LocallyLinear():
        out, moved = torch.func.jvp(function, (x,), (x,))[:2]
    assert torch.allclose(out, function(x))
    assert torch.allclose(moved, out)
    assert math.isclose(float(relevance._ratio(x, out)[2]), float(out[2]))
