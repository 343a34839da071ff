"""Which computations are captured, and which are kept. That graphs give the same numbers, benchmarks/gpu.py checks."""

import pytest
import torch

from pairlens import graphs
from pairlens.graphs import Graphs, padded


class OnDevice(torch.Tensor):
    """A tensor that says that it is on a CUDA device."""

    is_cuda = True


@pytest.fixture
def captured(monkeypatch):
    """What was captured, by the number of rows."""
    found = []

    def capture(self, function, inputs, size):
        found.append(size)
        return function

    monkeypatch.setattr(Graphs, "_capture", capture)
    monkeypatch.setattr(graphs, "KEPT", 2)
    return found


def run(kept, rows, columns=3):
    x = torch.ones(rows, columns).as_subclass(OnDevice)
    return kept.run("sum", lambda x: (x.sum(1),), [x], padded(rows))[0].tolist()


def test_the_second_time_a_shape_is_captured(captured):
    kept = Graphs()
    for _ in range(3):
        assert run(kept, 4) == [3.0] * 4
    assert captured == [4]


def test_the_one_not_used_for_longest_goes_even_before_it_was_captured(captured):
    kept = Graphs()
    for rows in (1, 2, 3, 1, 3, 1):
        assert run(kept, rows) == [3.0] * rows
    # 1 was forgotten when 3 came, and begins again.
    assert captured == [3, 1]


def test_what_is_not_on_a_device_is_not_captured(captured):
    kept = Graphs()
    for _ in range(3):
        assert kept.run("double", lambda x: (2 * x,), [torch.ones(2)])[0].tolist() == [2.0, 2.0]
    assert captured == []


@pytest.mark.parametrize(("count", "size"), [(1, 1), (2, 2), (5, 6), (9, 12), (16, 16), (17, 24), (100, 128)])
def test_sizes_are_few(count, size):
    assert padded(count) >= count
    assert padded(count) == size
