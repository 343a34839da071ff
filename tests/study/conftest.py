"""A tiny model, and materials with every input that a study may need."""

from __future__ import annotations

import pytest

import zoo
from pairlens import Lens
from pairlens.study.materials import Materials
from studies import adjust, annotate_pairs, materials


@pytest.fixture(scope="session")
def lens() -> Lens:
    return Lens(zoo.encoder("bert"))


@pytest.fixture(scope="session")
def everything(lens) -> Materials:
    """Materials whose explanations are made once for all tests."""
    adjusted, twin = Lens(adjust(zoo.encoder("bert"))), Lens(zoo.encoder("bert"))
    others = [Lens(zoo.encoder("roberta"))]
    return materials(lens, annotations=annotate_pairs(), others=others, adjusted=adjusted, twin=twin)
