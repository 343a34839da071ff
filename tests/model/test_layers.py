"""Entering any layer of any family: the score is the model's own, and the parts add up to it."""

from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer

import oracles
import zoo
from families import FLOAT32_INSIDE, A, B, check, families, lens_of, model_of, score_of, total
from pairlens import Explanation, GaussLegendre, Lens, ModelError
from pairlens.model import layers

L = zoo.LAYERS
SLOW = pytest.mark.slow


# The base of these random models is often large.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


def test_the_check_of_explanations_can_fail():
    model = zoo.encoder(similarity="dot", normalize=False)
    check(model)
    with pytest.raises(AssertionError):
        check(model, measure="cosine")


@pytest.mark.parametrize("layer", [1, *(pytest.param(n, marks=SLOW) for n in range(L + 1) if n != 1)])
@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_parts_add_up_to_the_score_in_every_treatment(family, layer):
    lens, score = lens_of(family), score_of(model_of(family))
    shifted = [np.subtract(*path.ends) for path in (oracles.path(model_of(family), family, t, L) for t in (A, B))]
    shifted_score = shifted[0] @ shifted[1] / np.linalg.norm(shifted[0]) / np.linalg.norm(shifted[1])
    for pair in (("project", "keep"), ("shift", "ignore")):  # two treatments of the same contributions
        a, b = lens.decompose([A, B], layer=layer, reference_terms=pair[0], tol=tolerance(family), progress=False)
        for terms in pair:
            e = lens.compare(a, b, reference_terms=terms)
            assert e.score == pytest.approx(shifted_score if terms == "shift" else score, abs=2e-6)
            assert total(e) == pytest.approx(e.score, rel=1e-12)
            assert max(e.gap_a, e.gap_b) <= tolerance(family)
            assert abs(e.gap) <= bound(e, a, b)
            assert (e.effects_a.any() or e.effects_b.any()) == (terms == "keep")
            assert (e.base == 0) == (terms == "shift")


def tolerance(family: str) -> float:
    """Return the tolerance to ask for: larger for T5, whose kinks take hundreds of nodes."""
    return 1e-2 if family == "t5" else 1e-3


def bound(e: Explanation, a: Any, b: Any) -> float:
    """Return the gap that the gaps of both texts allow: each total is off by at most gap ‖d‖, times the other's ‖v‖."""
    terms = e.settings["reference_terms"]
    scales = [1 / np.linalg.norm(c.embedding - c.reference if terms == "shift" else c.embedding) for c in (a, b)]
    d_a, d_b = (s * np.linalg.norm(c.embedding - c.reference) for s, c in zip(scales, (a, b), strict=True))
    v_a, v_b = (d_a, d_b) if terms in ("shift", "ignore") else (1, 1)
    return a.gap * d_a * v_b + b.gap * d_b * v_a + a.gap * b.gap * d_a * d_b + 1e-12


@pytest.mark.parametrize("family", families("bert", without="t5"))
def test_gap_is_below_1e_5_at_every_layer_of_a_smooth_model(family):
    for layer in range(L + 1):
        e = lens_of(family).explain(A, B, layer=layer, tol=1e-5)
        assert max(e.gap_a, e.gap_b) <= 1e-5
        assert max(e.settings["nodes"]) <= 150  # measured: 96 to 135 for ModernBERT at layer 0, at most 60 elsewhere


def test_panels_resolve_the_kinks_of_t5():
    for layer, tol in ((0, 1e-3), (2, 1e-4)):
        e = lens_of("t5").explain(A, B, layer=layer, tol=tol)
        assert max(e.gap_a, e.gap_b) <= tol


@pytest.mark.parametrize("family", families("bert", "albert"))
def test_negative_layers_count_from_the_end(family):
    lens = lens_of(family)
    assert lens.layers == L
    found = {n: lens.explain(A, B, layer=n, rule=GaussLegendre(1)) for n in (0, 2, L, -1, -2, -L - 1)}
    for layer, negative in ((0, -L - 1), (2, -2), (L, -1)):
        assert found[layer].settings["layer"] == found[negative].settings["layer"] == layer
        np.testing.assert_array_equal(found[layer].matrix, found[negative].matrix)
    output = lens.explain(A, B, method="output", rule=GaussLegendre(1))
    np.testing.assert_array_equal(output.matrix, found[L].matrix)


@pytest.mark.parametrize("family", families("bert", "modernbert"))
def test_float32_agrees_with_float64(family):
    single, double = (
        Lens(model_of(family), dtype=dtype).explain(A, B, layer=1, rule=GaussLegendre(8))
        for dtype in ("float32", "float64")
    )
    assert single.score == pytest.approx(double.score, abs=2e-6)
    np.testing.assert_allclose(single.matrix, double.matrix, atol=2e-5 * np.abs(double.matrix).max())


