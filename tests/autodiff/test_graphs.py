"""Computations that are captured and played again: the same numbers, whatever was there before.

A processor has no graphs to capture. What is put in their place runs the captured function on the graph's own inputs,
which is what a replay does on a device; all else, from the inputs' copies to the padding, is the real thing.
`benchmarks/gpu.py` compares the real graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import zoo
from pairlens import Adaptive, Contributions, GaussLegendre, Lens
from pairlens.attribution.decomposer import Decomposer
from pairlens.autodiff import graphs
from pairlens.model import layers
from pairlens.model.encoder import Encoder
from pairlens.quadrature import planner
from pairlens.quadrature.rules import gauss

PAIRS = [
    ("A man is here.", "The coffee is bad."),
    ("The tea is bad.", "The tea was cold."),
    ("The coffee was hot.", "Coffee is not bad."),
    ("The food is good.", "The tea was hot."),
]
"""Texts of one length, to BERT's tokenizer."""


class Played(graphs._Captured):
    """Stands in for a captured graph where there is no device."""

    def _capture(
        self, whole: Callable[[], tuple[torch.Tensor, ...]], pool: Any
    ) -> tuple[tuple[torch.Tensor, ...], Callable[[], None], None]:
        outputs = whole()

        def replay() -> None:
            for own, new in zip(outputs, whole(), strict=True):
                own.copy_(new)

        return outputs, replay, None


