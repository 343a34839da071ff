"""Fade: the parts add up, gates of zeros and ones are real deletions, and what cannot fade says so."""

from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from tokenizers import processors

import zoo
from pairlens import Fade, Lens
from pairlens.errors import InputError, ModelError, NotConverged
from pairlens.methods import Batch, Decomposition
from pairlens.model.encoder import Encoder
from pairlens.model.gates import POWERS, Attention, Gates
from pairlens.model.tokenize import Text
from pairlens.quadrature import Adaptive, GaussLegendre, Rule
from pairlens.text import group
from snapshots import save_adjusted, snapshot

A, B = zoo.TEXTS[:2]
DOUBLE = torch.float64
# Where positions are learned or rotary, and windows wider than the text, gates of zeros and ones are deletions.
CLOSING: dict[str, dict[str, Any]] = {
    family: {"modernbert": {"local_attention": 128}}.get(family, {"sliding_window": 64} if "gemma" in family else {})
    for family in zoo.FAMILIES
    if family not in ("t5", "mpnet", "deberta-v2")
}


@cache
def encoder_of(family: str, dtype: torch.dtype = DOUBLE) -> Encoder:
    return Encoder(zoo.encoder(family), dtype=dtype)


def fade(
    encoder: Encoder, *texts: str, rule: Rule | None = None, space: str = "raw", role: Any = None, positions="close"
) -> list[Decomposition]:
    """Return token-level decompositions of texts of one length."""
    read = [encoder.read(text, role) for text in texts]
    labels = [list(range(len(text.tokens))) for text in read]
    counts = [len(row) for row in labels]
    return Fade(positions).decompose(encoder, Batch(read, labels, counts, space), rule or Adaptive(1e-3))


def gated(encoder: Encoder, text: Text, gates: Any, positions: str = "close") -> np.ndarray:
    """Embeddings at gates, (passes, tokens)."""
    path = torch.as_tensor(np.asarray(gates) ** (1 / POWERS[positions]), dtype=encoder.dtype)
    function = Fade(positions).function(encoder, [text], "raw")
    with torch.no_grad():
        return function(path, torch.zeros(len(path), dtype=torch.long)).double().numpy()


def subsets(text: Text, count: int = 6) -> np.ndarray:
    """Random choices of a text's tokens, special ones always among them; the first is the special ones alone."""
    keeps = np.random.default_rng(0).random((count, len(text.tokens))) < 0.5
    keeps[0] = False
    return keeps | np.array(text.kept)


def assert_deletes(encoder: Encoder, text: Text, positions: str = "close", atol: float = 1e-5) -> None:
    keeps = subsets(text)
    deleted = encoder.encode([text], [0] * len(keeps), list(keeps), "raw")
    np.testing.assert_allclose(gated(encoder, text, keeps, positions), deleted, atol=atol)


# The families.


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_every_family_adds_up(family):
    encoder = encoder_of(family, torch.float32)
    tol = 1e-2 if family == "t5" else 1e-3  # ReLU: hundreds of nodes
    (integral,) = fade(encoder, A, rule=Adaptive(tol), space="unit")
    own = encoder.encode([encoder.read(A)], [0], [np.ones(len(integral.values), dtype=bool)], "unit")[0]
    np.testing.assert_allclose(integral.embedding, own, atol=1e-5)
    total = integral.reference + integral.values.sum(0)
    assert np.linalg.norm(total - own) <= 1.01 * tol * np.linalg.norm(own - integral.reference)
    assert integral.gap <= tol
    kept = np.array(encoder.read(A).kept)
    assert not integral.values[kept].any()
    assert integral.values[~kept].any(1).all()


