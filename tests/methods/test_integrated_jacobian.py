"""The engine against the papers' algorithm, against finite differences, and against the orders its rules promise."""

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import oracles
import zoo
from families import families
from pairlens import GaussLegendre, Lens, ModelError, Riemann
from pairlens.autodiff.modes import differentiable
from pairlens.model.bundled import offline_model
from pairlens.quadrature.paths import Problems, forward, reverse

A, B = zoo.TEXTS[:2]
EARLY = (0, 1, zoo.LAYERS - 1)

# These compute a norm or a rotation in float32 whatever the model's dtype (measured: 2e-8 to 2e-7).
FLOAT32_INSIDE = ("modernbert", "t5", "qwen3", "gemma3", "embeddinggemma")


def rounding(family: str) -> float:
    return 2e-6 if family in FLOAT32_INSIDE else 1e-9


@cache
def lens(family: str, normalize: bool = False) -> Lens:
    return Lens(zoo.encoder(family, normalize=normalize), dtype="float64")


@cache
def path(family: str, text: str, layer: int) -> oracles.Path:
    return oracles.path(zoo.encoder(family), family, text, layer)


def worst(found: np.ndarray, expected: np.ndarray) -> float:
    """The largest difference, relative to the largest number expected."""
    assert found.shape == expected.shape
    return float(np.abs(found - expected).max() / np.abs(expected).max())


def test_the_comparison_can_fail():
    a, b = path("bert", A, 1), path("bert", B, 1)
    right, wrong = (
        oracles.attributions(a, b, *(oracles.riemann(side, steps) for side in (a, b)), terms="shift", measure="dot")
        for steps in (7, 8)
    )
    assert worst(wrong, right) > 1e-3
    assert oracles.LAYERS.keys() >= set(zoo.FAMILIES)


@pytest.mark.parametrize("layer", [*EARLY, zoo.LAYERS])
@pytest.mark.parametrize("family", families("bert", "mpnet", "t5", "qwen3"))
def test_riemann_is_the_papers_algorithm(family, layer):
    a, b = path(family, A, layer), path(family, B, layer)
    steps = 7 if layer % 2 else 10
    jacobians = [oracles.riemann(side, steps) for side in (a, b)]
    # The papers know no Normalize: it makes no difference to a cosine, and a dot product wants a model without.
    for terms, measure in [("ignore", "cosine"), ("ignore", "dot"), ("shift", "cosine"), ("shift", "dot")]:
        expected = oracles.attributions(a, b, *jacobians, terms=terms, measure=measure)
        for normalize in {measure == "cosine", False}:
            found = lens(family, normalize).explain(
                A, B, layer=layer, rule=Riemann(steps), reference_terms=terms, measure=measure, level="token"
            )
            assert worst(found.matrix, expected) < rounding(family)
            assert found.settings["nodes"] == [steps, steps]


@pytest.mark.slow
def test_the_papers_algorithm_on_a_real_model():
    model = SentenceTransformer(str(offline_model()), device="cpu")
    a, b = (oracles.path(model, "bert", text, 5) for text in (A, B))
    jacobians = [oracles.riemann(side, 3) for side in (a, b)]
    double = Lens(model, dtype="float64")
    for terms in ("ignore", "shift"):
        expected = oracles.attributions(a, b, *jacobians, terms=terms, measure="cosine")
        found = double.explain(A, B, layer=5, rule=Riemann(3), reference_terms=terms)
        assert worst(found.matrix, expected) < 1e-9


@pytest.mark.parametrize("family", ["roberta", "mpnet"])
def test_the_papers_reference_input(family):
    # Theirs is written out as ids: <s> is 0, <pad> is 1, </s> is 2.
    model: Any = zoo.encoder(family).double()
    ids = model.tokenizer([A], return_tensors="pt")["input_ids"]
    written = torch.tensor([[0] + [1] * (ids.shape[1] - 2) + [2]])
    with torch.no_grad():
        expected = model[0].auto_model(input_ids=written, attention_mask=torch.ones_like(written))[0][0]
    (found,) = lens(family).decompose([A], layer=0, reference_terms="shift", rule=Riemann(1), progress=False)
    assert worst(found.reference, expected.mean(0).numpy()) < 1e-12
    assert worst(path(family, A, zoo.LAYERS).r.numpy(), expected.numpy()) < 1e-12


UNMASKED = ("t5", "qwen3")  # their tokenizers have no mask token