@pytest.fixture
def captured(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(graphs, "_Captured", Played)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(Encoder, "_capturable", lambda self, route: not route.tap.carries)


@pytest.mark.parametrize(
    ("family", "layer", "rule"),
    [
        ("bert", 0, Adaptive(1e-3)),
        ("bert", 1, Adaptive(1e-3)),
        ("mpnet", zoo.LAYERS, GaussLegendre(3)),
        ("qwen3", 1, GaussLegendre(3)),
        ("t5", 1, GaussLegendre(3)),  # whose layers hand on more than states, so that nothing is captured
    ],
)
def test_replays_say_what_the_model_says(captured, family, layer, rule):
    lens, plain = Lens(zoo.encoder(family), dtype="float64"), Lens(zoo.encoder(family), dtype="float64")
    encoder: Any = plain.encoder
    encoder._graphs.enabled = False
    # Run, captured, played again, and all with other texts each time.
    for pair in PAIRS:
        found, expected = (own.explain(*pair, layer=layer, rule=rule) for own in (lens, plain))
        assert found.settings["nodes"] == expected.settings["nodes"]
        # Some families compute in float32 here and there, and a padded batch rounds differently.
        np.testing.assert_allclose(found.matrix, expected.matrix, atol=1e-6 if family == "qwen3" else 1e-11)
    kept = lens.encoder._graphs._kept.values()  # pyright: ignore[reportAttributeAccessIssue]
    assert any(isinstance(graph, Played) for graph in kept) is (family != "t5")


def test_late_layers_are_one_launch_from_tokens_to_contributions(captured):
    lens = Lens(zoo.encoder("bert"), dtype="float64")
    for pair in PAIRS:
        lens.explain(*pair, layer=-1)
    encoder: Any = lens.encoder
    kinds = [name[0] for name, *_ in encoder._graphs._kept]
    # What was looked at on typical texts aside, once and of other lengths.
    assert kinds.count("head and tail") == 1
    assert "sums" not in kinds


def test_what_one_launch_does_not_settle_is_planned(captured, monkeypatch):
    """Habits that are wrong for some texts: those are planned, the others keep what they have."""
    texts = [text for pair in PAIRS for text in pair]

    def decompose(lens: Lens, rule: Any = None) -> list[Contributions]:
        return list(lens.decompose(texts, layer=1, rule=rule, progress=False))

    monkeypatch.setattr(planner, "habit", lambda *_: None)
    planned = decompose(Lens(zoo.encoder("bert"), dtype="float64"))
    mixed = []
    for n in range(1, 9):
        monkeypatch.setattr(planner, "habit", lambda *_, n=n: gauss(n))
        lens = Lens(zoo.encoder("bert"), dtype="float64")
        fixed = decompose(lens, GaussLegendre(n))
        found = [decompose(lens) for _ in range(3)][-1]  # as it is, captured, played
        good = [own.gap <= 1e-3 for own in fixed]
        for own, short, long, enough in zip(found, fixed, planned, good, strict=True):
            expected = short if enough else long
            assert own.settings["nodes"] == expected.settings["nodes"]
            np.testing.assert_allclose(own.values, expected.values, atol=1e-11)
            np.testing.assert_allclose(own.error, expected.error, atol=1e-11)
            assert own.gap == pytest.approx(expected.gap, rel=1e-6)
        mixed.append(0 < sum(good) < len(good))
    assert any(mixed), "no rule was right for some of the texts and wrong for others"


def test_a_fork_of_a_model_whose_layers_hand_on_more_than_states(captured):
    lens = Lens(zoo.encoder("t5"), dtype="float64")
    expected = lens.explain(*PAIRS[0], layer=-1).matrix
    np.testing.assert_allclose(lens.fork().explain(*PAIRS[0], layer=-1).matrix, expected, atol=1e-12)


def test_two_lengths_at_a_time(captured, monkeypatch):
    lens = Lens(zoo.encoder("t5"), dtype="float64")
    pair = zoo.TEXTS[0], zoo.TEXTS[3]
    expected = lens.explain(*pair, layer=1, rule=GaussLegendre(2))
    assert len(expected.tokens_a) != len(expected.tokens_b)
    monkeypatch.setattr(Decomposer, "_beside", lambda self: 2)
    np.testing.assert_array_equal(lens.explain(*pair, layer=1, rule=GaussLegendre(2)).matrix, expected.matrix)
    with pytest.raises(ValueError, match="layer 9 does not exist"):
        lens.explain(*pair, layer=9)
    np.testing.assert_array_equal(lens.explain(*pair, layer=1, rule=GaussLegendre(2)).matrix, expected.matrix)


def sizes_captured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is captured from now on."""
    found: list[int] = []
    plain = Played.__init__

    def noted(self: Any, function: Any, inputs: Any, *rest: Any) -> None:
        found.append(len(inputs[0]))
        plain(self, function, inputs, *rest)

    monkeypatch.setattr(Played, "__init__", noted)
    return found


def double(kept: graphs.Graphs, size: int) -> None:
    _, found = kept.run("double", lambda x: (2 * x,), [torch.arange(float(size))], wanted=1)
    assert found.arrays()[0].tolist() == [2 * i for i in range(size)]


def test_the_second_time_a_shape_is_captured(captured, monkeypatch):
    sizes, kept = sizes_captured(monkeypatch), graphs.Graphs(torch.device("cpu"))
    for _ in range(3):
        double(kept, 4)
    assert sizes == [4]


def test_the_one_not_used_for_longest_goes_even_before_it_was_captured(captured, monkeypatch):
    monkeypatch.setattr(graphs, "KEPT", 2)
    sizes, kept = sizes_captured(monkeypatch), graphs.Graphs(torch.device("cpu"))
    for size in (1, 2, 3, 1, 3, 1):
        double(kept, size)
    # 1 was forgotten when 3 came, and begins again.
    assert sizes == [3, 1]
    assert len(kept._kept) == 2


def test_what_cannot_be_captured_runs_as_it_is(captured, monkeypatch):
    def refuse(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(Played, "_capture", refuse)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    kept = graphs.Graphs(torch.device("cpu"))
    for value in (1.0, 2.0, 3.0):
        # Each time another function by the same name: none is held on to.
        (found,), _ = kept.run("add", lambda x, value=value: (x + value, x), [torch.zeros(1)], wanted=1)
        assert found.item() == value


@pytest.mark.parametrize(("count", "size"), [(1, 1), (2, 2), (5, 6), (9, 12), (16, 16), (17, 24), (100, 128)])
def test_sizes_are_few_and_large_enough(count, size):
    assert graphs.padded(count) == size
    assert graphs.padded(count, 32) == max(32, size)
    assert len({graphs.padded(i) for i in range(1, 1025)}) < 40


def test_masks_that_models_make_for_captures_alone_are_left_out(monkeypatch):
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


def test_plain_passes_leave_nothing_behind():
    lens = Lens(zoo.encoder("bert"))
    encoder: Any = lens.encoder
    tap = encoder.route(None).tap
    lens.explain("One two.", "Three four.", method="occlusion")
    kept = len(tap._absent)
    for i in range(3):
        lens.explain(f"One {i} two.", "Three four.", method="occlusion")
    assert len(tap._absent) == kept
