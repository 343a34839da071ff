"""Every family, pooling and module that follows: the score is the model's own, and the parts add up to it."""

from functools import cache
from typing import Any

import numpy as np
import pytest
from sentence_transformers import SentenceTransformer

import oracles
import zoo
from pairlens import Explanation, GaussLegendre, Lens, ModelError, ReferenceWarning
from pairlens.attribution.treatments import TREATMENTS
from pairlens.model.encoder import Encoder
from pairlens.model.reference import reference_token

A, B = zoo.TEXTS[:2]
LONG_A, LONG_B = "The coffee isn't good. Nobody listens!", "This coffee is bad, I think. Do you?"
L = zoo.LAYERS
ROLES = ("query", "document")
SMOOTH = tuple(family for family in zoo.FAMILIES if family != "t5")
# These compute in float32 inside, whatever the model's dtype.
FLOAT32_INSIDE = ("modernbert", "t5", "qwen3", "gemma3", "embeddinggemma")

# The base of these random models is often large.
pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


@cache
def model_of(family: str) -> SentenceTransformer:
    return zoo.encoder(family)


@cache
def lens_of(family: str) -> Lens:
    return Lens(model_of(family), dtype="float64")


def own(model: SentenceTransformer, roles: tuple[str | None, str | None] = (None, None)) -> float:
    """What the model itself says of A and B."""
    encode: Any = {None: model.encode, "query": model.encode_query, "document": model.encode_document}
    return float(model.similarity(encode[roles[0]](A), encode[roles[1]](B)))


def total(e: Explanation) -> float:
    return e.base + float(e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum()) + e.gap


def check(model: SentenceTransformer, *, tol: float = 1e-3, roles: Any = (None, None), **options: Any) -> Explanation:
    """Explain A and B, and see that the numbers are the model's, add up, and are as exact as was asked for."""
    e = Lens(model, dtype="float64").explain(A, B, tol=tol, roles=roles, **options)
    assert e.score == pytest.approx(own(model, roles), rel=5e-6, abs=5e-6)
    assert total(e) == pytest.approx(e.score, rel=1e-12)
    assert max(e.gap_a, e.gap_b) <= tol
    return e


def test_the_check_can_fail():
    model = zoo.encoder(similarity="dot", normalize=False)
    check(model)
    with pytest.raises(AssertionError):
        check(model, measure="cosine")


# The families.


@pytest.mark.parametrize("layer", range(L + 1))
@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_the_parts_add_up_in_every_treatment(family, layer):
    lens, score = lens_of(family), own(model_of(family))
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
    """Less is asked of T5, whose kinks take hundreds of nodes."""
    return 1e-3 if family in SMOOTH else 1e-2


def bound(e: Explanation, a: Any, b: Any) -> float:
    """The gap that the two texts' own gaps allow: each total is off by at most gap ‖d‖, beside the other's vector v."""
    terms = e.settings["reference_terms"]
    scales = [1 / np.linalg.norm(c.embedding - c.reference if terms == "shift" else c.embedding) for c in (a, b)]
    d_a, d_b = (s * np.linalg.norm(c.embedding - c.reference) for s, c in zip(scales, (a, b), strict=True))
    v_a, v_b = (d_a, d_b) if terms in ("shift", "ignore") else (1, 1)
    return a.gap * d_a * v_b + b.gap * d_b * v_a + a.gap * b.gap * d_a * d_b + 1e-12


@pytest.mark.parametrize("family", SMOOTH)
def test_a_smooth_tail_reaches_1e_5(family):
    for layer in range(L + 1):
        e = lens_of(family).explain(A, B, layer=layer, tol=1e-5)
        assert max(e.gap_a, e.gap_b) <= 1e-5
        assert max(e.settings["nodes"]) <= 150  # measured: 96 to 135 for ModernBERT at layer 0, at most 60 elsewhere