@pytest.mark.parametrize("family", ["bert", "xlm-roberta", "deberta-v2"])
def test_double_precision_goes_further(family):
    (integral,) = fade(encoder_of(family), A, rule=Adaptive(1e-8))
    assert integral.gap <= 1e-8


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_every_layer_is_gated_once_and_gates_hide(family):
    encoder = encoder_of(family)
    text = encoder.read(A)
    features = dict(text.features)
    with torch.no_grad(), Attention(torch.zeros(1, len(text.tokens), dtype=DOUBLE)) as attention:
        encoder.route().run(features, 0, 1)
    assert attention.calls == encoder.layers() == zoo.LAYERS
    shut = np.array([text.kept], dtype=float)
    other = encoder.read(A)
    ids = other.features["input_ids"]
    ids[0, ~np.array(text.kept)] = ids[0, 1]
    for positions in ("close", "keep"):
        np.testing.assert_allclose(
            gated(encoder, text, shut, positions), gated(encoder, other, shut, positions), atol=1e-12
        )


@pytest.mark.parametrize("family", CLOSING)
def test_gates_of_zeros_and_ones_are_deletions(family):
    encoder = Encoder(zoo.encoder(family, **CLOSING[family]), dtype=DOUBLE)
    text = encoder.read(A)
    assert_deletes(encoder, text)
    with pytest.raises(AssertionError):  # the check can fail
        assert_deletes(encoder, text, "keep")


@pytest.mark.parametrize("family", ["t5", "mpnet", "deberta-v2", "modernbert"])
def test_distances_between_tokens_stay(family):
    # Of biases of the distance, and windows: then it is not quite a deletion, as Fade's docstring says.
    encoder = encoder_of(family)
    text = encoder.read(zoo.TEXTS[7])
    keeps = subsets(text)
    deleted = encoder.encode([text], [0] * len(keeps), list(keeps), "raw")
    assert np.abs(gated(encoder, text, keeps) - deleted).max() > 1e-3


@pytest.mark.parametrize("pooling", ["cls", "lasttoken", "weightedmean", "mean_sqrt_len_tokens", ("mean", "cls")])
def test_poolings(pooling):
    encoder = Encoder(zoo.encoder("bert", pooling=pooling), dtype=DOUBLE)
    assert_deletes(encoder, encoder.read(A))
    for positions in ("close", "keep"):
        assert fade(encoder, A, positions=positions)[0].gap <= 1e-3


def test_weighted_means_of_texts_that_begin_with_a_word():
    encoder = Encoder(zoo.encoder("qwen3", pooling="weightedmean"), dtype=DOUBLE)
    assert_deletes(encoder, encoder.read(A))
    assert fade(encoder, A)[0].gap <= 1e-3


def test_eager_attention_is_gated_too():
    eager: Any = zoo.encoder("bert")
    eager[0].auto_model.config._attn_implementation = "eager"
    rule = GaussLegendre(4)
    found, fused = (fade(e, A, rule=rule)[0].values for e in (Encoder(eager, dtype=DOUBLE), encoder_of("bert")))
    np.testing.assert_allclose(found, fused, atol=1e-12)


@pytest.mark.parametrize(
    ("family", "window"), [("modernbert", "local_attention"), ("embeddinggemma", "sliding_window")]
)
def test_rows_that_see_only_closed_gates_are_numbers(family, window):
    options: Any = {window: 2}
    encoder = Encoder(zoo.encoder(family, **options))
    text = encoder.read(zoo.TEXTS[7])
    assert np.isfinite(gated(encoder, text, [text.kept])).all()
    assert fade(encoder, zoo.TEXTS[7], rule=Adaptive(1e-2))[0].gap <= 1e-2


def test_causal_rows_before_any_special_token_converge():
    # The first rows see only gated tokens: shares there change with 1/g, but they are pooled and seen with g.
    encoder = Encoder(zoo.encoder("qwen3", pooling="mean"), dtype=DOUBLE)
    assert not encoder.read(A).kept[0]
    coarse, fine = (fade(encoder, A, rule=Adaptive(tol))[0] for tol in (1e-3, 1e-6))
    assert fine.gap <= 1e-6
    assert np.abs(coarse.values - fine.values).max() <= 1e-2 * np.abs(fine.values).max()


