"""Lens on the real model: the numbers a user gets, and what they read when they ask for something impossible."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import torch

import pairlens
import zoo
from pairlens import (
    Adaptive,
    Contributions,
    Explanation,
    GaussLegendre,
    InputError,
    IntegratedJacobian,
    Lens,
    ModelError,
    Riemann,
    TruncationWarning,
)

A, B = "The coffee here is not good.", "This coffee is bad."


@pytest.fixture(scope="module")
def tiny():
    return Lens(zoo.encoder("bert"), dtype="float64")


def identity(e: Explanation) -> float:
    return e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum() + e.gap


def test_the_score_is_the_models_own(minilm):
    from sentence_transformers import SentenceTransformer

    from pairlens.model.bundled import offline_model

    model = SentenceTransformer(str(offline_model()), device="cpu")
    expected = float(model.similarity(*model.encode([A, B]))[0, 0])
    e = minilm.explain(A, B, layer=5)
    assert e.score == pytest.approx(expected, abs=2e-6)
    assert identity(e) == pytest.approx(e.score, abs=1e-12)


@pytest.mark.parametrize("layer", range(7))
def test_every_layer_of_minilm_reaches_1e_5(minilm, layer):
    e = minilm.explain("A cat sleeps.", "The cat is asleep.", layer=layer, tol=1e-5)
    assert max(e.gap_a, e.gap_b) <= 1e-5
    assert abs(e.gap) < 1e-4
    assert e.settings["layer"] == layer


def test_what_everybody_would_expect_of_the_example(minilm):
    e = minilm.explain(A, B, level="word")
    strongest = e.top(1)[0]
    assert (strongest.a.text, strongest.b.text) == ("coffee", "coffee")
    words = {(p.a.text, p.b.text): p.value for p in e.top(100)}
    assert words["good", "bad"] > words["here", "is"]


def test_words_are_sums_of_tokens(minilm):
    a, b = "Unbelievably incomprehensible paraphernalia.", "Incomprehensibly paraphrased."
    tokens = minilm.explain(a, b, layer=3, rule=GaussLegendre(8), level="token")
    words = minilm.explain(a, b, layer=3, rule=GaussLegendre(8), level="word")
    assert tokens.matrix.shape[0] > words.matrix.shape[0]
    assert np.allclose(tokens.at("word").matrix, words.matrix, atol=1e-6)
    assert [u.text for u in words.units_a] == [
        "[CLS]",
        "Unbelievably",
        "incomprehensible",
        "paraphernalia",
        ".",
        "[SEP]",
    ]


def test_spans_get_a_unit_each_and_the_rest_another(tiny):
    e = tiny.explain(A, B, level=([(4, 10)], [(0, 4), (5, 11)]))
    assert [u.text for u in e.units_a if u.kind == "text"] == ["coffee"]
    assert [u.kind for u in e.units_a].count("rest") == 1
    assert e.matrix.shape == (4, 5)
    assert identity(e) == pytest.approx(e.score, abs=1e-12)


def test_what_was_explained_before_changes_nothing(tiny):
    pair, others = ("The tea was cold.", "The coffee is hot."), [("One two.", "Three."), ("A b c d e f g.", "Here.")]
    for layer in range(tiny.layers + 1):
        first = Lens(zoo.encoder("bert"), dtype="float64").explain(*pair, layer=layer)
        lens = Lens(zoo.encoder("bert"), dtype="float64")
        for other in others:
            lens.explain(*other, layer=layer)
        later = lens.explain(*pair, layer=layer)
        assert later.settings["nodes"] == first.settings["nodes"]
        np.testing.assert_array_equal(later.matrix, first.matrix)


def test_a_warning_names_the_line_that_asked(tiny):
    with pytest.warns(TruncationWarning) as told:
        tiny.explain("word " * 999, B, layer=3)
    assert {own.filename for own in told if own.category is TruncationWarning} == {__file__}


def test_contributions_compare_to_what_explain_gives(tiny):
    a, b = tiny.decompose([A, B], layer=1, progress=False)
    assert isinstance(a, Contributions)
    e = tiny.explain(A, B, layer=1)
    assert np.allclose(tiny.compare(a, b).matrix, e.matrix, atol=1e-12)
    assert np.allclose(a.at("word").values.sum(0), a.values.sum(0))
    with pytest.raises(InputError, match="raw"):
        tiny.compare(a, b, reference_terms="ignore")


def test_features_sum_to_the_entry(tiny):
    e = tiny.explain(A, B, layer=1, level="word", tol=1e-4)
    features = tiny.explain_features(A, B, 2, 2, layer=1, level="word", tol=1e-4)
    assert features.shape == (zoo.HIDDEN, zoo.HIDDEN)
    assert features.sum() == pytest.approx(e.matrix[2, 2], abs=1e-9)
    features /= features.sum()  # it is the caller's
    with pytest.raises(InputError, match="from 0 to"):
        tiny.explain_features(A, B, 99, 0)
    with pytest.raises(InputError, match="roles has two entries"):
        tiny.explain_features(A, B, 0, 0, roles=("query",))


def test_numpy_numbers_are_numbers(tiny):
    place = np.unravel_index(5, (8, 7))
    assert tiny.explain_features(A, B, *place, layer=np.int64(2)).shape == (zoo.HIDDEN, zoo.HIDDEN)
    spans = [(np.int64(0), np.int64(3)), (np.int64(4), np.int64(10))]
    e = tiny.explain(A, B, layer=3, level=(spans, "word"))
    assert [u.text for u in e.units_a if u.kind == "text"] == ["The", "coffee"]
    assert len(e.top(np.int64(2))) == 2
    assert [x.text_b for x in tiny.explain_many(np.array([[A, B]]), layer=3, progress=False)] == [B]


def test_first_hidden_dimensions_are_those_of_the_last_layer_but_one(tiny):
    found = tiny.explain_features(A, B, "coffee", "coffee")
    assert np.array_equal(found, tiny.explain_features(A, B, 2, 2, layer=2))
    assert found.sum() == pytest.approx(tiny.explain(A, B, layer=2).matrix[2, 2], abs=1e-4)
    given = tiny.explain_features(A, B, 2, 2, method=IntegratedJacobian(layer=1))
    assert np.array_equal(given, tiny.explain_features(A, B, 2, 2, layer=1))


def test_what_the_caller_sets_on_the_model_counts():
    model = zoo.encoder("bert")
    lens = Lens(model)
    for name, value in (("truncate_dim", 5), ("max_seq_length", 4)):
        setattr(model, name, value)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            e = lens.explain(A, B, layer=3)
        assert e.score == pytest.approx(float(model.similarity(*model.encode([A, B]))[0, 0]), abs=1e-5)


def test_two_models_of_one_name_are_told_apart():
    one, other = (Lens(zoo.encoder("bert", seed=seed)) for seed in (1, 2))
    (a,), (b,) = one.decompose([A], layer=3, progress=False), other.decompose([B], layer=3, progress=False)
    with pytest.raises(InputError, match="two models"):
        one.compare(a, b)


def test_a_router_with_a_static_side_takes_a_layer_for_the_other():
    lens = Lens(zoo.router())
    e = lens.explain(A, B, roles=("query", "document"), layer=1)
    assert e.settings["layer"] == [0, 1]
    assert e.settings["reference"] == ["zero", "padding"]
    assert identity(e) == pytest.approx(e.score, abs=1e-12)


def test_static_weights_that_are_no_numbers():
    model = zoo.static()
    with torch.no_grad():
        model[0].embedding.weight.fill_(float("nan"))  # pyright: ignore[reportCallIssue, reportAttributeAccessIssue]
    with pytest.raises(pairlens.NumericalError, match="embedding"):
        Lens(model).explain(A, B)


def test_output_is_the_last_layer(tiny):
    assert np.allclose(tiny.explain(A, B, method="output").matrix, tiny.explain(A, B, layer=-1).matrix)
    assert tiny.explain(A, B, method=IntegratedJacobian(layer=2)).settings["layer"] == 2


def test_not_converging_names_the_text(tiny):
    with pytest.raises(pairlens.NotConverged, match=r"in 'This coffee is bad\.' the integral reached") as caught:
        list(tiny.explain_many([(B, B), (A, B)], rule=Adaptive(1e-12, max_nodes=4), level="word", progress=False))
    assert caught.value.gap > 1e-12


def test_fixed_rules_report_their_gap_and_never_raise(tiny):
    rough = tiny.explain(A, B, rule=Riemann(1))
    assert rough.gap_a > 1e-3
    assert rough.settings["nodes"] == [1, 1]
    assert tiny.explain(A, B, rule=Adaptive(1e-6)).gap_a <= 1e-6


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"layer": 4}, "layer 4 does not exist: this model has 3 layers"),
        ({"layer": -5}, "does not exist"),
        ({"layer": 1.0}, "whole number"),
        ({"method": "integrated-jacobean"}, "Did you mean 'integrated-jacobian'"),
        ({"method": 3}, "method is one of"),
        ({"method": IntegratedJacobian(), "layer": 1}, "says the same thing twice"),
        ({"method": IntegratedJacobian(), "reference": "mask"}, "says the same thing twice"),
        ({"method": "output", "layer": 1}, "last layer"),
        ({"reference": "masked"}, "Did you mean 'mask'"),
        ({"reference_terms": "keeps"}, "Did you mean 'keep'"),
        ({"measure": "euclidean"}, "Valid: cosine, dot"),
        ({"level": "words"}, "Did you mean 'word'"),
        ({"level": [(0, 500)]}, "500"),
        ({"level": [[0, 500]]}, "500"),
        ({"level": 5}, "unknown level 5"),
        ({"level": (1, 2)}, "unknown level"),
        ({"level": [(0, "x")]}, "unknown level"),
        ({"rule": 5}, "rule is Adaptive"),
        ({"tol": 2.0}, "between 0 and 1"),
        ({"roles": ("question", None)}, "role"),
        ({"roles": ("query",)}, "two entries"),
        ({"roles": None}, "two entries"),
        ({"reference": ""}, "unknown reference"),
        ({"reference_terms": ""}, "unknown reference_terms"),
        ({"rule": GaussLegendre(4), "tol": -5}, "between 0 and 1"),
    ],
)
def test_impossible_options_are_explained(tiny, options, word):
    with pytest.raises(InputError, match=word):
        tiny.explain(A, B, **options)


@pytest.mark.parametrize(("text", "word"), [("", "empty"), (" \n\t", "empty"), (3, "is int"), (None, "is NoneType")])
def test_impossible_texts_are_explained(tiny, text, word):
    with pytest.raises(InputError, match=word):
        tiny.explain(text, B)
    with pytest.raises(InputError, match=word):
        list(tiny.explain_many([(A, text)], progress=False))


def test_one_text_for_decompose_is_a_list_of_one(tiny):
    with pytest.raises(InputError, match=r"decompose\(\[text\]\)"):
        tiny.decompose(A)
    with pytest.raises(InputError, match="pair of texts"):
        list(tiny.explain_many([A], progress=False))


@pytest.mark.parametrize(
    ("model", "word"),
    [
        ("no/such-model-anywhere", "pairlens\\[offline\\]"),
        ("", "empty"),
        (zoo, "expected a hub id"),
        (42, "expected a hub id"),
    ],
)
def test_impossible_models_are_explained(model, word, monkeypatch):
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    with pytest.raises(pairlens.PairlensError, match=word):
        Lens(model)


def test_folders_that_are_no_model(tmp_path):
    with pytest.raises(ModelError, match=r"neither modules\.json nor config\.json"):
        Lens(tmp_path)
    (tmp_path / "modules.json").write_text("{")
    with pytest.raises(ModelError, match="cannot be read as JSON"):
        Lens(tmp_path)
    with pytest.raises(ModelError, match="is a file"):
        Lens(tmp_path / "modules.json")


def test_a_model_saved_and_loaded_gives_the_same(tiny, tmp_path):
    zoo.encoder("bert").save_pretrained(str(tmp_path), create_model_card=False)
    again = Lens(tmp_path, dtype="float64").explain(A, B, layer=1)
    assert np.allclose(again.matrix, tiny.explain(A, B, layer=1).matrix, atol=1e-9)


def test_long_texts_are_cut_and_say_so(tiny):
    long = "the dog runs and " * 60
    with pytest.warns(pairlens.TruncationWarning, match="longer than the model takes"):
        e = tiny.explain(long, B, layer=3)
    assert e.truncated
    assert not e.swap().truncated_a
    strict = Lens(zoo.encoder("bert"), strict=True)
    with pytest.raises(InputError, match="longer than the model takes"):
        strict.explain(long, B, layer=3)
    with warnings.catch_warnings():
        warnings.simplefilter("error", pairlens.TruncationWarning)
        assert not tiny.explain(A, B, layer=3).truncated


def test_dtype_names(tiny):
    with pytest.raises(InputError, match="float32, float64"):
        Lens(zoo.encoder("bert"), dtype="float16")
    assert "layers=3" in repr(tiny)