def test_panels_find_the_kinks_of_t5():
    for layer, tol in ((0, 1e-3), (2, 1e-4)):
        e = lens_of("t5").explain(A, B, layer=layer, tol=tol)
        assert max(e.gap_a, e.gap_b) <= tol


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_layers_count_from_either_end(family):
    lens = lens_of(family)
    assert lens.layers == L
    found = {n: lens.explain(A, B, layer=n, rule=GaussLegendre(1)) for n in (0, 2, L, -1, -2, -L - 1)}
    for layer, negative in ((0, -L - 1), (2, -2), (L, -1)):
        assert found[layer].settings["layer"] == found[negative].settings["layer"] == layer
        np.testing.assert_array_equal(found[layer].matrix, found[negative].matrix)
    output = lens.explain(A, B, method="output", rule=GaussLegendre(1))
    np.testing.assert_array_equal(output.matrix, found[L].matrix)


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_float32_says_the_same(family):
    single, double = (
        Lens(model_of(family), dtype=dtype).explain(A, B, layer=1, rule=GaussLegendre(8))
        for dtype in ("float32", "float64")
    )
    assert single.score == pytest.approx(double.score, abs=2e-6)
    np.testing.assert_allclose(single.matrix, double.matrix, atol=2e-5 * np.abs(double.matrix).max())


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_swapping_the_texts_transposes(family):
    rule = GaussLegendre(4)
    for terms in ("project", "keep"):
        e, swapped = (lens_of(family).explain(*p, rule=rule, reference_terms=terms) for p in ((A, B), (B, A)))
        np.testing.assert_allclose(swapped.matrix, e.matrix.T, atol=1e-6 if family in FLOAT32_INSIDE else 1e-12)
        np.testing.assert_array_equal(swapped.effects_a, e.effects_b)
        np.testing.assert_array_equal(e.swap().matrix, e.matrix.T)
        assert swapped.score == pytest.approx(e.score, abs=1e-12)


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_many_pairs_are_each_pair(family):
    # Texts of several lengths, some the same: batches, left padding and repeated texts must change nothing.
    pairs = [(a, b) for a in zoo.TEXTS[:2] for b in zoo.TEXTS[1:4]]
    options: Any = {"layer": 1, "rule": GaussLegendre(2), "level": "word"}
    many = list(lens_of(family).explain_many(pairs, progress=False, **options))
    assert [(e.text_a, e.text_b) for e in many] == pairs
    for pair, e in zip(pairs, many, strict=True):
        alone = lens_of(family).explain(*pair, **options)
        np.testing.assert_allclose(e.matrix, alone.matrix, atol=1e-6 if family in FLOAT32_INSIDE else 1e-12)


# Units.


def rows(e: Explanation, side: str) -> list[tuple[str, int, int]]:
    return [(unit.text, unit.start, unit.end) for unit in getattr(e, f"units_{side}")]


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_coarser_levels_are_sums_of_tokens(family):
    lens = lens_of(family)
    options: Any = {"layer": 1, "rule": GaussLegendre(3)}
    tokens = lens.explain(LONG_A, LONG_B, **options)
    close: Any = {"atol": 1e-6 if family in FLOAT32_INSIDE else 1e-9}
    for level in ("word", "sentence", [(0, 10), (11, 22)], ("word", "sentence")):
        coarse = lens.explain(LONG_A, LONG_B, level=level, **options)
        regrouped = tokens.at(level)
        assert rows(coarse, "a") == rows(regrouped, "a")
        assert rows(coarse, "b") == rows(regrouped, "b")
        np.testing.assert_allclose(coarse.matrix, regrouped.matrix, **close)
        assert coarse.score == pytest.approx(tokens.score, abs=1e-9)
        assert coarse.matrix.sum() == pytest.approx(tokens.matrix.sum(), abs=1e-6)
    # By hand: a token belongs to the word that holds its first character, whitespace aside.
    words = lens.explain(LONG_A, LONG_B, level="word", **options)
    assert [u.text for u in words.units_a if u.kind == "text"] == "The coffee isn't good . Nobody listens !".split()
    firsts = [len(LONG_A) - len(LONG_A[unit.start :].lstrip()) for unit in tokens.units_a]
    for i, word in enumerate(words.units_a):
        if word.kind == "text":
            inside = [
                word.start <= n < word.end and u.kind == "text" for n, u in zip(firsts, tokens.units_a, strict=True)
            ]
            np.testing.assert_allclose(words.row[i], tokens.row[inside].sum(), **close)


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_special_tokens_and_offsets(family):
    e = lens_of(family).explain(A, B, rule=GaussLegendre(1))
    special = [unit for unit in e.units_a if unit.kind == "special"]
    assert len(special) == len(e.tokens_a) - len(model_of(family).tokenizer.tokenize(A)) > 0
    assert [unit.text for unit in special] == [
        t for t in e.tokens_a if t in model_of(family).tokenizer.all_special_tokens
    ]
    assert all(A[unit.start : unit.end] == unit.text for unit in e.units_a if unit.kind == "text")
    assert "".join(unit.text for unit in e.units_a if unit.kind == "text") == A.replace(" ", "")


