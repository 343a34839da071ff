"""The settings of a training: the papers' defaults, and the errors for wrong values."""

from __future__ import annotations

from typing import Any

import pytest

from pairlens import InputError
from pairlens.adjusted.recipe import Recipe


def test_the_defaults_are_the_recipe_of_the_papers():
    assert Recipe() == Recipe("cosine", True, 5, 16, 2e-5, 0.1, 0.1, 0, "float32")


WRONG = [
    {"lr": 0},
    {"lr": "high"},
    {"weight_decay": -1},
    {"epochs": 0},
    {"batch_size": 1.5},
    {"seed": -1},
    {"warmup": 2},
    {"objective": "euclid"},
    {"precision": "int8"},
    {"adjusted": 1},
]


@pytest.mark.parametrize("settings", WRONG, ids=str)
def test_wrong_settings_raise_and_are_named(settings: dict[str, Any]):
    with pytest.raises(InputError, match=next(iter(settings))):
        Recipe(**settings)