@pytest.mark.parametrize("reference", ["zero", "mask"])
@pytest.mark.parametrize("family", families("bert", "deberta-v2", "t5"))
def test_other_references(family, reference):
    if reference == "mask" and family in UNMASKED:
        with pytest.raises(ModelError, match="mask"):
            lens(family).explain(A, B, layer=1, reference=reference)
        return
    model = zoo.encoder(family)
    paths = [
        oracles.path(model, family, text, 1, "mask_token" if reference == "mask" else "pad_token") for text in (A, B)
    ]
    if reference == "zero":
        special = [
            torch.tensor([unit.kind == "special" for unit in lens(family).encoder.read(t).units]) for t in (A, B)
        ]
        paths = [replace(p, r=torch.where(s[:, None], p.r, 0)) for p, s in zip(paths, special, strict=True)]
    a, b = paths
    jacobians = [oracles.riemann(side, 5) for side in (a, b)]
    expected = oracles.attributions(a, b, *jacobians, terms="shift", measure="cosine")
    found = lens(family).explain(
        A, B, layer=1, rule=Riemann(5), reference_terms="shift", reference=reference, level="token"
    )
    assert worst(found.matrix, expected) < rounding(family)


@pytest.mark.parametrize("family", ["bert", "mpnet", "qwen3"])
def test_features_are_the_papers_too(family):
    a, b = (path(family, text, 1) for text in (A, B))
    full = oracles.features(a, b, *(oracles.riemann(side, 4) for side in (a, b)), terms="ignore", measure="cosine")
    found = lens(family).explain_features(A, B, 2, 3, layer=1, rule=Riemann(4), reference_terms="ignore", level="token")
    assert found.shape == (zoo.HIDDEN, zoo.HIDDEN)
    assert worst(found, full[2, :, 3]) < rounding(family)


@pytest.mark.parametrize("layer", EARLY)
@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_forward_is_reverse_is_finite_differences(family, layer):
    encoder: Any = lens(family).encoder
    heads = encoder.states([encoder.read(A)], layer, "padding", "raw")
    tokens = heads.x.shape[1]
    labels = torch.arange(tokens)[None, :, None]
    problems = Problems(encoder.tail(heads), heads.x, heads.r, labels, (tokens,), cost=2**20)
    alpha = 0.3
    with differentiable():
        forwards, backwards = (
            push(problems, torch.zeros(1, dtype=torch.long), np.array([alpha]), tokens)[0].numpy()
            for push in (forward, reverse)
        )
    assert worst(forwards, backwards) < rounding(family)
    # A difference divides rounding errors by its step; a longer one would cross T5's kinks.
    step, tolerance = (1e-3, 5e-4) if family in FLOAT32_INSIDE else (1e-5, 1e-7)
    step, tolerance = (1e-4, 3e-3) if family == "t5" else (step, tolerance)
    assert worst(oracles.differences(path(family, A, layer), alpha, step), backwards) < tolerance


@pytest.mark.parametrize("family", families("bert", "deberta-v2", "qwen3", without="t5"))  # T5's ReLU has kinks
def test_adaptive_finds_the_truth_and_bounds_its_own_error(family):
    for layer in (0, 2):
        a, b = (oracles.truth(path(family, text, layer)) for text in (A, B))
        for tol in (1e-3, 1e-5):
            found = lens(family).explain(
                A, B, layer=layer, tol=tol, reference_terms="shift", measure="dot", level="token"
            )
            error = np.abs(found.matrix - a @ b.T)
            assert (error <= found.entry_error + 1e-12).all()
            assert error.max() < 10 * tol * np.abs(a @ b.T).max()


def errors(rule: type[Riemann] | type[GaussLegendre], sizes: list[int], family: str = "bert") -> np.ndarray:
    """How far a rule's contributions are from the truth, in all entries, for each number of nodes."""
    expected = oracles.truth(path(family, A, 1))
    rows = [
        next(lens(family).decompose([A], layer=1, rule=rule(n), reference_terms="shift", progress=False)).values
        for n in sizes
    ]
    return np.array([np.linalg.norm(row - expected) / np.linalg.norm(expected) for row in rows])


@pytest.mark.parametrize("family", ["bert", "mpnet", "deberta-v2"])
def test_riemann_is_of_first_order(family):
    sizes = [16, 32, 64, 128, 256]
    slope = np.polyfit(np.log(sizes), np.log(errors(Riemann, sizes, family)), 1)[0]
    assert slope == pytest.approx(-1, abs=0.05)


@pytest.mark.parametrize("family", ["bert", "mpnet", "deberta-v2"])
def test_gauss_legendre_converges_geometrically(family):
    sizes = [4, 8, 12, 16]
    found = np.log(errors(GaussLegendre, sizes, family))
    # A straight line against n, where a rule of fixed order, straight against log n, would bend.
    slope, start = np.polyfit(sizes, found, 1)
    assert slope < -0.3
    np.testing.assert_allclose(found, start + slope * np.array(sizes), atol=1)
    assert errors(GaussLegendre, [64], family)[0] < 1e-9


def test_the_gap_is_what_is_missing_of_the_total():
    for rule in (Riemann(9), GaussLegendre(3)):
        (found,) = lens("bert").decompose([A], layer=1, rule=rule, reference_terms="shift", progress=False)
        reference, embedding = path("bert", A, 1).ends
        target = embedding - reference
        missing = np.linalg.norm(found.values.sum(0) - target) / np.linalg.norm(target)
        assert found.gap == pytest.approx(missing, rel=1e-9)
        assert 1e-6 < found.gap < 0.5