def test_what_the_reference_shares_contributes_nothing():
    e = lens_of("bert").explain(A, B, layer=0)
    special = [unit.kind == "special" for unit in e.units_a]
    assert not e.matrix[special].any()
    assert e.matrix[np.logical_not(special)].any(1).all()
    assert lens_of("bert").explain(A, B, layer=1).matrix[special].any()


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_features_sum_to_their_entry(family):
    lens = lens_of(family)
    for level, terms in (("token", "project"), ("word", "keep")):
        options: Any = {"layer": 1, "rule": GaussLegendre(3), "level": level, "reference_terms": terms}
        e = lens.explain(A, B, **options)
        found = lens.explain_features(A, B, 2, 3, **options)
        assert found.shape == (zoo.HIDDEN, zoo.HIDDEN)
        assert found.sum() == pytest.approx(e.matrix[2, 3], abs=1e-6 if family in FLOAT32_INSIDE else 1e-12)
        assert np.abs(found).sum() > np.abs(e.matrix[2, 3])


# References.


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_references(family):
    lens, tokenizer = lens_of(family), model_of(family).tokenizer
    padded, zeroed = (lens.explain(A, B, layer=1, rule=GaussLegendre(3), reference=r) for r in ("padding", "zero"))
    assert padded.settings["reference_token"] == tokenizer.pad_token
    assert np.abs(padded.matrix - zeroed.matrix).max() > 1e-3
    if tokenizer.mask_token is None:
        with pytest.raises(ModelError, match=r"no mask token.*reference='padding'"):
            lens.explain(A, B, reference="mask")
    else:
        masked = lens.explain(A, B, layer=1, rule=GaussLegendre(3), reference="mask")
        assert masked.settings["reference_token"] == tokenizer.mask_token
        assert np.abs(padded.matrix - masked.matrix).max() > 1e-3
        assert masked.score == pytest.approx(padded.score, abs=1e-12)


def test_without_a_padding_token_the_end_token_fills_the_reference():
    # sentence-transformers itself pads every batch, so such a tokenizer only comes with a model's own input module.
    reader = Encoder(zoo.encoder("qwen3")).route().reader
    assert reference_token("padding", reader) == (0, "<|endoftext|>")
    reader.tokenizer.pad_token = None
    assert reference_token("padding", reader) == (1, "<|im_end|>")
    reader.tokenizer.eos_token = None
    with pytest.raises(ModelError, match="neither a padding nor an end token"):
        reference_token("padding", reader)


# Pooling and what follows it.

POOLINGS: list[Any] = ["mean", "cls", "max", "lasttoken", "weightedmean", "mean_sqrt_len_tokens"]
if "pooling_mode" in zoo.modules.Pooling.config_keys:  # sentence-transformers 5.0 names one mode only
    POOLINGS.append(("mean", "cls"))


@pytest.mark.parametrize("family", ["bert", "qwen3", "t5"])
@pytest.mark.parametrize("pooling", POOLINGS)
def test_poolings(pooling, family):
    model = zoo.encoder(family, pooling=pooling)
    # Max pooling changes its mind along the path, like ReLU: many panels.
    kinked = pooling == "max" or family == "t5"
    check(model, layer=1, tol=1e-2 if kinked else 1e-5)
    assert Lens(model).pooling == (pooling if isinstance(pooling, str) else "mean+cls")


def test_max_pooling_reaches_the_default_tolerance():
    assert max(check(zoo.encoder("bert", pooling="max"), tol=1e-3).settings["nodes"]) > 100


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
@pytest.mark.parametrize("normalize", [False, True])
def test_modules_behind_the_pooling(behind, normalize, measure):
    model = zoo.encoder("bert", normalize=normalize, similarity=measure, **behind)
    for terms in TREATMENTS:
        tol = 1e-4
        e = Lens(model, dtype="float64").explain(A, B, layer=1, tol=tol, reference_terms=terms)
        assert total(e) == pytest.approx(e.score, rel=1e-12)
        assert max(e.gap_a, e.gap_b) <= tol
        if terms != "shift":
            assert e.score == pytest.approx(own(model), rel=5e-6, abs=5e-6)


def test_few_dimensions_turn_the_derivative_round():
    # With fewer dimensions than tokens reverse mode is used; it must say what forward mode says of more.
    model = zoo.encoder("bert", normalize=False, similarity="dot")
    narrow = zoo.encoder("bert", normalize=False, similarity="dot", truncate_dim=4)
    whole, part = (
        next(Lens(m, dtype="float64").decompose([A], layer=1, rule=GaussLegendre(4), progress=False))
        for m in (model, narrow)
    )
    assert part.values.shape == (len(part.units), 4)
    np.testing.assert_allclose(part.values, whole.values[:, :4], atol=1e-13)


# Prompts, routes, adapters.


