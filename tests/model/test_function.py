"""Functions from texts to vectors: explanations from deletions, what is asked of the function, and errors."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from pairlens import Banzhaf, InputError, Lens, ModelError, NumericalError, Occlusion, Shapley

VECTORS = {"red": [1, 0, 0], "fast": [0, 1, 0], "car": [0, 0, 1], "auto": [0, 0, 1], "slow": [0, -1, 0]}


def bag(texts: list[str]) -> np.ndarray:
    """Return sums of word vectors."""
    return np.array([np.sum([[0, 0, 0], *(VECTORS[word] for word in text.split())], axis=0) for text in texts])


def test_a_sum_of_words_is_explained_exactly():
    lens = Lens.from_function(bag, name="bag", measure="dot")
    for method in ("banzhaf", "shapley", "occlusion"):
        e = lens.explain("red fast car", "slow auto", method=method)
        np.testing.assert_allclose(e.matrix, [[0, 0], [-1, 0], [0, 1]], atol=1e-12)
        assert e.gap == pytest.approx(0, abs=1e-12)
        assert e.score == 0


def test_an_interaction_of_two_words_is_shared_by_both():
    def planted(texts: list[str]) -> list[list[float]]:
        return [[1.0 + ("not" in text.split() and "good" in text.split()), 1.0] for text in texts]

    lens = Lens.from_function(planted, measure="dot")
    text = next(lens.decompose(["not so good"], method="shapley", progress=False))
    np.testing.assert_allclose(text.values, [[0.5, 0], [0, 0], [0.5, 0]], atol=1e-12)
    e = lens.explain("not so good", "not so good", method="shapley")
    np.testing.assert_allclose(e.matrix, np.outer([0.5, 0, 0.5], [0.5, 0, 0.5]), atol=1e-12)
    np.testing.assert_allclose(e.effects_a, [0.5, 0, 0.5], atol=1e-12)
    assert e.base == pytest.approx(2.0)
    # Leave-one-out counts the interaction twice.
    twice = next(lens.decompose(["not so good"], method=Occlusion(), progress=False))
    np.testing.assert_allclose(twice.values[:, 0], [1, 0, 1], atol=1e-12)
    np.testing.assert_allclose(twice.reference[0], 0, atol=1e-12)
    # As a compound the interaction has a row of its own.
    e = lens.explain("not so good", "not so good", method=Banzhaf(compounds=1))
    assert [unit.text for unit in e.units_a] == ["not", "so", "good", "not … good"]
    np.testing.assert_allclose(e.matrix, np.outer([0, 0, 0, 1], [0, 0, 0, 1]), atol=1e-9)
    assert e.without([0], [2]) == pytest.approx(2.0)


def test_a_real_model_as_a_function_gives_the_same_matrix(minilm):
    model = minilm.encoder.sentence_transformer
    lens = Lens.from_function(lambda texts: model.encode(texts, convert_to_tensor=True), name="MiniLM")
    a, b = "The cat is asleep on the old sofa in the garden.", "A dog sleeps."
    inside, outside = minilm.explain(a, b, level="word"), lens.explain(a, b)
    assert [u.text for u in outside.units_a] == [u.text for u in inside.units_a if u.kind == "text"]
    np.testing.assert_allclose(outside.matrix, inside.matrix[1:-1, 1:-1], atol=1e-5)
    np.testing.assert_allclose(outside.entry_error, inside.entry_error[1:-1, 1:-1], atol=1e-5)
    sentences = lens.explain("A cat sleeps. It is old.", b, level="sentence")
    assert sentences.matrix.shape == (2, 1)


def test_each_text_is_embedded_once_in_batches_of_at_most_256():
    asked: list[list[str]] = []

    def embed(texts: list[str]) -> np.ndarray:
        asked.append(list(texts))
        return bag(texts) + 1.0

    text = "red fast car " * 3 + "slow auto"
    Lens.from_function(embed).explain(text, "red", method=Shapley(passes=600))
    everything = [one for batch in asked for one in batch]
    assert len(everything) == len(set(everything))
    assert max(map(len, asked)) <= 256


def test_words_are_deleted_with_the_whitespace_before_them():
    seen: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        seen.extend(texts)
        return [[float(len(text)), 1.0] for text in texts]

    Lens.from_function(embed, empty="<nothing>").explain('He said: "Go  home!"', "No.")
    assert "<nothing>" in seen
    assert {'said: "Go  home!"', 'He: "Go  home!"', 'He said "Go  home!"', 'He said: "Go!"'} <= set(seen)


def test_deletions_never_join_two_words():
    asked: list[str] = []

    def embed(texts: list[str]) -> list[list[float]]:
        asked.extend(texts)
        return [[float(len(text)), 1.0] for text in texts]

    for method in ("shapley", "occlusion"):
        Lens.from_function(embed).explain('He paid ($5) for "it" all.', "東京", method=method)
    words = {word.strip('($)".') for text in asked for word in text.split()}
    assert words <= {"", "He", "paid", "5", "for", "it", "all", "東京", "東", "京"}
    assert {'He paid $5) for "it" all.', 'He paid ($5) for it" all.', 'He paid ($5) for "it".'} <= set(asked)


@pytest.mark.parametrize(
    "embed",
    [
        lambda texts: torch.ones(len(texts), 2, dtype=torch.bfloat16),
        lambda texts: [torch.ones(2, requires_grad=True) for _ in texts],
        lambda texts: tuple(np.ones(2, dtype=np.float16) for _ in texts),
    ],
)
def test_tensors_lists_and_arrays_are_accepted(embed):
    e = Lens.from_function(embed).explain("red car", "auto", method="occlusion")
    assert e.score == pytest.approx(1.0)


def test_an_error_for_the_empty_text_gets_a_hint():
    def embed(texts: list[str]) -> list[list[float]]:
        if "" in texts:
            raise ValueError("empty input")
        return [[1.0, 2.0] for _ in texts]

    with pytest.raises(ValueError, match="empty input") as caught:
        Lens.from_function(embed).explain("red car", "auto")
    assert "empty=" in caught.value.__notes__[0]


def test_spans_and_the_rest_are_explained():
    e = Lens.from_function(bag, measure="dot").explain("red fast car", "red car", level=([(0, 3)], "word"))
    assert [unit.kind for unit in e.units_a] == ["text", "rest"]
    np.testing.assert_allclose(e.matrix, [[1, 0], [0, 1]], atol=1e-12)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"level": "token"}, InputError, "black box"),
        ({"level": ("token", "word")}, InputError, "black box"),
        ({"level": ["token", "word"]}, InputError, "black box"),
        ({"method": "fade"}, ModelError, "'shapley' or 'occlusion'"),
        ({"layer": 2}, ModelError, "'shapley' or 'occlusion'"),
        ({"roles": ("query", None)}, InputError, "roles"),
    ],
)
def test_levels_methods_and_roles_that_need_a_model_raise(options, error, message):
    with pytest.raises(error, match=message):
        Lens.from_function(bag).explain("red car", "auto", **options)


@pytest.mark.parametrize(
    ("embed", "error", "message"),
    [
        (lambda texts: [1.0] * len(texts), ModelError, "one vector a text"),
        (lambda texts: [[1.0, 2.0]], ModelError, "shape"),
        (lambda texts: [[] for _ in texts], ModelError, "one vector a text"),
        (lambda texts: [[1j, 1.0] for _ in texts], ModelError, "complex"),
        (lambda texts: "no", ModelError, "no array of numbers"),
        (lambda texts: [[np.nan if not text else 1.0] for text in texts], NumericalError, "empty='.'"),
    ],
)
def test_returned_values_that_are_no_vectors_raise(embed, error, message):
    with pytest.raises(error, match=message):
        Lens.from_function(embed).explain("red car", "auto")


def test_arguments_of_from_function_are_checked():
    with pytest.raises(InputError, match="function"):
        Lens.from_function("all-MiniLM-L6-v2")  # pyright: ignore[reportArgumentType]
    with pytest.raises(InputError, match="measure"):
        Lens.from_function(bag, measure="euclidean")
    assert repr(Lens.from_function(bag, name="bag")) == "Lens.from_function('bag', measure='cosine')"
    assert Lens.from_function(bag).layers == 0
