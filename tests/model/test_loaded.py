"""Adjusted models: embeddings less those of their references, as in the papers."""

import copy
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import oracles
import zoo
from pairlens import GaussLegendre, Lens, ModelError, Riemann
from pairlens.attribution.similarity import TREATMENTS
from pairlens.model.loading import load
from snapshots import save_adjusted

A, B = zoo.TEXTS[:2]
L = zoo.LAYERS

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


def shifted_score(model: SentenceTransformer, family: str, measure: str) -> float:
    a, b = (np.subtract(*oracles.path(model, family, text, L).ends) for text in (A, B))
    return float(a @ b / (np.linalg.norm(a) * np.linalg.norm(b) if measure == "cosine" else 1))


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("family", ["mpnet", "roberta"])
def test_adjusted_models(family, dtype, tmp_path: Path):
    plain = save_adjusted(family, tmp_path)
    lens = Lens(tmp_path, dtype=dtype)
    assert lens.adjusted
    assert not Lens(plain).adjusted
    for measure in ("cosine", "dot"):
        default = lens.explain(A, B, measure=measure)
        assert default.settings["reference_terms"] == "shift"
        assert default.score == pytest.approx(shifted_score(plain, family, measure), rel=1e-5)
        for terms in TREATMENTS:
            e = lens.explain(A, B, reference_terms=terms, measure=measure)
            assert e.base == 0
            assert not e.effects_a.any()
            assert not e.effects_b.any()
            assert e.score == default.score
            np.testing.assert_array_equal(e.matrix, default.matrix)
            assert e.matrix.sum() == pytest.approx(e.score, abs=3e-3 * shifted_score(plain, family, measure))
            assert max(e.gap_a, e.gap_b) <= 1e-3


@pytest.mark.parametrize("family", ["mpnet", "roberta"])
def test_adjusted_models_have_the_papers_attributions(family, tmp_path: Path):
    plain = save_adjusted(family, tmp_path)
    a, b = (oracles.path(plain, family, text, 1) for text in (A, B))
    jacobians = [oracles.riemann(side, 5) for side in (a, b)]
    for measure in ("cosine", "dot"):
        expected = oracles.attributions(a, b, *jacobians, terms="shift", measure=measure)
        found = Lens(tmp_path, dtype="float64").explain(A, B, layer=1, rule=Riemann(5), measure=measure, level="token")
        np.testing.assert_allclose(found.matrix, expected, atol=1e-9 * np.abs(expected).max())


def test_an_adjusted_model_that_normalizes(tmp_path: Path):
    plain = save_adjusted("mpnet", tmp_path, normalize=True)
    for measure in ("cosine", "dot"):
        for terms in TREATMENTS:
            e = Lens(tmp_path, dtype="float64").explain(A, B, measure=measure, reference_terms=terms)
            assert e.score == pytest.approx(shifted_score(plain, "mpnet", "cosine"), abs=1e-9)


def test_adjusted_models_keep_their_reference(tmp_path: Path):
    save_adjusted("mpnet", tmp_path)
    with pytest.raises(ModelError, match="padding reference"):
        Lens(tmp_path).explain(A, B, reference="mask")


def test_the_papers_own_class_where_it_is_installed(tmp_path: Path):
    plain: Any = save_adjusted("mpnet", tmp_path)

    class ShiftingReferenceTransformer(type(plain[0])):
        def forward(self, features: dict[str, Any], **kwargs: Any) -> dict[str, Any]:
            raise NotImplementedError("the reference is appended to the batch, and its states subtracted")

    class Subclass(ShiftingReferenceTransformer):
        pass

    expected = Lens(tmp_path).explain(A, B, rule=GaussLegendre(3))
    for cls in (ShiftingReferenceTransformer, Subclass):
        model: Any = copy.deepcopy(plain)
        model[0].__class__ = cls
        assert load(model, None)[2]
        e = Lens(model).explain(A, B, rule=GaussLegendre(3))
        np.testing.assert_allclose(e.matrix, expected.matrix, atol=1e-6)
        assert type(model[0]) is cls