@pytest.mark.parametrize("include_prompt", [True, False])
@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_prompts(family, include_prompt):
    prompts = {"query": "query: ", "document": "passage: "}
    model = zoo.encoder(family, prompts=prompts, include_prompt=include_prompt)
    e = check(model, layer=1, tol=1e-2, roles=ROLES)
    prompt = [unit for unit in e.units_a if unit.kind == "prompt"]
    assert "".join(unit.text for unit in prompt).endswith("ry:")
    assert {(unit.start, unit.end) for unit in prompt} == {(0, 0)}
    assert all(A[unit.start : unit.end] == unit.text for unit in e.units_a if unit.kind == "text")
    assert sum(unit.kind == "prompt" for unit in e.at("word").units_a) == 1
    if family not in ("qwen3", "gemma3"):  # pooling the last token, they never include the prompt
        other = zoo.encoder(family, prompts=prompts, include_prompt=not include_prompt)
        assert abs(e.score - own(other, ROLES)) > 1e-4


def test_prompts_stay_in_the_reference():
    model = zoo.encoder("bert", prompts={"query": "query: "})
    e = check(model, layer=0, roles=("query", None))
    assert not e.matrix[[unit.kind == "prompt" for unit in e.units_a]].any()


@pytest.mark.parametrize("default", [None, "query", "other"])
@pytest.mark.parametrize("roles", [(None, None), ROLES, ROLES[::-1]])
def test_default_prompts(default, roles):
    prompts = {"query": "query: ", "document": "", "other": "an other one: "}
    e = check(zoo.encoder("bert", prompts=prompts, default_prompt_name=default), layer=2, roles=roles)
    expected = [prompts[default] if default else "", prompts["query"], prompts["document"]]
    for units, role in zip((e.units_a, e.units_b), roles, strict=True):
        prompt = expected[[None, "query", "document"].index(role)]
        assert any(unit.kind == "prompt" for unit in units) is bool(prompt)


@pytest.mark.parametrize(("query", "document"), [("static", "bert"), ("mpnet", "bert"), ("qwen3", "static")])
def test_routes(query, document):
    model = zoo.router(query, document)
    check(model, roles=ROLES)
    check(model, roles=ROLES[::-1])
    check(model)  # the model's default route
    same = Lens(model).explain(A, A, roles=ROLES)
    assert same.score < 0.999


def test_routes_of_different_depth():
    shallow = list(zoo.encoder("bert", normalize=False, num_hidden_layers=1))
    routes = zoo.modules.Router.for_query_document(shallow, list(zoo.encoder("mpnet", normalize=False)))
    model = SentenceTransformer(modules=[routes], device="cpu")
    e = check(model, roles=ROLES, layer=-1)
    found = Lens(model, dtype="float64").explain_features(A, B, 1, 2, roles=ROLES, layer=-1)
    assert found.sum() == pytest.approx(e.matrix[1, 2], rel=5e-2)


def test_a_route_must_be_known():
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
    explained = [check(model, reference_terms=terms) for terms in TREATMENTS]
    for e in explained:
        assert e.gap_a == e.gap_b == e.base == 0
        assert abs(e.gap) < 1e-12 * max(1, abs(e.score))
        np.testing.assert_array_equal(e.matrix, explained[0].matrix)
    vectors: Any = model[0]
    ids = [vectors.tokenizer.encode(text, add_special_tokens=False).ids for text in (A, B)]
    a, b = (vectors.embedding.weight.detach().double().numpy()[i][:, :truncate_dim] for i in ids)
    expected = a @ b.T  # but for one positive factor
    np.testing.assert_allclose(explained[0].matrix / explained[0].matrix.sum(), expected / expected.sum(), rtol=1e-9)


@pytest.mark.parametrize("wrapped", [False, True])
def test_adapters(wrapped):
    model = zoo.peft(wrapped=wrapped)
    for layer in (0, L):
        e = check(model, layer=layer)
    assert Lens(model).layers == L
    assert abs(e.score - own(zoo.encoder())) > 1e-3


def test_a_large_base_is_called_out():
    # The last layer of a mean-pooled encoder with a huge constant: all texts point one way.
    model: Any = zoo.encoder("bert", dense=8)
    model[2].linear.bias.data += 100
    with pytest.warns(ReferenceWarning, match="keep"):
        Lens(model).explain(A, B, layer=L)


def test_pooling_over_all_layers_needs_layer_0():
    first: Any = zoo.transformer("bert")
    first.auto_model.config.output_hidden_states = True
    pool = zoo.modules.WeightedLayerPooling(zoo.HIDDEN, num_hidden_layers=L, layer_start=1)
    model = SentenceTransformer(modules=[first, pool, zoo.modules.Pooling(zoo.HIDDEN)], device="cpu")
    check(model, layer=0)
    with pytest.raises(ModelError, match="only layer 0"):
        Lens(model).explain(A, B, layer=1)