def test_layers_pooled_together():
    first: Any = zoo.transformer("bert")
    first.auto_model.config.output_hidden_states = True
    pool = zoo.modules.WeightedLayerPooling(zoo.HIDDEN, num_hidden_layers=zoo.LAYERS, layer_start=1)
    model = SentenceTransformer(modules=[first, pool, zoo.modules.Pooling(zoo.HIDDEN)], device="cpu")
    encoder = Encoder(model, dtype=DOUBLE)
    assert_deletes(encoder, encoder.read(A))
    assert fade(encoder, A)[0].gap <= 1e-3


# The numbers.


def test_without_attention_there_is_a_closed_form():
    model: Any = zoo.encoder("bert", normalize=False)
    for layer in model[0].auto_model.encoder.layer:
        layer.attention.output.dense.weight.data.zero_()
        layer.attention.output.dense.bias.data.zero_()
    encoder = Encoder(model, dtype=DOUBLE)
    (integral,) = fade(encoder, A, rule=Adaptive(1e-10))
    text = encoder.read(A)
    with torch.no_grad():
        states = encoder.route().run(dict(text.features), 0, 1)["token_embeddings"][0].numpy()
    kept = np.array(text.kept)
    fixed, total, k, n = states[kept].sum(0), states[~kept].sum(0), kept.sum(), (~kept).sum()
    x, w = np.polynomial.legendre.leggauss(60)
    expected = np.zeros_like(states)
    for t, weight in zip((x + 1) / 2, w / 2, strict=True):
        expected[~kept] += weight * (states[~kept] - (fixed + t * total) / (k + n * t)) / (k + n * t)
    np.testing.assert_allclose(integral.values, expected, atol=1e-10)
    np.testing.assert_allclose(integral.reference, fixed / k, atol=1e-12)


@pytest.mark.parametrize("truncate_dim", [None, 4], ids=["forward", "reverse"])
@pytest.mark.parametrize("family", ["bert", "qwen3", "embeddinggemma"])
def test_derivatives_are_finite_differences(family, truncate_dim):
    encoder = Encoder(zoo.encoder(family, truncate_dim=truncate_dim), dtype=DOUBLE)
    text = encoder.read(A)
    free = ~np.array(text.kept)
    # One node: the derivative by the path's variable u at u = 1/2, where the gates are u to a power.
    (integral,) = fade(encoder, A, rule=GaussLegendre(1))
    step = 1e-3 if family != "bert" else 1e-5  # the others compute in float32 inside
    middle = np.where(free, 0.5, 1.0)
    ahead, behind = (
        gated(
            encoder, text, np.stack([middle + sign * step * row for row in np.eye(len(free))[free]]) ** POWERS["close"]
        )
        for sign in (1, -1)
    )
    atol = 1e-8 if family == "bert" else 3e-3
    np.testing.assert_allclose(integral.values[free], (ahead - behind) / (2 * step), atol=atol)


def test_arrivals_are_a_distribution_over_positions():
    gates = Gates.along(torch.tensor([[1.0, 0.9, 0.7, 1.0, 0.5]], dtype=DOUBLE), 3)
    arrivals = gates.arrivals()[0]
    torch.testing.assert_close(arrivals.sum(-1), torch.ones(5, dtype=DOUBLE))
    expected = arrivals @ torch.arange(5, dtype=DOUBLE)
    torch.testing.assert_close(expected, torch.arange(5) + gates.moved[0])
    # By hand: the fourth token has the first before it for certain, and the second and third with their gates.
    p, q = 0.9**3, 0.7**3
    by_hand = torch.tensor([0, (1 - p) * (1 - q), p * (1 - q) + q * (1 - p), p * q, 0], dtype=DOUBLE)
    torch.testing.assert_close(arrivals[3], by_hand)


