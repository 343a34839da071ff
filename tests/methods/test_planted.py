"""An encoder built by hand, where the truth is known: each method's matrix has a closed form.

Every word is a row of a Hadamard matrix, tokens do not look at each other, and pooling takes the mean. "coffee" and
"tea" are one vector, "open" and "closed" opposite ones, and all other words have nothing to do with each other.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch

import zoo
from pairlens import Lens
from pairlens.methods.banzhaf import KEEP

A, B = "the coffee shop open", "this tea closed"
SYNONYMS, OPPOSITES = ("coffee", "tea"), ("open", "closed")
METHODS = ("integrated-jacobian", "output", "fade", "banzhaf", "shapley", "occlusion")


def hadamard(size: int) -> np.ndarray:
    matrix = np.ones((1, 1))
    while len(matrix) < size:
        matrix = np.block([[matrix, matrix], [matrix, -matrix]])
    return matrix


@pytest.fixture(scope="module")
def planted():
    """The model, and what each word's vector is."""
    model = zoo.encoder("bert", normalize=False, similarity="dot")
    bert: Any = model[0].auto_model
    tokenizer: Any = model.tokenizer
    # All rows but the first have mean zero and variance one, so a LayerNorm leaves them as they are.
    rows = iter(hadamard(zoo.HIDDEN)[1:])
    words = dict.fromkeys(["[PAD]", "[CLS]", "[SEP]", *A.split(), *B.split()])
    vectors = {word: next(rows) for word in words if word not in ("tea", "closed")}
    vectors["tea"], vectors["closed"] = vectors["coffee"], -vectors["open"]
    with torch.no_grad():
        for name, parameter in bert.named_parameters():
            norm = "LayerNorm" in name
            parameter.fill_(1.0 if norm and name.endswith("weight") else 0.0)
        for word, vector in vectors.items():
            number = tokenizer.convert_tokens_to_ids(word)
            assert number != tokenizer.unk_token_id
            bert.embeddings.word_embeddings.weight[number] = torch.as_tensor(vector)
    return Lens(model, dtype="float64"), vectors


def closed_form(method: str, text: str, vectors: dict[str, np.ndarray]) -> np.ndarray:
    """What each word of the text contributes, (words, dim), straight from the definitions."""
    v = np.array([vectors[word] for word in text.split()])
    special, n, k = vectors["[CLS]"] + vectors["[SEP]"], len(v), 2
    if method in ("integrated-jacobian", "output"):
        return (v - vectors["[PAD]"]) / (k + n)
    if method == "occlusion":
        return (special + v.sum(0)) / (k + n) - (special + v.sum(0) - v) / (k + n - 1)
    if method == "banzhaf":
        return least_squares(special, v, k)
    if method == "fade":
        x, w = np.polynomial.legendre.leggauss(60)
        t = ((x + 1) / 2)[:, None, None]
        embedding = (special + t * v.sum(0)) / (k + n * t)
        return np.einsum("t,tsd->sd", w / 2, (v - embedding) / (k + n * t))
    others = (v.sum(0) - v) / (n - 1)  # the average of the other words, of which a random coalition has `size`
    gains = [
        (special + v + size * others) / (k + size + 1) - (special + size * others) / (k + size) for size in range(n)
    ]
    return np.mean(gains, axis=0)


def least_squares(special: np.ndarray, v: np.ndarray, k: int) -> np.ndarray:
    """The linear model of random deletions, through the whole text: a weighted sum over all of them."""
    n = len(v)
    moments, products = np.zeros_like(v), np.zeros((n, n))
    for kept in np.ndindex(*(2,) * n):
        gone = 1.0 - np.array(kept)
        chance = KEEP ** sum(kept) * (1 - KEEP) ** (n - sum(kept))
        loss = (special + v.sum(0)) / (k + n) - (special + np.array(kept) @ v) / (k + sum(kept))
        moments += chance * np.outer(gone, loss)
        products += chance * np.outer(gone, gone)
    return np.linalg.solve(products, moments)


@pytest.mark.parametrize("method", METHODS)
def test_every_matrix_is_its_closed_form(planted, method):
    lens, vectors = planted
    options = {"tol": 1e-9} if method not in ("banzhaf", "shapley", "occlusion") else {}
    e = lens.explain(A, B, method=method, reference_terms="shift", **options)
    assert [unit.text for unit in e.units_a] == ["[CLS]", *A.split(), "[SEP]"]
    expected = closed_form(method, A, vectors) @ closed_form(method, B, vectors).T
    np.testing.assert_allclose(e.matrix[1:-1, 1:-1], expected, atol=1e-7)
    assert not e.matrix[[0, -1]].any()
    assert not e.matrix[:, [0, -1]].any()


@pytest.mark.parametrize("method", METHODS)
def test_every_method_finds_the_planted_pairs(planted, method):
    lens, _ = planted
    e = lens.explain(A, B, method=method)
    pairs = {(pair.a.text, pair.b.text): pair.value for pair in e.top(100)}
    assert max(pairs, key=lambda words: pairs[words]) == SYNONYMS
    assert min(pairs, key=lambda words: pairs[words]) == OPPOSITES


def test_all_methods_explain_the_same_score(planted):
    lens, _ = planted
    exact = {method: {} if method in ("banzhaf", "shapley", "occlusion") else {"tol": 1e-9} for method in METHODS}
    found = [lens.explain(A, B, method=method, **exact[method]) for method in METHODS]
    for e in found:
        assert e.score == pytest.approx(found[0].score, abs=1e-12)
        assert e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum() + e.gap == pytest.approx(e.score, 1e-12)
        assert max(e.gap_a, e.gap_b) < 1e-9
