"""References: padding, mask and zero, and what they share with the text."""

from typing import Any

import numpy as np
import pytest

import zoo
from families import A, B, check, families, lens_of, model_of
from pairlens import GaussLegendre, Lens, ModelError, ReferenceWarning
from pairlens.model import Encoder
from pairlens.model.reference import reference_token

# The base of these random models is often large.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


@pytest.mark.parametrize("family", families("bert", "qwen3"))
def test_padding_mask_and_zero_references_differ(family):
    lens, tokenizer = lens_of(family), model_of(family).tokenizer
    padded, zeroed = (lens.explain(A, B, layer=1, rule=GaussLegendre(3), reference=r) for r in ("padding", "zero"))
    assert padded.settings["reference_token"] == tokenizer.pad_token
    assert np.abs(padded.matrix - zeroed.matrix).max() > 1e-3
    if tokenizer.mask_token is None:
        with pytest.raises(ModelError, match=r"no mask token.*reference='padding'"):
            lens.explain(A, B, reference="mask")
    else:
        masked = lens.explain(A, B, layer=1, rule=GaussLegendre(3), reference="mask")
        assert masked.settings["reference_token"] == tokenizer.mask_token
        assert np.abs(padded.matrix - masked.matrix).max() > 1e-3
        assert masked.score == pytest.approx(padded.score, abs=1e-12)


def test_without_a_padding_token_the_end_token_fills_the_reference():
    # sentence-transformers itself pads every batch, so such a tokenizer only comes with a model's own input module.
    reader = Encoder(zoo.encoder("qwen3")).route().reader
    assert reference_token("padding", reader) == (0, "<|endoftext|>")
    reader.tokenizer.pad_token = None
    assert reference_token("padding", reader) == (1, "<|im_end|>")
    reader.tokenizer.eos_token = None
    with pytest.raises(ModelError, match="neither a padding nor an end token"):
        reference_token("padding", reader)


def test_tokens_that_the_reference_keeps_contribute_nothing_at_layer_0():
    e = lens_of("bert").explain(A, B, layer=0)
    special = [unit.kind == "special" for unit in e.units_a]
    assert not e.matrix[special].any()
    assert e.matrix[np.logical_not(special)].any(1).all()
    assert lens_of("bert").explain(A, B, layer=1).matrix[special].any()


def test_prompts_stay_in_the_reference():
    model = zoo.encoder("bert", prompts={"query": "query: "})
    e = check(model, layer=0, roles=("query", None))
    assert not e.matrix[[unit.kind == "prompt" for unit in e.units_a]].any()


def test_a_large_base_gives_a_warning():
    # The last layer of a mean-pooled encoder with a huge constant: all texts point one way.
    model: Any = zoo.encoder("bert", dense=8)
    model[2].linear.bias.data += 100
    with pytest.warns(ReferenceWarning, match="keep"):
        Lens(model).explain(A, B, layer=zoo.LAYERS)
