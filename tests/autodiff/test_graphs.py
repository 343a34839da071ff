"""Replays of CUDA graphs give the same numbers as plain runs.

CPUs have no graphs. `Replayed` takes the place of a captured graph: it runs the function on the graph's own inputs, as
a replay does on a device. Everything else, from the copies of inputs to the padding, is the code that runs on devices.
`benchmarks/gpu.py` compares the real graphs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import torch

import zoo
from pairlens import Adaptive, GaussLegendre, Lens
from pairlens.autodiff import graphs
from pairlens.model import layers
from pairlens.model.encoder import Encoder

PAIRS = [
    ("A man is here.", "The coffee is bad."),
    ("The tea is bad.", "The tea was cold."),
    ("The coffee was hot.", "Coffee is not bad."),
    ("The food is good.", "The tea was hot."),
]
"""Texts of one length, to BERT's tokenizer."""


class Replayed(graphs._Captured):
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
    monkeypatch.setattr(graphs, "_Captured", Replayed)
    monkeypatch.setattr(torch.cuda, "graph_pool_handle", lambda: None)
    monkeypatch.setattr(Encoder, "_capturable", lambda self, route: not route.tap.carries)


@pytest.mark.parametrize(
    ("family", "layer", "rule"),
    [
        ("bert", 0, Adaptive(1e-3)),
        ("bert", 1, Adaptive(1e-3)),
        ("mpnet", zoo.LAYERS, GaussLegendre(3)),
        ("qwen3", 1, GaussLegendre(3)),
        ("t5", 1, GaussLegendre(3)),  # Layers hand on more than states: nothing is captured.
    ],
)
def test_replays_equal_plain_runs(captured, family, layer, rule):
    lens, plain = Lens(zoo.encoder(family), dtype="float64"), Lens(zoo.encoder(family), dtype="float64")
    ours, theirs = (each.encoder for each in (lens, plain))
    assert isinstance(ours, Encoder)
    assert isinstance(theirs, Encoder)
    theirs.graphs.enabled = False
    # Run, captured, replayed: each time with other texts.
    for pair in PAIRS:
        replayed, expected = (each.explain(*pair, layer=layer, rule=rule) for each in (lens, plain))
        assert replayed.settings["nodes"] == expected.settings["nodes"]
        # Some families compute in float32 here and there, and a padded batch rounds differently.
        np.testing.assert_allclose(replayed.matrix, expected.matrix, atol=1e-6 if family == "qwen3" else 1e-11)
    kept = ours.graphs._kept.values()
    assert any(isinstance(graph, Replayed) for graph in kept) is (family != "t5")


def test_fork_works_where_layers_hand_on_more_than_states(captured):
    lens = Lens(zoo.encoder("t5"), dtype="float64")
    expected = lens.explain(*PAIRS[0], layer=-1).matrix
    np.testing.assert_allclose(lens.fork().explain(*PAIRS[0], layer=-1).matrix, expected, atol=1e-12)


def test_batches_of_two_lengths_run_beside_each_other(captured, monkeypatch):
    lens = Lens(zoo.encoder("t5"), dtype="float64")
    pair = zoo.TEXTS[0], zoo.TEXTS[3]
    expected = lens.explain(*pair, layer=1, rule=GaussLegendre(2))
    assert len(expected.tokens_a) != len(expected.tokens_b)
    monkeypatch.setattr(Encoder, "concurrent_batches", 2)
    np.testing.assert_array_equal(lens.explain(*pair, layer=1, rule=GaussLegendre(2)).matrix, expected.matrix)
    with pytest.raises(ValueError, match="layer 9 does not exist"):
        lens.explain(*pair, layer=9)
    np.testing.assert_array_equal(lens.explain(*pair, layer=1, rule=GaussLegendre(2)).matrix, expected.matrix)


def sizes_captured(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The sizes of what is captured from now on."""
    found: list[int] = []
    plain = Replayed.__init__

    def noted(self: Any, function: Any, inputs: Any, *rest: Any) -> None:
        found.append(len(inputs[0]))
        plain(self, function, inputs, *rest)

    monkeypatch.setattr(Replayed, "__init__", noted)
    return found


def double(kept: graphs.Graphs, size: int) -> None:
    _, found = kept.run("double", lambda x: (2 * x,), [torch.arange(float(size))], wanted=1)
    assert found.arrays()[0].tolist() == [2 * i for i in range(size)]


def test_a_shape_is_captured_the_second_time(captured, monkeypatch):
    sizes, kept = sizes_captured(monkeypatch), graphs.Graphs(torch.device("cpu"))
    for _ in range(3):
        double(kept, 4)
    assert sizes == [4]


def test_the_least_recently_used_graph_is_dropped(captured, monkeypatch):
    monkeypatch.setattr(graphs, "KEPT", 2)
    sizes, kept = sizes_captured(monkeypatch), graphs.Graphs(torch.device("cpu"))
    for size in (1, 2, 3, 1, 3, 1):
        double(kept, size)
    # 1 was forgotten when 3 came, and begins again.
    assert sizes == [3, 1]
    assert len(kept._kept) == 2


def test_a_function_that_cannot_be_captured_runs_plainly(captured, monkeypatch):
    def refuse(*_: Any) -> None:
        raise RuntimeError("operation not permitted when stream is capturing")

    monkeypatch.setattr(Replayed, "_capture", refuse)
    monkeypatch.setattr(torch.cuda, "synchronize", lambda: None)
    kept = graphs.Graphs(torch.device("cpu"))
    for value in (1.0, 2.0, 3.0):
        # Each time another function by the same name: none is held on to.
        (found,), _ = kept.run("add", lambda x, value=value: (x + value, x), [torch.zeros(1)], wanted=1)
        assert found.item() == value


@pytest.mark.parametrize(("count", "size"), [(1, 1), (2, 2), (5, 6), (9, 12), (16, 16), (17, 24), (100, 128)])
def test_padded_sizes_are_few_and_large_enough(count, size):
    assert graphs._padded_count(count, 1) == size
    assert graphs._padded_count(count, 32) == max(32, size)
    assert len({graphs._padded_count(i, 1) for i in range(1, 1025)}) < 40


def test_masks_made_only_during_capture_are_left_out(monkeypatch):
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


def test_plain_passes_leave_no_records():
    lens = Lens(zoo.encoder("bert"))
    encoder: Any = lens.encoder
    tap = encoder.route(None).tap
    lens.explain("One two.", "Three four.", method="occlusion")
    kept = len(tap._absent)
    for i in range(3):
        lens.explain(f"One {i} two.", "Three four.", method="occlusion")
    assert len(tap._absent) == kept
