"""Work that stops where it would wait: each goes on while the others wait, and none is left behind."""

from __future__ import annotations

from collections.abc import Generator
from unittest.mock import Mock

import numpy as np
import pytest
import torch

from pairlens.autodiff.streams import Pending, _Lane, finish, together


def test_the_numbers_arrive_in_float64():
    whole, part = Pending(torch.tensor([True, False]), torch.tensor([0.1, 0.2])).arrays()
    assert whole.tolist() == [True, False]
    assert part.dtype == np.float64
    assert part.tolist() == torch.tensor([0.1, 0.2]).double().tolist()


def test_works_of_different_lengths_go_on_by_turns():
    seen: list[tuple[str, int]] = []

    def work(name: str, steps: int) -> Generator[None, None, str]:
        for step in range(steps):
            seen.append((name, step))
            yield
        return name

    assert together([work("a", 1), work("b", 3), work("c", 0)]) == ["a", "b", "c"]
    assert seen == [("a", 0), ("b", 0), ("b", 1), ("b", 2)]
    assert finish(work("d", 2)) == "d"
    assert together([]) == []


def test_what_is_given_up_is_closed():
    closed: list[str] = []

    def work(name: str, *, fails: bool) -> Generator[None, None, None]:
        try:
            yield
            if fails:
                raise ValueError(name)
            yield
        finally:
            closed.append(name)

    with pytest.raises(ValueError, match="b"):
        together([work("a", fails=False), work("b", fails=True), work("c", fails=False)])
    assert sorted(closed) == ["a", "b", "c"]


def test_a_lane_is_left_as_it_was_entered_even_by_an_error(monkeypatch):
    streams: list[object] = []
    monkeypatch.setattr(torch.cuda, "set_stream", streams.append)
    own, outside, other = (Mock(spec=torch.cuda.Stream) for _ in range(3))
    lane = _Lane(own, outside, other)
    with lane:
        assert streams == [own]
    assert streams == [own, outside, other]
    with pytest.raises(KeyError), lane:
        raise KeyError
    assert streams[3:] == [own, outside, other]
