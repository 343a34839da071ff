"""The caller's model: used as it is, left as it was, refused where it cannot be explained."""

import copy
from concurrent.futures import ThreadPoolExecutor
from contextlib import nullcontext
from functools import reduce
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from sentence_transformers import SentenceTransformer
from torch import nn

import oracles
import zoo
from families import families
from pairlens import GaussLegendre, InputError, Lens, ModelError, NumericalError, TruncationWarning
from pairlens.model.encoder import Encoder
from snapshots import snapshot

A, B = zoo.TEXTS[:2]
L = zoo.LAYERS

pytestmark = pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")


def own(model: SentenceTransformer, a: str = A, b: str = B) -> float:
    return float(model.similarity(model.encode(a), model.encode(b)))


def layers_of(model: Any, family: str) -> Any:
    return reduce(getattr, oracles.LAYERS[family].split("."), model[0].auto_model)


# Left as it was.


def disturb_mode(model: Any) -> None:
    model.eval()


def disturb_hooks(model: Any) -> None:
    model[0].register_forward_hook(lambda *_: None)


def disturb_values(model: Any) -> None:
    next(model.parameters()).data[0] += 1


def disturb_attributes(model: Any) -> None:
    model[1].note = 1


@pytest.mark.parametrize("disturb", [disturb_mode, disturb_hooks, disturb_values, disturb_attributes])
def test_the_snapshot_can_fail(disturb):
    model = zoo.encoder().train()
    before = snapshot(model)
    disturb(model)
    assert snapshot(model) != before


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("family", [*families("bert", "t5", "qwen3"), "static", "peft"])
def test_the_model_is_left_as_it_was(family, dtype):
    model: Any = zoo.static() if family == "static" else zoo.peft() if family == "peft" else zoo.encoder(family)
    model.encode(A)
    model.train()
    parameters = list(model.parameters())
    parameters[0].requires_grad_(False)
    list(model.modules())[-1].register_forward_hook(lambda *_: None)
    before = snapshot(model)
    lens = Lens(model, dtype=dtype)
    for layer in (0, L) if family != "static" else (0,):
        lens.explain(A, B, layer=layer, rule=GaussLegendre(2))
    assert snapshot(model) == before


def test_weights_are_shared_not_copied():
    model = zoo.encoder()
    twin = Encoder(model)._twin
    shared = {p.data_ptr() for p in model.parameters()}
    assert {p.data_ptr() for p in twin.parameters()} == shared
    assert not {p.data_ptr() for p in Encoder(model, dtype=torch.float64)._twin.parameters()} & shared


def test_loading_leaves_the_random_state(tmp_path: Path):
    zoo.encoder(dense=8).save_pretrained(str(tmp_path), create_model_card=False)
    before = torch.get_rng_state()
    Lens(tmp_path).explain(A, B, layer=L)
    assert torch.equal(torch.get_rng_state(), before)


def test_dropout_is_off_and_training_goes_on():
    model = zoo.encoder(hidden_dropout_prob=0.5, attention_probs_dropout_prob=0.5).train()
    score = Lens(model).explain(A, B).score
    assert model.training
    assert score == pytest.approx(own(model), abs=2e-6)


def test_a_model_in_training_can_be_explained():
    # Checkpointing hangs a hook on the embeddings that asks for gradients; a backward hook cannot be transformed.
    for dense in (None, 4):  # forward and reverse mode
        model: Any = zoo.encoder(dense=dense)
        expected = Lens(model).explain(A, B, rule=GaussLegendre(3)).matrix
        model[0].auto_model.gradient_checkpointing_enable()
        model[0].auto_model.enable_input_require_grads()
        layers_of(model, "bert")[1].register_full_backward_hook(lambda *_: None)
        model.train()
        e = Lens(model).explain(A, B, rule=GaussLegendre(3))
        np.testing.assert_allclose(e.matrix, expected, atol=1e-6)


# Hooks, and how often layers run.


@pytest.mark.parametrize("family", families("bert", "t5", "qwen3", without="albert"))
def test_layers_before_the_entered_one_run_once(family):
    model: Any = zoo.encoder(family)
    runs: dict[int, list[int]] = {0: [], 1: [], 2: []}
    for index, layer in enumerate(layers_of(model, family)):

        def note(_: nn.Module, args: Any, kwargs: Any, index: int = index) -> None:
            runs[index].append(len(args[0] if args else kwargs["hidden_states"]))

        layer.register_forward_pre_hook(note, with_kwargs=True)
    lens = Lens(model)
    lens.explain(A, B, rule=GaussLegendre(1))  # finds the layers
    for entered in range(L):
        for counts in runs.values():
            counts.clear()
        e = lens.explain(A, B, layer=entered, rule=GaussLegendre(9))
        assert e.settings["nodes"] == [9, 9]
        for index, counts in runs.items():
            if index < entered:  # each text and each reference once, those of one length in one batch
                lengths = len({len(e.tokens_a), len(e.tokens_b)})
                assert sum(counts) == 2 + lengths
                assert len(counts) == lengths
            else:
                assert sum(counts) >= 2 * (2 + 9)


