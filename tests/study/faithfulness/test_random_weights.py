"""Copies of a model with random weights: which layers change, and that the model itself does not."""

from __future__ import annotations

import pytest
import torch

from judging import PAIRS
from pairlens import Lens
from pairlens.study.faithfulness.random_weights import layer_count, randomise
from pairlens.study.faithfulness.text_at_layer import layered_encoder


def changed_layers(lens: Lens, other: Lens) -> set[str]:
    """The numbers of the layers whose parameters differ between two lenses; fails if other parameters differ."""
    # The first run of a model renames its parameters, so they are compared by position.
    pairs = zip(layered_encoder(lens)._twin.named_parameters(), layered_encoder(other)._twin.parameters(), strict=True)
    changed = {name for (name, parameter), other in pairs if not torch.equal(parameter, other)}
    return {name.split("layer.")[1][0] for name in changed}


def test_randomise_changes_the_last_layers_and_not_the_callers_model(lens):
    model = layered_encoder(lens).sentence_transformer
    before = {name: value.clone() for name, value in model.state_dict().items()}
    assert changed_layers(lens, randomise(lens, 1, seed=0)) == {"2"}
    assert changed_layers(lens, randomise(lens, 3, seed=0)) == {"0", "1", "2"}
    assert all(torch.equal(value, before[name]) for name, value in model.state_dict().items())


def test_randomise_draws_the_same_weights_for_the_same_seed(lens):
    scores = [randomise(lens, 1, seed).explain(*PAIRS[0], method="output").score for seed in (0, 0, 1)]
    assert scores[0] == pytest.approx(scores[1])
    assert scores[0] != pytest.approx(scores[2])


def test_layer_count_is_the_number_of_layers_with_weights_of_their_own(lens):
    assert layer_count(lens) == lens.layers == 3