def test_groups_add_up():
    encoder, rule = encoder_of("bert"), GaussLegendre(6)
    text = encoder.read("The coffee isn't good. Nobody listens!")
    tokens = fade(encoder, text.text, rule=rule)[0].values
    units, labels = group(text.text, text.units, "word", finest=True)
    count = len(units)
    (words,) = Fade().decompose(encoder, Batch([text], [labels], [count], "raw"), rule)
    expected = np.zeros_like(words.values)
    np.add.at(expected, list(labels), tokens)
    np.testing.assert_allclose(words.values, expected, atol=1e-12)
    assert count < len(tokens)
    assert words.output == pytest.approx(encoder.outputs([text])[0])
    # Whatever is grouped with special tokens, and groups that hold no token.
    (mixed,) = Fade().decompose(encoder, Batch([text], [[3] * len(tokens)], [5], "raw"), rule)
    np.testing.assert_allclose(mixed.values[3], tokens.sum(0), atol=1e-12)
    assert not np.delete(mixed.values, 3, 0).any()
    assert mixed.values.shape == (5, zoo.HIDDEN)


def test_texts_of_one_length_go_together():
    encoder, rule = encoder_of("bert"), Adaptive(1e-3)
    plain = encoder.read(A)
    special = tuple(replace(unit, kind="special") if i == 3 else unit for i, unit in enumerate(plain.units))
    kept = tuple(unit.kind == "special" for unit in special)
    texts = [plain, replace(plain, units=special, kept=kept), encoder.read(A.replace("here", "This"))]
    labels = [list(range(len(plain.tokens)))] * 3
    counts = [len(plain.tokens)] * 3
    assert texts[0].kept != texts[1].kept
    together = Fade().decompose(encoder, Batch(texts, labels, counts, "unit"), rule)
    for text, in_batch in zip(texts, together, strict=True):
        (alone,) = Fade().decompose(encoder, Batch([text], labels[:1], counts[:1], "unit"), rule)
        assert alone.nodes == in_batch.nodes
        np.testing.assert_allclose(in_batch.values, alone.values, atol=1e-12)
        np.testing.assert_allclose(in_batch.output, alone.output, atol=1e-12)
    assert not together[1].values[3].any()
    assert together[0].values[3].any()


@pytest.mark.parametrize("include_prompt", [True, False])
def test_prompts_do_not_fade(include_prompt):
    model = zoo.encoder("bert", prompts={"query": "query: "}, include_prompt=include_prompt)
    encoder = Encoder(model, dtype=DOUBLE)
    text = encoder.read(A, "query")
    (integral,) = fade(encoder, A, role="query")
    prompt = np.array([unit.kind == "prompt" for unit in text.units])
    assert prompt.any()
    assert not integral.values[prompt].any()
    assert integral.gap <= 1e-3
    assert_deletes(encoder, text)


@pytest.mark.parametrize("family", ["mpnet", "roberta"])
def test_adjusted_models_begin_at_zero(family, tmp_path: Path):
    save_adjusted(family, tmp_path)
    encoder = Encoder(tmp_path, dtype=DOUBLE)
    assert encoder.adjusted
    (integral,) = fade(encoder, A)
    assert not integral.reference.any()
    heads = encoder.states([encoder.read(A)], 0, "padding", "raw")
    np.testing.assert_allclose(integral.embedding, encoder.arrived(heads.pending)[1][0])
    assert integral.gap <= 1e-3
    if family == "roberta":
        assert_deletes(encoder, encoder.read(A))
        # Padding tokens have no position of their own there: the reference is shorter from the start.
        with pytest.raises(ModelError, match="positions='close'"):
            fade(encoder, A, positions="keep")


# Manners.


@pytest.mark.parametrize("family", ["bert", "qwen3"])
def test_the_model_is_left_as_it_was(family):
    model: Any = zoo.encoder(family)
    model.encode(A)
    before = snapshot(model)
    encoder = Encoder(model)
    fade(encoder, A, rule=GaussLegendre(2))
    assert snapshot(model) == before
    assert not any(module._forward_hooks for module in encoder._twin.modules())
    with pytest.raises(NotConverged, match="coffee"):
        fade(encoder, A, rule=Adaptive(1e-3, max_nodes=2))
    assert snapshot(model) == before
    assert not any(module._forward_hooks for module in encoder._twin.modules())


