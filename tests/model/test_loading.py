"""Models that cannot be explained are refused, with the reason and the remedy."""

from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from sentence_transformers import CrossEncoder, SentenceTransformer, SparseEncoder
from torch import nn
from transformers import BertConfig, BertForSequenceClassification

import zoo
from pairlens import Lens, ModelError

A, B = zoo.TEXTS[:2]
L = zoo.LAYERS

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


def sparse_encoder() -> SparseEncoder:
    try:
        modules: Any = import_module("sentence_transformers.sparse_encoder.modules")
    except ModuleNotFoundError:  # before sentence-transformers 5.4
        modules = import_module("sentence_transformers.sparse_encoder.models")
    return SparseEncoder(modules=[modules.SparseStaticEmbedding(tokenizer=zoo.tokenizer("bert"))], device="cpu")


def save_cross_encoder(folder: Path) -> Path:
    options: Any = {"num_labels": 1}
    config = BertConfig(hidden_size=8, num_hidden_layers=1, num_attention_heads=1, intermediate_size=8, **options)
    BertForSequenceClassification(config).save_pretrained(folder)
    zoo.tokenizer("bert").save_pretrained(folder)
    return folder


def test_sparse_encoders_are_refused(tmp_path: Path):
    model = sparse_encoder()
    with pytest.raises(ModelError, match=r"SparseEncoder.*decode"):
        Lens(model)
    model.save_pretrained(str(tmp_path))
    with pytest.raises(ModelError, match="SparseEncoder"):
        Lens(tmp_path)


def test_cross_encoders_are_refused(tmp_path: Path):
    with torch.random.fork_rng(devices=[]):
        folder = save_cross_encoder(tmp_path)
        with pytest.raises(ModelError, match=r"CrossEncoder.*bi-encoder"):
            Lens(CrossEncoder(str(folder), device="cpu"))
    with pytest.raises(ModelError, match="CrossEncoder"):
        Lens(folder)


@pytest.mark.parametrize("backend", ["onnx", "openvino"])
def test_backends_without_derivatives_are_refused(backend):
    model: Any = zoo.encoder()
    model.backend = backend
    with pytest.raises(ModelError, match=rf"{backend}.*backend='torch'"):
        Lens(model)


@pytest.mark.parametrize("model", [nn.Linear(2, 2), 42, zoo.transformer("bert"), zoo.transformer("bert").auto_model])
def test_other_things_are_refused(model):
    with pytest.raises(ModelError, match="SentenceTransformer"):
        Lens(model)


def test_a_bag_of_words_is_refused():
    model = SentenceTransformer(modules=[zoo.modules.BoW(["coffee", "good", "bad"])], device="cpu")
    with pytest.raises(ModelError, match="BoW"):
        Lens(model).explain(A, B)


@pytest.mark.parametrize("name", ["all-MiniLM-L6-v2", "sentence-transformers/all-MiniLM-L6-v2"])
def test_first_names_of_the_default_model_find_the_bundled_one(name, minilm, tmp_path, monkeypatch):
    assert Lens(name).encoder.fingerprint == minilm.encoder.fingerprint
    assert Lens(name).name == minilm.name
    # A folder of that name comes first, as in sentence-transformers.
    monkeypatch.chdir(tmp_path)
    zoo.encoder().save_pretrained(name)
    assert Lens(name).encoder.fingerprint != minilm.encoder.fingerprint