def test_one_layer_that_is_called_again_and_again():
    model: Any = zoo.encoder("albert")
    calls = []
    layers_of(model, "albert")[0].register_forward_hook(lambda *_: calls.append(1))
    lens, found = Lens(model), []
    for entered in range(L):
        lens.explain(A, B, layer=entered, rule=GaussLegendre(4))
        calls.clear()
        lens.explain(A, B, layer=entered, rule=GaussLegendre(4))
        found.append(len(calls) - 2 * L)  # beside the two heads, every pass over the tail calls what is left
    assert lens.layers == L
    assert found[0] % 3 == found[1] % 2 == 0
    assert found[0] / 3 == found[1] / 2 == found[2]


def heads_of(lens: Lens, monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many inputs run through the model from its first layer on, from now on: texts and references."""
    encoder: Any = lens.encoder
    runs, plain = [], encoder._record

    def noted(route: Any, features: dict[str, Any], layer: int) -> Any:
        runs.append(len(features["input_ids"]))
        return plain(route, features, layer)

    monkeypatch.setattr(encoder, "_record", noted)
    return runs


SAME = ("The tea is bad.", "The coffee was hot.", "The tea was cold.", "A man is here.")


def test_references_of_one_length_run_once(monkeypatch):
    lens = Lens(zoo.encoder(), dtype="float64")
    assert len({len(lens.encoder.read(text).tokens) for text in SAME}) == 1
    options: Any = {"layer": 1, "rule": GaussLegendre(2)}
    expected = lens.fork().explain(*SAME[2:], **options)
    lens.explain(*SAME[:2], **options)
    runs = heads_of(lens, monkeypatch)
    found = lens.explain(*SAME[2:], **options)
    assert runs == [2]  # two texts, and no reference
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    runs.clear()
    # Another layer, another reference and another lens know nothing of it.
    lens.explain(*SAME[:2], layer=2, rule=GaussLegendre(2))
    lens.explain(*SAME[:2], reference="mask", **options)
    assert runs == [1, 2, 1, 2]
    other = lens.fork()
    forked = heads_of(other, monkeypatch)
    other.explain(*SAME[:2], **options)
    assert forked[-2:] == [1, 2]  # behind those of its probe


def step(model: Any) -> None:
    for parameter in model.parameters():
        parameter.grad = parameter.detach().clone()
    torch.optim.SGD(model.parameters(), lr=0.1).step()


def write_through_data(model: Any) -> None:
    for parameter in model.parameters():
        parameter.data.mul_(1.1)


def load_others(model: Any) -> None:
    model.load_state_dict(zoo.encoder(seed=5).state_dict())


@pytest.mark.parametrize("change", [step, write_through_data, load_others])
def test_references_are_forgotten_when_the_weights_change(change):
    model = zoo.encoder()
    lens = Lens(model)
    options: Any = {"layer": 1, "rule": GaussLegendre(2)}
    before = lens.explain(*SAME[:2], **options)
    change(model)
    found, expected = lens.explain(*SAME[:2], **options), Lens(model).explain(*SAME[:2], **options)
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    assert np.abs(found.matrix - before.matrix).max() > 1e-4


def test_references_of_a_model_with_hooks_run_every_time(monkeypatch):
    model: Any = zoo.encoder()
    strength = [0.0]
    layers_of(model, "bert")[0].register_forward_hook(
        lambda _, __, output: (output[0] if isinstance(output, tuple) else output) + strength[0]
    )
    lens = Lens(model)
    options: Any = {"layer": 2, "rule": GaussLegendre(2)}
    plain = lens.explain(*SAME[:2], **options)
    strength[0] = 1.0
    found, expected = lens.explain(*SAME[:2], **options), Lens(model).explain(*SAME[:2], **options)
    np.testing.assert_array_equal(found.matrix, expected.matrix)
    assert np.abs(found.matrix - plain.matrix).max() > 1e-4


def test_hooks_that_change_the_model_are_part_of_it():
    model: Any = zoo.encoder("bert")
    plain = own(model)
    shift = torch.linspace(-1, 1, zoo.HIDDEN)

    def steer(_: nn.Module, __: Any, output: Any) -> Any:
        if isinstance(output, tuple):
            return (output[0] + shift.to(output[0].dtype), *output[1:])
        return output + shift.to(output.dtype)

    layers_of(model, "bert")[1].register_forward_hook(steer)
    for layer in range(L + 1):
        e = Lens(model, dtype="float64").explain(A, B, layer=layer)
        assert e.score == pytest.approx(own(model), abs=2e-6)
    assert abs(own(model) - plain) > 1e-3


# Numbers.


@pytest.mark.parametrize("dtype", [torch.float16, torch.bfloat16])
@pytest.mark.parametrize("family", ["bert", "mpnet", "modernbert", "t5", "qwen3"])
def test_half_precision_is_computed_in_float32(family, dtype):
    model = zoo.encoder(family).to(dtype)
    upcast = copy.deepcopy(model).float()
    e = Lens(model).explain(A, B, layer=1, tol=1e-2)
    assert e.score == pytest.approx(own(upcast), abs=2e-6)
    assert abs(e.score - own(zoo.encoder(family))) > 1e-6  # the weights were rounded
    assert {p.dtype for p in model.parameters()} == {dtype}


@pytest.mark.parametrize("family", families("bert", "t5", "modernbert"))
def test_eager_attention(family, tmp_path: Path):
    zoo.encoder(family).save_pretrained(str(tmp_path), create_model_card=False)
    model: Any = SentenceTransformer(str(tmp_path), device="cpu", model_kwargs={"attn_implementation": "eager"})
    assert model[0].auto_model.config._attn_implementation == "eager"
    expected, found = (Lens(m).explain(A, B, layer=1, rule=GaussLegendre(4)) for m in (zoo.encoder(family), model))
    assert model[0].auto_model.config._attn_implementation == "eager"
    np.testing.assert_allclose(found.matrix, expected.matrix, atol=1e-5)
    assert found.score == pytest.approx(own(model), abs=2e-6)


def test_weights_that_are_not_numbers():
    model: Any = zoo.encoder()
    layers_of(model, "bert")[1].output.dense.weight.data[3, 4] = float("nan")
    with pytest.raises(NumericalError, match=r"layer\.1\..*output\.dense\.weight"):
        Lens(model).explain(A, B)


@pytest.mark.parametrize("name", ["euclidean", "manhattan"])
def test_distances_are_refused_with_a_remedy(name):
    model = zoo.encoder(similarity=name)
    with pytest.raises(ModelError, match=rf"{name}.*measure='cosine'"):
        Lens(model).explain(A, B)
    e = Lens(model).explain(A, B, measure="cosine")
    assert e.score == pytest.approx(own(zoo.encoder()), abs=2e-6)
    assert model.similarity_fn_name == name


# Modes and threads.

MODES: dict[str, Any] = {
    "inference": torch.inference_mode,
    "no_grad": torch.no_grad,
    "grad": torch.enable_grad,
    "autocast": lambda: torch.autocast("cpu", dtype=torch.bfloat16),
}


@pytest.mark.parametrize("options", [{}, {"dense": 4}], ids=["forward", "reverse"])
@pytest.mark.parametrize("dtype", ["float32", pytest.param("float64", marks=pytest.mark.slow)])
@pytest.mark.parametrize("mode", MODES)
def test_the_mode_of_the_caller_does_not_matter(mode, dtype, options):
    expected = Lens(zoo.encoder(**options), dtype=dtype).explain(A, B, rule=GaussLegendre(4))
    for inside in ("all", "lens", "explain"):
        with MODES[mode]() if inside == "all" else nullcontext():
            model = copy.deepcopy(zoo.encoder(**options))
        with MODES[mode]() if inside != "explain" else nullcontext():
            lens = Lens(model, dtype=dtype)
        with MODES[mode]() if inside != "lens" else nullcontext():
            found = lens.explain(A, B, rule=GaussLegendre(4))
        np.testing.assert_allclose(found.matrix, expected.matrix, atol=1e-6)
        assert found.score == pytest.approx(expected.score, abs=1e-6)


def test_weights_made_in_inference_mode():
    with torch.inference_mode():
        model = zoo.encoder(dense=4)
        for parameter in model.parameters():
            parameter.data = parameter.data * 1
    assert all(parameter.is_inference() for parameter in model.parameters())
    e = Lens(model).explain(A, B)
    assert e.score == pytest.approx(own(zoo.encoder(dense=4)), abs=1e-6)


@pytest.mark.parametrize("family", ["bert", pytest.param("t5", marks=pytest.mark.slow)])
def test_one_lens_in_several_threads(family):
    # Texts of different lengths: T5's position bias must stay with its text.
    lens = Lens(zoo.encoder(family), dtype="float64")
    pairs = [(a, b) for a in zoo.TEXTS[:4] for b in zoo.TEXTS[4:]]

    def explain(pair: tuple[str, str]) -> np.ndarray:
        return lens.explain(*pair, layer=1, rule=GaussLegendre(2)).matrix

    expected = [explain(pair) for pair in pairs]
    with ThreadPoolExecutor(4) as pool:
        for found, alone in zip(pool.map(explain, pairs), expected, strict=True):
            np.testing.assert_allclose(found, alone, atol=1e-12)


@pytest.mark.slow
def test_lenses_and_encoding_in_several_threads():
    # Forward mode and the choice of attention kernels are the process's, a tokenizer's settings its own: all shared.
    model = zoo.encoder("bert")
    lenses = [Lens(model), Lens(zoo.encoder("roberta")), Lens(model, dtype="float64")]
    expected = [lens.explain(A, B, rule=GaussLegendre(2)).score for lens in lenses]
    embedding, before = model.encode(A), snapshot(model)["kernels"]

    def work(turn: int) -> float:
        if turn % 4 == 3:
            return float(np.abs(model.encode([A, "much longer " * 99])[0] - embedding).max())
        lens = lenses[turn % 4]
        return lens.explain(A, B, rule=GaussLegendre(2)).score - expected[turn % 4]

    with ThreadPoolExecutor(4) as pool:
        assert max(map(abs, pool.map(work, range(64)))) < 1e-5
    assert snapshot(model)["kernels"] == before


# Texts.

ODD = {
    "special": "The [SEP] coffee </s> is <s> not [CLS] good.",
    "spaces": "  The coffee   is good. \t",
    "lines": "The coffee\nis not\r\n\r\ngood.\n",
    "padding": "good [PAD] <pad> coffee",
    "invisible": "The\u200b cof\u00adfee is na\u0308ive 🙂",
    "one": "a",
}


@pytest.mark.parametrize("name", ODD)
@pytest.mark.parametrize("family", [*families("bert", "t5", "qwen3"), "static"])
def test_odd_texts(family, name):
    model = zoo.static() if family == "static" else zoo.encoder(family)
    text = ODD[name]
    layer = None if family == "static" else 1
    e = Lens(model, dtype="float64").explain(text, B, layer=layer, rule=GaussLegendre(2), level="token")
    assert e.score == pytest.approx(own(model, text), abs=2e-6)
    for unit in e.units_a:
        assert 0 <= unit.start <= unit.end <= len(text)
        assert unit.kind == "special" or text[unit.start : unit.end] in (unit.text, "")
    tokenizer: Any = model.tokenizer
    added = 0 if family == "static" else tokenizer.num_special_tokens_to_add()
    assert sum(unit.kind == "special" for unit in e.units_a) == added  # what is typed is text
    assert len(e.units_a) == len(e.tokens_a) == e.matrix.shape[0]


@pytest.mark.parametrize(("family", "text"), [("bert", "[PAD] [PAD]"), ("t5", "<pad><pad>")])
def test_a_text_that_is_its_own_reference(family, text):
    for layer in range(L + 1):
        e = Lens(zoo.encoder(family), dtype="float64").explain(text, B, layer=layer, tol=1e-2)
        assert not e.matrix.any()
        assert e.gap_a == 0
        assert e.score == pytest.approx(e.base, abs=1e-6)


@pytest.mark.parametrize("text", ["", "  \n", "a \ud800 b", 3, None, ["a"]])
def test_texts_that_cannot_be_read(text):
    with pytest.raises(InputError, match=r"text"):
        Lens(zoo.encoder()).explain(text, B)


@pytest.mark.parametrize("side", ["right", "left"])
@pytest.mark.parametrize("family", ["bert", "roberta", "t5", "qwen3"])
def test_long_texts(family, side):
    model: Any = zoo.encoder(family)
    model.max_seq_length = 12
    model.tokenizer.truncation_side = side
    text = "One good coffee. " * 9
    with pytest.warns(TruncationWarning, match="longer than the model takes"):
        e = Lens(model, dtype="float64").explain(text, B, layer=1, tol=1e-2)
    assert (e.truncated, e.truncated_a, e.truncated_b) == (True, True, False)
    assert len(e.tokens_a) == 12
    assert e.score == pytest.approx(own(model, text), abs=2e-6)
    starts = [unit.start for unit in e.units_a if unit.kind == "text"]
    assert (max(starts) < 60) if side == "right" else (min(starts) > 60)
    assert all(text[unit.start : unit.end] in (unit.text, "") for unit in e.units_a if unit.kind == "text")
    with pytest.raises(InputError, match="longer than the model takes"):
        Lens(model, strict=True).explain(text, B)
    assert not Lens(model, strict=True).explain(A[:10], B, layer=L).truncated
