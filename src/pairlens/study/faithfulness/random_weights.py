"""Copies of a model whose last layers have random weights, for the sanity check (Adebayo et al., arXiv 1810.03292)."""

from __future__ import annotations

import copy

import torch

from pairlens.lens import Lens
from pairlens.model.layers import Tapped
from pairlens.study.faithfulness.text_at_layer import layered_encoder


def layer_count(lens: Lens) -> int:
    """The number of layers with weights of their own; smaller than `Lens.layers` where layers share weights."""
    return sum(isinstance(module, Tapped) for module in layered_encoder(lens).route().modules[0].modules())


def randomise(lens: Lens, depth: int, seed: int) -> Lens:
    """A lens on a copy of the model whose last `depth` layers have random weights; the caller's model is not touched.

    Every parameter is drawn from a normal distribution with the mean and the standard deviation that it had: what it
    learned is lost, and the scale of the hidden states stays.
    """
    encoder = layered_encoder(lens)
    dtype = "float64" if encoder.dtype == torch.float64 else "float32"
    random = Lens(copy.deepcopy(encoder.sentence_transformer), encoder.device, dtype=dtype)
    layers = [m for m in layered_encoder(random).route().modules[0].modules() if isinstance(m, Tapped)]
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in layers[len(layers) - depth :]:
            for parameter in layer.parameters():
                # A single number has no standard deviation.
                spread = parameter.std() if parameter.numel() > 1 else parameter.abs().mean()
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_(parameter.mean() + spread * noise.to(parameter))
    return random
