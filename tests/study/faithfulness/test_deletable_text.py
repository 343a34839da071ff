"""Embeddings of texts with units deleted, against the model on token ids that were removed by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

from judging import PAIRS, deletable_texts
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.study.faithfulness.text_at_layer import layered_encoder


@pytest.fixture
def text(lens) -> DeletableText:
    return deletable_texts(lens, PAIRS[0][1])[0]


def test_deleting_a_unit_removes_its_token_id_and_closes_up_the_positions(lens, text):
    left = np.ones((2, text.count), dtype=bool)
    left[1, 2] = False
    ids = text.text.features["input_ids"][0].tolist()
    del ids[int(text.players[2])]
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


def test_deleting_a_word_removes_all_its_tokens(lens):
    (text,) = deletable_texts(lens, "Prices rose re-opened.", level="word")
    (tokens,) = deletable_texts(lens, "Prices rose re-opened.")
    assert text.count < tokens.count
    labels = [next(i for i, unit in enumerate(text.units) if unit.end >= token.end) for token in tokens.units[1:-1]]
    left = np.ones((1, text.count), dtype=bool)
    left[0, 2] = False
    remaining = np.array([[label != text.players[2] for label in labels]])
    assert np.allclose(text.embed(left), tokens.embed(remaining), atol=1e-6)
