"""Modules after the transformer: pooling, dense layers, truncation, routers, static embeddings."""

from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import zoo
from families import ROLES, A, B, check, score_of, total
from pairlens import Lens, ModelError
from pairlens.attribution.similarity import TREATMENTS

L = zoo.LAYERS
SLOW = pytest.mark.slow
# The base of these random models is often large.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")

POOLINGS: list[Any] = ["mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens"]
if "pooling_mode" in zoo.modules.Pooling.config_keys:  # sentence-transformers 5.0 names one mode only
    POOLINGS.append(("mean", "cls"))


@pytest.mark.parametrize("family", ["bert", pytest.param("qwen3", marks=SLOW), pytest.param("t5", marks=SLOW)])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_every_pooling_is_explained(pooling, family):
    model = zoo.encoder(family, pooling=pooling)
    # Max pooling changes its mind along the path, like ReLU: many panels.
    kinked = pooling == "max" or family == "t5"
    check(model, layer=1, tol=1e-2 if kinked else 1e-5)
    assert Lens(model).pooling == (pooling if isinstance(pooling, str) else "mean+cls")


def test_max_pooling_reaches_the_default_tolerance():
    assert max(check(zoo.encoder("bert", pooling="max"), layer=0, tol=1e-3).settings["nodes"]) > 100


def test_only_the_pooled_token_counts_at_the_output():
    for pooling, pooled in (("cls", 0), ("lasttoken", -1)):
        e = check(zoo.encoder("bert", pooling=pooling), layer=L)
        rest = np.delete(e.matrix, pooled, 0)
        assert not rest.any()
        assert e.matrix[pooled].any()


@pytest.mark.parametrize("measure", ["cosine", "dot"])
@pytest.mark.parametrize(
    "behind",
    [
        {"dense": 24},
        {"layer_norm": True},
        {"dense": 24, "layer_norm": True},
        {"dense": 6},
        {"truncate_dim": 8},
        {"dense": 24, "truncate_dim": 5},
    ],
    ids=str,
)
@pytest.mark.parametrize("normalize", [True, pytest.param(False, marks=pytest.mark.slow)])
def test_dense_norm_and_truncation_after_pooling_are_explained(behind, normalize, measure):
    model = zoo.encoder("bert", normalize=normalize, similarity=measure, **behind)
    for terms in TREATMENTS:
        tol = 1e-4
        e = Lens(model, dtype="float64").explain(A, B, layer=1, tol=tol, reference_terms=terms)
        assert total(e) == pytest.approx(e.score, rel=1e-12)
        assert max(e.gap_a, e.gap_b) <= tol
        if terms != "shift":
            assert e.score == pytest.approx(score_of(model), rel=5e-6, abs=5e-6)


@pytest.mark.parametrize(("query", "document"), [("static", "bert"), ("mpnet", "bert"), ("qwen3", "static")])
def test_routers_use_the_modules_of_each_role(query, document):
    model = zoo.router(query, document)
    check(model, roles=ROLES)
    check(model, roles=ROLES[::-1])
    check(model)  # the model's default route
    same = Lens(model).explain(A, A, roles=ROLES)
    assert same.score < 0.999


def test_routes_with_different_numbers_of_layers_are_explained():
    shallow = list(zoo.encoder("bert", normalize=False, num_hidden_layers=1))
    routes = zoo.modules.Router.for_query_document(shallow, list(zoo.encoder("mpnet", normalize=False)))
    model = SentenceTransformer(modules=[routes], device="cpu")
    e = check(model, roles=ROLES, layer=-1)
    found = Lens(model, dtype="float64").explain_features(A, B, 1, 2, roles=ROLES, layer=-1)
    assert found.sum() == pytest.approx(e.matrix[1, 2], rel=5e-2)


def test_a_router_without_a_default_route_needs_roles():
    model: Any = zoo.router("mpnet", "bert")
    model[0].default_route = None
    check(model, roles=ROLES)
    with pytest.raises(ModelError, match=r"roles=\('query', 'document'\)"):
        Lens(model).explain(A, B)


@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("measure", ["cosine", "dot"])
@pytest.mark.parametrize("truncate_dim", [None, 8])
def test_static_embeddings_are_exact(normalize, measure, truncate_dim):
    model = zoo.static(normalize=normalize)
    model.truncate_dim, model.similarity_fn_name = truncate_dim, measure
    explained = [check(model, reference_terms=terms, level="token") for terms in TREATMENTS]
    for e in explained:
        assert e.gap_a == e.gap_b == e.base == 0
        assert abs(e.gap) < 1e-12 * max(1, abs(e.score))
        np.testing.assert_array_equal(e.matrix, explained[0].matrix)
    vectors: Any = model[0]
    ids = [vectors.tokenizer.encode(text, add_special_tokens=False).ids for text in (A, B)]
    a, b = (vectors.embedding.weight.detach().double().numpy()[i][:, :truncate_dim] for i in ids)
    expected = a @ b.T  # but for one positive factor
    np.testing.assert_allclose(explained[0].matrix / explained[0].matrix.sum(), expected / expected.sum(), rtol=1e-9)
