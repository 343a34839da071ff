"""The modules that can be adjusted, and the errors for those that cannot."""

from __future__ import annotations

import pytest
import torch
from sentence_transformers import SentenceTransformer

import zoo
from adjusting import tiny
from pairlens import Lens, ModelError
from pairlens.adjusted.module import Adjusted
from pairlens.adjusted.wrapping import wrap
from pairlens.model.adjusted_layout import ADJUSTED


def test_models_that_cannot_be_adjusted_raise():
    plain, model = tiny()
    with pytest.raises(ModelError, match="adjusted already"):
        wrap(model)
    with pytest.raises(ModelError, match="Normalize belongs after"):
        Adjusted(list(plain))
    with pytest.raises(ModelError, match="needs the modules"):
        Adjusted([])
    with pytest.raises(ModelError, match="begins with Pooling"):
        Adjusted(list(plain)[1:2])

    class Own(torch.nn.Module):
        pass

    with pytest.raises(ModelError, match="not part of sentence-transformers"):
        Adjusted([plain[0], Own()])
    with pytest.raises(ModelError, match="its reference's embedding is not zero"):
        Lens(SentenceTransformer(modules=[model[0], zoo.modules.Dense(32, 4)], device="cpu"))
    assert f"{type(model[0]).__module__}.{type(model[0]).__name__}" == ADJUSTED
