"""Embeddings of texts with units deleted, against the model on token ids that were removed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from judging import PAIRS, deletable_texts
from pairlens.study.faithfulness.deletable_text import DeletableText, text_matrix
from pairlens.study.faithfulness.text_at_layer import layered_encoder


@pytest.fixture
def text(lens) -> DeletableText:
    return deletable_texts(lens, PAIRS[0][1])[0]


def test_deleting_a_unit_removes_its_token_id_and_closes_up_the_positions(lens, text):
    left = np.ones((2, text.count), dtype=bool)
    left[1, 2] = False
    ids = text.text.features["input_ids"][0].tolist()
    del ids[int(np.flatnonzero(text.units)[2])]
    model: Any = layered_encoder(lens).sentence_transformer
    features = {"input_ids": torch.tensor([ids]), "attention_mask": torch.ones(1, len(ids), dtype=torch.long)}
    with torch.no_grad():
        expected = model(features)["sentence_embedding"][0].numpy()
    embeddings = text.embed(left)
    assert np.allclose(embeddings[1], expected, atol=1e-6)
    assert np.allclose(embeddings[0], model.encode(text.text.text), atol=1e-6)


def test_each_subset_of_units_is_embedded_once(lens, text, monkeypatch):
    left = np.ones((2, text.count), dtype=bool)
    left[1, 2] = False
    embeddings = text.embed(left)
    monkeypatch.setattr(type(layered_encoder(lens)), "encode", None)
    assert np.array_equal(text.embed(left[::-1]), embeddings[::-1])


def test_whole_and_without_each_are_embeddings_of_all_units_and_of_all_but_one(text):
    assert np.array_equal(text.whole(), text.embed(np.ones((1, text.count), dtype=bool))[0])
    without_each = text.without_each()
    assert len(without_each) == text.count
    for unit in range(text.count):
        left = np.arange(text.count) != unit
        assert np.array_equal(without_each[unit], text.embed(left[None])[0])


def test_text_matrix_leaves_out_special_tokens(lens):
    text_a, text_b = deletable_texts(lens, *PAIRS[0])
    e = lens.explain(*PAIRS[0], method="output", level="token")
    assert e.matrix.shape == (text_a.count + 2, text_b.count + 2)  # [CLS] and [SEP]
    assert np.array_equal(text_matrix(e, text_a, text_b), e.matrix[1:-1, 1:-1])
