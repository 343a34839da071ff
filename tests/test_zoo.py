"""The tiny encoders behave like the released models that they stand for."""

import random
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
import transformers
from sentence_transformers import SentenceTransformer

import zoo
from families import families

# The first and last special tokens of a text, and the ids that must equal the released models'.
ENDS = {
    "bert": ("[CLS]", "[SEP]", {}),
    "roberta": ("<s>", "</s>", {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}),
    "xlm-roberta": ("<s>", "</s>", {"<s>": 0, "<pad>": 1, "</s>": 2, "<unk>": 3}),
    "mpnet": ("<s>", "</s>", {"<s>": 0, "<pad>": 1, "</s>": 2}),
    "electra": ("[CLS]", "[SEP]", {}),
    "distilbert": ("[CLS]", "[SEP]", {}),
    "deberta-v2": ("[CLS]", "[SEP]", {"[PAD]": 0, "[CLS]": 1, "[SEP]": 2, "[UNK]": 3}),
    "albert": ("[CLS]", "[SEP]", {"<pad>": 0, "<unk>": 1, "[CLS]": 2, "[SEP]": 3}),
    "modernbert": ("[CLS]", "[SEP]", {}),
    "nomic_bert": ("[CLS]", "[SEP]", {}),
    "t5": (None, "</s>", {"<pad>": 0, "</s>": 1, "<unk>": 2}),
    "qwen3": (None, "<|endoftext|>", {}),
    "gemma3": ("<bos>", "<eos>", {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3, "<mask>": 4}),
    "embeddinggemma": ("<bos>", "<eos>", {"<pad>": 0, "<eos>": 1, "<bos>": 2, "<unk>": 3, "<mask>": 4}),
}

OTHERS = {
    "static": zoo.static,
    "router": zoo.router,
    "two transformers": lambda: zoo.router("mpnet", "bert"),
    "peft": zoo.peft,
    "wrapped peft": lambda: zoo.peft(wrapped=True),
}


def embed(model: SentenceTransformer) -> np.ndarray:
    return model.encode(list(zoo.TEXTS), convert_to_numpy=True)


def check_embeddings(embeddings: np.ndarray, dim: int = zoo.HIDDEN) -> None:
    assert embeddings.shape == (len(zoo.TEXTS), dim)
    assert np.isfinite(embeddings).all()
    distances = np.linalg.norm(embeddings[:, None] - embeddings[None], axis=-1)
    assert distances[~np.eye(len(embeddings), dtype=bool)].min() > 1e-2


def check_random_state_kept(build) -> None:
    def states() -> tuple[object, ...]:
        return torch.get_rng_state().tolist(), random.getstate(), repr(np.random.get_state())  # noqa: NPY002

    before = states()
    build()
    assert states() == before


def test_the_checks_of_embeddings_and_random_states_can_fail():
    with pytest.raises(AssertionError):
        check_embeddings(np.ones((len(zoo.TEXTS), zoo.HIDDEN)))
    with pytest.raises(AssertionError):
        check_random_state_kept(lambda: torch.rand(1))


@pytest.mark.parametrize("family", families("bert", "t5", "qwen3"))
def test_family_encodes_and_is_deterministic(family):
    zoo._transformer.cache_clear()
    check_random_state_kept(lambda: zoo.encoder(family))
    first = embed(zoo.encoder(family))
    check_embeddings(first)
    np.testing.assert_allclose(np.linalg.norm(first, axis=1), 1, rtol=1e-5)

    zoo._transformer.cache_clear()
    zoo._trained.cache_clear()
    np.testing.assert_array_equal(embed(zoo.encoder(family)), first)
    assert not np.allclose(embed(zoo.encoder(family, seed=1)), first, atol=1e-2)


