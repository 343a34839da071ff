"""The count of floating-point operations, against counts by hand."""

from __future__ import annotations

import torch

import zoo
from judging import PAIRS
from pairlens.study.faithfulness.cost import count
from pairlens.study.faithfulness.text_at_layer import layered_encoder


def test_operations_of_a_forward_pass_equal_the_count_by_hand(lens):
    encoder = layered_encoder(lens)
    text = encoder.read(PAIRS[0][0])
    tokens, width, inner, layers = len(text.units), zoo.HIDDEN, 48, zoo.LAYERS
    expected = layers * (2 * tokens * width * (4 * width + 2 * inner) + 4 * tokens**2 * width)
    pooler = 2 * width**2  # BERT's own, which sentence encoders do not use
    assert count(lambda: encoder.outputs([text]))[1] == expected + pooler


def test_operations_are_counted_under_jvp_and_vmap():
    tokens, width = 9, zoo.HIDDEN
    states, weight = torch.randn(1, tokens, width), torch.randn(width, width)
    plain = count(lambda: states @ weight)[1]
    assert plain == 2 * tokens * width**2
    # The value, its tangent, and a product with the weight's tangent, which PyTorch computes though it is zero.
    tangent = count(lambda: torch.func.jvp(lambda x: x @ weight, (states,), (states,)))[1]
    assert tangent in (2 * plain, 3 * plain)
    stacked = torch.randn(5, 1, tokens, width)
    assert count(lambda: torch.func.vmap(lambda x: x @ weight)(stacked))[1] == 5 * plain


def test_count_returns_what_the_function_returns():
    assert count(lambda: "nothing is multiplied") == ("nothing is multiplied", 0)
