"""The adjusting module against the papers' definition, in every batch, precision and copy."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from sentence_transformers import SentenceTransformer
from torch import Tensor

import zoo
from adjusting import A, B, encode, pieces, reference_of, run, shifted, tiny
from imports import OPTIONAL, WITHOUT
from pairlens import Lens
from pairlens.adjusted.wrapping import wrap
from pairlens.model.loading import load

PROMPTS = {"query": "is the tea "}
# sentence-transformers itself asks for this from 6.0 on, and knows it before.
LOAD = "SentenceTransformer({folder!r}, device='cpu', trust_remote_code=True)"
ENCODE = (
    WITHOUT
    + """
import numpy as np
from sentence_transformers import SentenceTransformer
from pairlens import Lens
texts = {texts!r}
np.save({out!r}, {load}.encode(texts))
lens = Lens({folder!r}, device="cpu")
assert lens.adjusted
np.save({explained!r}, lens.explain(*texts[:2]).matrix)
"""
)


# The definition.


@pytest.mark.parametrize("family", ["bert", "roberta", "mpnet"])
def test_shifting_states_before_pooling_equals_shifting_the_embedding(family):
    plain, model = tiny(family, normalize=False)
    tokenizer = plain[0].tokenizer
    found = encode(model, list(zoo.TEXTS))
    for text, own in zip(zoo.TEXTS, found, strict=True):
        ids = pieces(plain, text)
        special = tokenizer.get_special_tokens_mask(ids[0].tolist(), already_has_special_tokens=True)
        assert (special[0], special[-1]) == (1, 1)
        with torch.no_grad():
            states = [
                plain[0].auto_model(input_ids=given, attention_mask=torch.ones_like(given)).last_hidden_state[0]
                for given in (ids, reference_of(plain, ids))
            ]
        # As the first paper has it: the reference is taken from the states, then the mean is.
        assert torch.allclose((states[0] - states[1]).mean(0), own, atol=1e-12)
        assert torch.allclose(shifted(plain, text), own, atol=1e-12)


@pytest.mark.parametrize(
    ("family", "options", "ends"),
    [
        ("bert", {"pooling": "cls"}, (1, 1)),
        ("bert", {"pooling": "max"}, (1, 1)),
        ("bert", {"pooling": "weightedmean"}, (1, 1)),
        ("roberta", {"dense": 12, "layer_norm": True}, (1, 1)),
        ("t5", {}, (0, 1)),
        ("qwen3", {}, (0, 1)),  # padded on the left, and pooled from the last token
        ("gemma3", {}, (1, 1)),
        ("modernbert", {}, (1, 1)),
    ],
)
def test_every_pooling_and_family_is_shifted(family, options, ends):
    plain, model = tiny(family, normalize=False, **options)
    found = encode(model, list(zoo.TEXTS))
    expected = torch.stack([shifted(plain, text, *ends) for text in zoo.TEXTS])
    # Rotary positions are of float32, whatever the weights are.
    assert torch.allclose(found, expected, atol=1e-5 if family in ("qwen3", "gemma3") else 1e-10)
    assert model[0].get_embedding_dimension() == found.shape[1]


def test_a_final_normalize_comes_after_the_shift():
    plain, model = tiny(normalize=True)
    bare = SentenceTransformer(modules=list(plain)[:-1], device="cpu")
    assert [type(module).__name__ for module in model] == ["Adjusted", "Normalize"]
    assert torch.allclose(encode(model, A), F.normalize(shifted(bare, A), dim=-1), atol=1e-12)
    assert float(encode(model, "[PAD] [PAD]").abs().max()) == 0.0  # its own reference


# Prompts and truncation.


@pytest.mark.parametrize("include_prompt", [True, False])
def test_the_reference_keeps_the_prompt(include_prompt):
    plain, model = tiny(normalize=False, prompts=PROMPTS, include_prompt=include_prompt)
    ids = pieces(plain, PROMPTS["query"] + A)
    lead = pieces(plain, PROMPTS["query"]).shape[1] - 1  # without the token at its end
    more = {} if include_prompt else {"prompt_length": lead}
    expected = run(plain, ids, **more) - run(plain, reference_of(plain, ids, before=lead), **more)
    assert torch.allclose(encode(model, A, prompt_name="query"), expected, atol=1e-12)
    both = encode(model, [A, B, A], prompt_name="query")
    assert torch.allclose(both[0], expected, atol=1e-12)
    assert not torch.allclose(encode(model, A), expected, atol=1e-3)


def test_a_default_prompt_is_explained_as_it_is_encoded():
    _, model = tiny(prompts=PROMPTS, default_prompt_name="query")
    e = Lens(model, dtype="float64").explain(A, B, layer=1, tol=1e-6)
    score = float(encode(model, A) @ encode(model, B))
    assert e.score == pytest.approx(score, abs=1e-10)
    assert e.matrix.sum() == pytest.approx(score, abs=1e-5)


def test_truncated_embeddings_are_explained():
    _, model = tiny(normalize=False)
    assert torch.equal(encode(model, [A, B], truncate_dim=8), encode(model, [A, B])[:, :8])
    model.truncate_dim = 8
    e = Lens(model, dtype="float64").explain(A, B, layer=2, tol=1e-6)
    one, other = encode(model, [A, B])
    assert e.score == pytest.approx(float(F.cosine_similarity(one, other, dim=0)), abs=1e-10)
    assert e.matrix.sum() == pytest.approx(e.score, abs=1e-5)


# Batches, precision, copies.


def test_embeddings_depend_neither_on_the_batch_nor_on_the_cache():
    _, model = tiny(double=False)
    alone = torch.stack([encode(model, text) for text in zoo.TEXTS])
    assert torch.allclose(encode(model, list(zoo.TEXTS)), alone, atol=1e-6)
    fresh = copy.deepcopy(model)
    encode(fresh, ["one two three four five", B])
    assert torch.equal(encode(fresh, list(zoo.TEXTS)), encode(model, list(zoo.TEXTS)))


@pytest.mark.parametrize("dtype", [torch.bfloat16, torch.float16])
def test_half_precision_is_close_to_float32(dtype):
    _, model = tiny(double=False)
    exact = encode(model, list(zoo.TEXTS))
    encode(model.to(dtype), A)
    found = encode(model, list(zoo.TEXTS))
    assert found.dtype == dtype
    assert float((found.float() - exact).abs().max()) < (0.1 if dtype == torch.bfloat16 else 0.02)
    assert float((found.float() - exact).abs().max()) > 0


def test_a_reference_is_computed_once_for_each_length():
    _, model = tiny()
    rows: list[int] = []
    model[0].body[0].register_forward_hook(lambda module, inputs, output: rows.append(len(output["input_ids"])))
    same = ["The tea is hot.", "The tea is cold."]
    assert len({pieces(model, text).shape for text in same}) == 1
    encode(model, same)
    assert rows == [1, 2]  # one reference for both texts
    encode(model, [*same, "tea", "The tea."])
    assert rows == [1, 2, 1, 1, 4]  # two new lengths
    encode(model, ["tea " * 100, *same, "tea"])
    assert rows == [1, 2, 1, 1, 4, 1, 4]  # one new length: as many tokens as the model takes


@pytest.mark.parametrize("duplicate", [copy.deepcopy, lambda model: pickle.loads(pickle.dumps(model))])
def test_copies_start_with_an_empty_cache(duplicate):
    _, model = tiny()
    found = encode(model, [A, B])
    assert len(model[0].references) > 0
    other = duplicate(model)
    assert len(other[0].references) == 0
    assert torch.equal(encode(other, [A, B]), found)


def step(model: Any) -> None:
    for parameter in model.parameters():
        parameter.grad = parameter.detach().clone()
    torch.optim.SGD(model.parameters(), lr=0.1).step()


def load_others(model: Any) -> None:
    model.load_state_dict(wrap(zoo.encoder(seed=5)).state_dict())


def scale_through_data(model: Any) -> None:
    for parameter in model.parameters():
        parameter.data.mul_(1.1)


def replace_a_weight(model: Any) -> None:
    norm = model[0].body[0].auto_model.embeddings.LayerNorm
    norm.weight = torch.nn.Parameter(norm.weight.detach() + 0.5)


@pytest.mark.parametrize("change", [step, load_others, scale_through_data, replace_a_weight])
def test_cached_references_are_dropped_when_weights_change(change):
    _, model = tiny(double=False)
    before = encode(model, [A, B])
    change(model)
    found = encode(model, [A, B])
    assert not torch.allclose(found, before, atol=1e-4)
    assert torch.equal(found, encode(copy.deepcopy(model), [A, B]))


def test_gradients_go_through_the_reference_too():
    plain, model = tiny(normalize=False)

    def gradients(owner: Any, loss: Tensor) -> list[Tensor]:
        weights = [own for name, own in owner.named_parameters() if "pooler" not in name]
        found: Any = torch.autograd.grad(loss, weights, allow_unused=True)
        return [own for own in found if own is not None]

    features = model.preprocess([A, B, A]) if hasattr(model, "preprocess") else model.tokenize([A, B, A])
    weight = torch.arange(3.0, dtype=torch.float64)[:, None]
    found = gradients(model, (model(features)["sentence_embedding"] * weight).sum())
    loss = torch.zeros(())
    for text, own in zip([A, B, A], weight, strict=True):
        ids = pieces(plain, text)
        features = {"attention_mask": torch.ones_like(ids), "token_type_ids": torch.zeros_like(ids)}
        x, r = (
            plain({"input_ids": given, **features})["sentence_embedding"] for given in (ids, reference_of(plain, ids))
        )
        loss = loss + (own * (x - r)).sum()
    expected = gradients(plain, loss)
    assert len(found) == len(expected)
    for one, other in zip(found, expected, strict=True):
        assert torch.allclose(one, other, atol=1e-10)


# Files.


@pytest.mark.slow
def test_a_fresh_process_gives_the_same_bits(tmp_path: Path):
    _, model = tiny("mpnet", double=False, prompts=PROMPTS)
    folder, texts = str(tmp_path / "model"), [A, B, *zoo.TEXTS]
    model.save(folder)
    names = {"out": str(tmp_path / "own.npy"), "explained": str(tmp_path / "matrix.npy")}
    given = {"texts": texts, "folder": folder, "load": LOAD.format(folder=folder), **names}
    code = ENCODE.format(optional=[*OPTIONAL, "accelerate"], **given)
    # The order of a sum depends on the number of threads, and tests have one.
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    done = subprocess.run([sys.executable, "-c", code], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert np.array_equal(np.load(names["out"]), model.encode(texts))
    assert np.array_equal(np.load(names["explained"]), Lens(model).explain(A, B).matrix)


def test_a_saved_model_loads_with_the_same_embeddings(tmp_path: Path):
    _, model = tiny("mpnet", double=False, prompts=PROMPTS)
    texts = [A, B, *zoo.TEXTS]
    model.save(str(tmp_path))
    loaded, _, adjusted = load(str(tmp_path), "cpu")
    assert adjusted
    assert loaded.prompts["query"] == PROMPTS["query"]
    assert np.array_equal(loaded.encode(texts), model.encode(texts))
    by_name = SentenceTransformer(str(tmp_path), device="cpu", trust_remote_code=True)
    assert np.array_equal(by_name.encode(texts), model.encode(texts))
    assert np.array_equal(Lens(str(tmp_path)).explain(A, B, layer=2).matrix, Lens(model).explain(A, B, layer=2).matrix)
