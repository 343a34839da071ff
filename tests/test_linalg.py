"""Products of arrays in pieces and linear layers by oneDNN: the same numbers, whichever way they are taken."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.nn import functional

from pairlens.linalg import LARGE, ONEDNN, SMALL, FastLinear, linear, product


@pytest.mark.parametrize(
    ("rows", "inner", "columns"),
    [(3, 5, 4), (246, 41, 384), (20, 384, 512), (512, 384, 20), (1, 600, 600), (600, 600, 1), (300, 300, 60)],
)
def test_a_product_is_the_product(rows, inner, columns):
    rng = np.random.default_rng(0)
    a, b = rng.normal(size=(rows, inner)), rng.normal(size=(inner, columns))
    for left, right in ((a, b), (np.asfortranarray(a), b[:, ::-1]), (a[::-1], b.copy(order="F"))):
        np.testing.assert_allclose(product(left, right), left @ right, atol=1e-10)


def test_the_cases_above_are_of_all_sizes():
    assert 3 * 5 * 4 <= SMALL < 246 * 41 * 384 < LARGE <= 300 * 300 * 60


@pytest.mark.parametrize("shape", [(0, 48), (1, 48), (7, 48), (3, 5, 48), (2, 3, 40, 48)])
@pytest.mark.parametrize("biased", [False, True])
def test_a_linear_layer_is_pytorchs(shape, biased):
    random = torch.Generator().manual_seed(0)
    x, weight = torch.randn(shape, generator=random), torch.randn(64, 48, generator=random)
    bias = torch.randn(64, generator=random) if biased else None
    with torch.inference_mode():
        for given in (x, x.transpose(0, -2)):
            torch.testing.assert_close(linear(given, weight, bias), functional.linear(given, weight, bias))


def test_linear_layers_keep_gradients_doubles_and_autocast():
    weight = torch.ones(2, 3, requires_grad=True)
    linear(torch.ones(4, 3), weight).sum().backward()
    assert weight.grad is not None
    with torch.inference_mode():
        assert linear(torch.ones(4, 3).double(), weight.double()).dtype == torch.float64
        with torch.autocast("cpu", torch.bfloat16):
            assert linear(torch.ones(4, 3), weight).dtype == torch.bfloat16


@pytest.mark.skipif(ONEDNN is None, reason="this PyTorch has no oneDNN")
def test_fast_linear_reaches_the_layers_of_a_model(monkeypatch):
    calls = []
    monkeypatch.setattr("pairlens.linalg.ONEDNN", lambda *given: calls.append(given) or functional.linear(*given[:3]))
    layer = torch.nn.Linear(3, 2)
    with torch.inference_mode():
        expected = layer(torch.ones(4, 3))
        assert not calls
        with FastLinear():
            torch.testing.assert_close(layer(torch.ones(4, 3)), expected)
    assert len(calls) == 1
