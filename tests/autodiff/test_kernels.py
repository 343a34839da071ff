"""Kernels give the numbers of the plain rules; only a CUDA device with Triton can say so."""

from __future__ import annotations

import pytest
import torch
import torch.nn.functional as F  # noqa: N812

from pairlens.autodiff import kernels

needs_device = pytest.mark.skipif(
    not (torch.cuda.is_available() and kernels.enabled), reason="needs a CUDA device and Triton"
)


@needs_device
@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize(
    ("shape", "out"), [((3, 5, 7, 33), 17), ((21, 14, 16, 384), 96), ((2047, 40), 64), ((2048, 40), 65), ((0, 8), 4)]
)
def test_products_are_exact_to_float32(shape, out, biased):
    x, weight = torch.randn(*shape, device="cuda"), torch.randn(out, shape[-1], device="cuda")
    bias = torch.randn(out, device="cuda") if biased else None
    found = kernels.multiply(x, weight, bias)
    expected = F.linear(x.double(), weight.double(), None if bias is None else bias.double())
    assert found.shape == expected.shape
    assert (found - expected).norm() <= 5e-7 * expected.norm()


def test_elsewhere_they_are_not_used():
    x, weight = torch.randn(3, 8), torch.randn(4, 8)
    assert not kernels.multiplies(x, weight)
