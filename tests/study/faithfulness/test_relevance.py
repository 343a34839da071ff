"""The locally linear model: it computes what the model computes, and every rule is a constant times the input."""

from __future__ import annotations

import math
from typing import Any

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

import zoo
from judging import PAIRS
from pairlens import Lens
from pairlens.autodiff import differentiable
from pairlens.study.faithfulness import relevance
from pairlens.study.faithfulness.relevance import LocallyLinear
from pairlens.study.faithfulness.text_at_layer import TextAtLayer


@pytest.mark.parametrize("family", ["bert", "t5", "qwen3", "embeddinggemma", "deberta-v2"])
def test_locally_linear_model_computes_the_same_embedding(family):
    lens = Lens(zoo.encoder(family), dtype="float64")
    text = TextAtLayer.read(lens, PAIRS[0][0], "cosine")
    with differentiable():
        plain = text.tail(text.states.x)
        with LocallyLinear():
            linear = text.tail(text.states.x)
    assert torch.allclose(plain, linear, atol=1e-6)


def test_replaced_attention_equals_scaled_dot_product_attention_and_is_recorded():
    generator = torch.Generator().manual_seed(0)
    query = torch.randn(2, 4, 5, 8, generator=generator)
    key, value = (torch.randn(2, 2, 5, 8, generator=generator) for _ in range(2))
    mask = torch.rand(2, 1, 5, 5, generator=generator) > 0.3
    mask |= torch.eye(5, dtype=torch.bool)
    bias = torch.randn(2, 4, 5, 5, generator=generator)
    cases: list[dict[str, Any]] = [{"is_causal": True}, {"attn_mask": mask}, {"attn_mask": bias, "scale": 0.5}]
    for options in cases:
        plain = F.scaled_dot_product_attention(query, key, value, enable_gqa=True, **options)
        recorded: list[torch.Tensor] = []
        with LocallyLinear(recorded):
            replaced = F.scaled_dot_product_attention(query, key, value, enable_gqa=True, **options)
        assert torch.allclose(plain, replaced, atol=1e-6)
        assert torch.allclose(recorded[0].sum(-1), torch.ones(2, 4, 5))


@pytest.mark.parametrize("function", [F.gelu, F.silu, F.relu, torch.tanh, lambda x: F.rms_norm(x, (3,))])
def test_activation_is_a_constant_times_its_input(function):
    x = torch.tensor([-1.5, 0.0, 2.0], dtype=torch.float64)
    with LocallyLinear():
        out, tangent = torch.func.jvp(function, (x,), (x,))[:2]
    assert torch.allclose(out, function(x))
    assert torch.allclose(tangent, out)
    assert math.isclose(float(relevance._ratio(x, out)[2]), float(out[2]))