def test_settings():
    assert Fade().describe(encoder_of("bert"), None) == {
        "layer": None,
        "reference": "special tokens",
        "positions": "close",
    }
    with pytest.raises(InputError, match="Did you mean 'close'"):
        Fade("closed")


@pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")
def test_lens_explains_by_fading():
    lens = Lens(zoo.encoder("bert"))
    e = lens.explain(A, B, method="fade")
    assert e.base + e.matrix.sum() + e.gap == pytest.approx(e.score, abs=1e-12)
    assert max(e.gap_a, e.gap_b) <= 1e-3
    kept = lens.explain(A, B, method=Fade(positions="keep"))
    assert np.abs(kept.matrix - e.matrix).max() > 1e-3


# What cannot fade.


def without_special_tokens(family: str, **options: Any) -> SentenceTransformer:
    model: Any = zoo.encoder(family, **options)
    model.tokenizer.backend_tokenizer.post_processor = processors.Sequence([])
    assert not any(Encoder(model).read(A).kept)
    return model


@pytest.mark.parametrize(
    ("model", "message"),
    [
        (lambda: zoo.encoder(pooling="max"), "max pooling"),
        (lambda: zoo.encoder(pooling=("mean", "max")), "max pooling"),
        (lambda: zoo.encoder(pooling=("mean", "weightedmean")), "two ways"),
        (lambda: without_special_tokens("qwen3"), r"lasttoken pooling takes '\.'"),
        (lambda: without_special_tokens("bert", pooling="cls"), "cls pooling takes 'the'"),
        (lambda: zoo.encoder("t5", pooling="cls"), "cls pooling takes"),
        (lambda: without_special_tokens("bert"), "integral diverges"),
        (lambda: without_special_tokens("bert", pooling="weightedmean"), "integral diverges"),
    ],
)
def test_poolings_that_raise(model, message):
    with pytest.raises(ModelError, match=rf"{message}.*use method='banzhaf' or method='integrated-jacobian'"):
        fade(Encoder(model()), A)


def test_static_embeddings_need_no_fading():
    with pytest.raises(ModelError, match="integrated-jacobian"):
        fade(Encoder(zoo.static()), A)


def test_attention_that_is_not_met_raises():
    class Averaging(torch.nn.Module):
        """Mixes tokens, but not by attention."""

        def forward(self, hidden_states: torch.Tensor, *_: Any, **__: Any) -> Any:
            return hidden_states + hidden_states.mean(1, keepdim=True)

    for layers in (1, 3):
        model: Any = zoo.encoder("bert")
        for index in range(layers):
            model[0].auto_model.encoder.layer[index] = Averaging()
        with pytest.raises(ModelError, match=f"attention cannot be gated.*met {3 - layers} times in 3 layers"):
            fade(Encoder(model), A)


def test_modules_that_move_states_between_tokens_raise():
    class Rolling(torch.nn.Module):
        def forward(self, features: dict[str, Any]) -> dict[str, Any]:
            return {**features, "token_embeddings": features["token_embeddings"].roll(1, 1)}

    plain: Any = zoo.encoder("bert")
    model = SentenceTransformer(modules=[plain[0], Rolling(), *list(plain)[1:]], device="cpu")
    with pytest.raises(ModelError, match="still changes"):
        fade(Encoder(model), A)


def test_several_paths_are_complete_and_repeat():
    lens = Lens(zoo.encoder("bert"), dtype="float64")
    text = "The dog sleeps."

    def values(**options):
        found = next(lens.decompose([text], method=Fade(**options), tol=1e-6, progress=False))
        assert found.gap <= 1e-6
        return found.values

    one, four, again, other = values(), values(paths=4), values(paths=4), values(paths=4, seed=1)
    np.testing.assert_array_equal(four, again)
    np.testing.assert_allclose(one.sum(0), four.sum(0), atol=1e-5)
    assert np.abs(one - four).max() > 1e-3
    assert np.abs(other - four).max() > 1e-4
    for odd in (0, 3):
        with pytest.raises(InputError, match="paths"):
            Fade(paths=odd)
