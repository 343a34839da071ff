"""The study of one pair layer by layer."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.study.papers import layers


def test_likeness_of_neighbouring_layers():
    one, two = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])
    assert layers.likeness([one, two]) == pytest.approx(0.8)  # 1 - 6 · 2 / (4 · 15)
    assert layers.likeness([one, two, -two]) == pytest.approx(-0.1)
    assert layers.likeness([one]) == 1.0