@pytest.mark.parametrize("name", OTHERS)
def test_other_models_encode_and_are_deterministic(name):
    check_random_state_kept(OTHERS[name])
    first = embed(OTHERS[name]())
    check_embeddings(first)
    np.testing.assert_array_equal(embed(OTHERS[name]()), first)


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_special_tokens_stand_where_the_released_models_have_them(family):
    start, end, ids = ENDS[family]
    tokenizer = zoo.encoder(family).tokenizer
    tokens = tokenizer.convert_ids_to_tokens(tokenizer(zoo.TEXTS[0])["input_ids"])
    assert tokens[-1] == end
    assert tokens[0] == start or (start is None and tokens[0] not in tokenizer.all_special_tokens)
    assert not set(tokens[1:-1]) & set(tokenizer.all_special_tokens)
    assert {token: tokenizer.convert_tokens_to_ids(token) for token in ids} == ids
    assert (tokenizer.mask_token is None) == (family in ("t5", "qwen3"))
    assert tokenizer.pad_token is not None
    assert tokenizer.padding_side == ("left" if family in ("qwen3", "gemma3") else "right")
    assert tokenizer(zoo.TEXTS[0])["input_ids"] == zoo.tokenizer(family)(zoo.TEXTS[0])["input_ids"]


@pytest.mark.parametrize("family", families("bert", "t5", "qwen3"))
def test_padding_does_not_change_an_embedding(family):
    model = zoo.encoder(family)
    alone = np.stack([model.encode(text, convert_to_numpy=True) for text in zoo.TEXTS])
    np.testing.assert_allclose(embed(model), alone, atol=1e-5)


@pytest.mark.parametrize("family", families("bert", "t5", "qwen3"))
def test_encoders_of_one_family_share_no_weights(family):
    first, second = zoo.encoder(family), zoo.encoder(family)
    shared = {p.data_ptr() for p in first.parameters()} & {p.data_ptr() for p in second.parameters()}
    assert not shared
    assert first.tokenizer is not second.tokenizer
    assert not first.training


def test_a_causal_model_cannot_see_ahead_and_a_bidirectional_one_can():
    def first_state(family: str, text: str) -> torch.Tensor:
        return cast(torch.Tensor, zoo.encoder(family).encode(text, output_value="token_embeddings"))[0]

    cases = {"qwen3": True, "gemma3": True, "embeddinggemma": False, "bert": False}
    if not hasattr(transformers.Gemma3TextConfig(), "use_bidirectional_attention"):  # before transformers 4.56
        del cases["embeddinggemma"]
    for family, causal in cases.items():
        a, b = first_state(family, "The coffee is good."), first_state(family, "The coffee is bad.")
        assert torch.allclose(a, b, atol=1e-6) == causal


POOLINGS: list[Any] = ["mean", "cls", "max", "lasttoken", "weightedmean"]
if "pooling_mode" in zoo.modules.Pooling.config_keys:  # sentence-transformers 5.0 names one mode only
    POOLINGS.append(("mean", "cls"))


@pytest.mark.parametrize("pooling", POOLINGS)
def test_encoder_options_are_applied(pooling):
    model = zoo.encoder(
        "bert",
        pooling=pooling,
        normalize=False,
        dense=24,
        layer_norm=True,
        prompts={"query": "query: "},
        include_prompt=False,
        similarity="dot",
        num_hidden_layers=2,
    )
    assert [type(stage).__name__ for stage in model] == ["Transformer", "Pooling", "Dense", "LayerNorm"]
    assert model.similarity_fn_name == "dot"
    assert model.prompts["query"] == "query: "
    check_embeddings(embed(model), 24)


def test_truncated_embeddings_are_the_first_dimensions():
    whole, short = zoo.encoder(normalize=False), zoo.encoder(normalize=False, truncate_dim=8)
    np.testing.assert_array_equal(embed(short), embed(whole)[:, :8])


def test_router_embeds_queries_and_documents_differently():
    model = zoo.router()
    assert np.abs(model.encode_query(zoo.TEXTS[0]) - model.encode_document(zoo.TEXTS[0])).max() > 1e-2


@pytest.mark.parametrize("wrapped", [False, True])
def test_the_adapter_changes_the_embeddings(wrapped):
    assert np.abs(embed(zoo.peft(wrapped=wrapped)) - embed(zoo.encoder())).max() > 1e-2


@pytest.mark.parametrize("name", ["bert", "t5", "qwen3", "static"])
def test_saved_models_load_again(name, tmp_path: Path):
    model = zoo.static() if name == "static" else zoo.encoder(name)
    model.save_pretrained(str(tmp_path), create_model_card=False)
    loaded = SentenceTransformer(str(tmp_path), device="cpu", local_files_only=True)
    np.testing.assert_allclose(embed(loaded), embed(model), atol=1e-6)