@pytest.mark.parametrize("family", families("bert", "qwen3"))
def test_swapping_the_texts_transposes_the_matrix(family):
    rule = GaussLegendre(4)
    for terms in ("project", "keep"):
        e, swapped = (lens_of(family).explain(*p, rule=rule, reference_terms=terms) for p in ((A, B), (B, A)))
        np.testing.assert_allclose(swapped.matrix, e.matrix.T, atol=1e-6 if family in FLOAT32_INSIDE else 1e-12)
        np.testing.assert_array_equal(swapped.effects_a, e.effects_b)
        np.testing.assert_array_equal(e.swap().matrix, e.matrix.T)
        assert swapped.score == pytest.approx(e.score, abs=1e-12)


@pytest.mark.parametrize("family", families("bert", "qwen3"))
def test_explain_many_equals_explaining_each_pair(family):
    # Texts of several lengths, some the same: batches, left padding and repeated texts must change nothing.
    pairs = [(a, b) for a in zoo.TEXTS[:2] for b in zoo.TEXTS[1:4]]
    options: Any = {"layer": 1, "rule": GaussLegendre(2), "level": "word"}
    many = list(lens_of(family).explain_many(pairs, progress=False, **options))
    assert [(e.text_a, e.text_b) for e in many] == pairs
    for pair, e in zip(pairs, many, strict=True):
        alone = lens_of(family).explain(*pair, **options)
        np.testing.assert_allclose(e.matrix, alone.matrix, atol=1e-6 if family in FLOAT32_INSIDE else 1e-12)


@pytest.mark.parametrize("family", families("bert"))
def test_features_sum_to_their_entry(family):
    lens = lens_of(family)
    for level, terms in (("token", "project"), ("word", "keep")):
        options: Any = {"layer": 1, "rule": GaussLegendre(3), "level": level, "reference_terms": terms}
        e = lens.explain(A, B, **options)
        found = lens.explain_features(A, B, 2, 3, **options)
        assert found.shape == (zoo.HIDDEN, zoo.HIDDEN)
        assert found.sum() == pytest.approx(e.matrix[2, 3], abs=1e-6 if family in FLOAT32_INSIDE else 1e-12)
        assert np.abs(found).sum() > np.abs(e.matrix[2, 3])


def test_reverse_mode_agrees_with_forward_mode():
    # With fewer dimensions than tokens reverse mode is used; it must say what forward mode says of more.
    model = zoo.encoder("bert", normalize=False, similarity="dot")
    narrow = zoo.encoder("bert", normalize=False, similarity="dot", truncate_dim=4)
    whole, part = (
        next(Lens(m, dtype="float64").decompose([A], layer=1, rule=GaussLegendre(4), progress=False))
        for m in (model, narrow)
    )
    assert part.values.shape == (len(part.units), 4)
    np.testing.assert_allclose(part.values, whole.values[:, :4], atol=1e-13)


@pytest.mark.parametrize("wrapped", [False, True])
def test_models_with_adapters_are_explained(wrapped):
    model = zoo.peft(wrapped=wrapped)
    for layer in (0, L):
        e = check(model, layer=layer)
    assert Lens(model).layers == L
    assert abs(e.score - score_of(zoo.encoder())) > 1e-3


def test_pooling_over_all_layers_needs_layer_0():
    first: Any = zoo.transformer("bert")
    first.auto_model.config.output_hidden_states = True
    pool = zoo.modules.WeightedLayerPooling(zoo.HIDDEN, num_hidden_layers=L, layer_start=1)
    model = SentenceTransformer(modules=[first, pool, zoo.modules.Pooling(zoo.HIDDEN)], device="cpu")
    check(model, layer=0)
    with pytest.raises(ModelError, match="only layer 0"):
        Lens(model).explain(A, B, layer=1)


def test_masks_that_models_make_only_during_graph_capture_are_set_to_none(monkeypatch):
    seen = []

    class Layer(torch.nn.Module):
        def forward(self, hidden, mask, *, other=None):
            seen.append((mask, other))
            return hidden

    tap, states = layers.Tap(), torch.zeros(1, 2, 3)
    layer = layers.Tapped(Layer(), tap)
    tap.record(lambda: (layer(states, None, other=states), layer(states, states)))
    monkeypatch.setattr(layers, "capturing", lambda device: True)
    tap.record(lambda: (layer(states, states, other=states), layer(states, states)))
    assert seen[0] == seen[2] == (None, states)
    assert seen[1] == seen[3] == (states, None)
