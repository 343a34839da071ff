"""The sanity check's model: a copy whose last layers have random weights (Adebayo et al., arXiv 1810.03292)."""

from __future__ import annotations

import copy

import torch

from pairlens.lens import Lens
from pairlens.model.layers import Tapped
from pairlens.study.faithfulness.rivals import transformer


def layer_count(lens: Lens) -> int:
    """How many layers can be drawn anew one by one: fewer than the model runs where it runs one layer again."""
    return sum(isinstance(module, Tapped) for module in transformer(lens).route().modules[0].modules())


def randomise(lens: Lens, depth: int, seed: int) -> Lens:
    """A lens on a copy of the model whose last `depth` layers are drawn anew; the caller's model is not touched.

    Every weight comes from a normal distribution with the mean and the spread that it had, so that what it learned is
    gone and the size of what it computes stays.
    """
    encoder = transformer(lens)
    dtype = "float64" if encoder.dtype == torch.float64 else "float32"
    random = Lens(copy.deepcopy(encoder._model), encoder.device, dtype=dtype)
    layers = [m for m in transformer(random).route().modules[0].modules() if isinstance(m, Tapped)]
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for layer in layers[len(layers) - depth :]:
            for parameter in layer.parameters():
                # One number has no spread.
                spread = parameter.std() if parameter.numel() > 1 else parameter.abs().mean()
                noise = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
                parameter.copy_(parameter.mean() + spread * noise.to(parameter))
    return random
