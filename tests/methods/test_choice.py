"""From the options that a user gives to a method."""

from __future__ import annotations

import pytest

from pairlens import Banzhaf, InputError, Shapley
from pairlens.methods import sampled_method


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"method": "shapley", "layer": 3}, "for integrated-jacobian"),
        ({"method": Shapley(), "layer": 3}, "for integrated-jacobian"),
        ({"method": "shaply"}, "Did you mean 'shapley'"),
    ],
)
def test_bad_options(minilm, options, message):
    with pytest.raises(InputError, match=message):
        minilm.explain("A cat.", "A dog.", **options)


def test_passes_never_change_the_quantity():
    assert sampled_method(None, passes=64) == Banzhaf(passes=64)
    assert sampled_method("shapley", passes=64, seed=1) == Shapley(passes=64, seed=1)
    assert sampled_method("fade") == "fade"
    with pytest.raises(InputError, match="not of 'fade'"):
        sampled_method("fade", seed=1)
