"""Streams of pairs: read ahead by windows, each text decomposed once, all pairs before a bad one explained."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import pytest

import zoo
from pairlens import (
    InputError,
    Lens,
    NotConverged,
    ReferenceWarning,
)
from pairlens.attribution import decomposer
from pairlens.attribution.decomposer import Decomposer

A, B = "The coffee here is not good.", "This coffee is bad."


@pytest.fixture(scope="module")
def tiny():
    return Lens(zoo.encoder("bert"), dtype="float64")


def test_many_pairs_come_in_order_and_each_text_is_decomposed_once(tiny, monkeypatch):
    texts = [f"{word} {noun} runs" for word in ("a", "the", "one") for noun in ("dog", "cat")]
    pairs = [(x, y) for x in texts for y in texts]
    decomposed: list[str] = []
    inner = Decomposer._decompose

    def counting(self, jobs, read):
        decomposed.extend(job.text for job in jobs)
        return inner(self, jobs, read)

    monkeypatch.setattr(Decomposer, "_decompose", counting)
    found = list(tiny.explain_many(pairs, layer=1, progress=False, window=5))
    assert [(e.text_a, e.text_b) for e in found] == pairs
    assert sorted(decomposed) == sorted(texts)
    alone = tiny.explain(*pairs[7], layer=1)
    assert np.allclose(found[7].matrix, alone.matrix, atol=1e-9)


def test_many_pairs_are_read_lazily(tiny):
    taken = []

    def endless():
        while True:
            taken.append(1)
            yield (A, B)

    stream = tiny.explain_many(endless(), layer=3, progress=False, window=4)
    assert not taken
    next(stream)
    assert len(taken) == 4


def test_texts_of_a_window_are_not_forgotten_for_others_of_it(tiny, monkeypatch):
    monkeypatch.setattr(decomposer, "CACHE_BYTES", 1)
    made = []
    inner = Decomposer._decompose
    monkeypatch.setattr(
        Decomposer,
        "_decompose",
        lambda self, jobs, read: made.extend(job.text for job in jobs) or inner(self, jobs, read),
    )
    pairs = [(A, B) if i % 8 else (A, f"New, the {i}th.") for i in range(80)]
    for _ in tiny.explain_many(pairs, layer=3, progress=False, window=4):
        pass
    assert len(made) == len(set(made)) == 12


def test_what_can_be_read_once_is_read_once(tiny):
    source: Any = [map(str, (A, B)), map(str, (B, A)), ("alone",)]
    stream = tiny.explain_many(iter(source), layer=3, progress=False)
    assert [next(stream).text_a for _ in range(2)] == [A, B]
    with pytest.raises(InputError, match="'alone'"):
        next(stream)


def test_one_bad_text_does_not_part_all_others(monkeypatch):
    sizes = []
    inner = Decomposer._decompose
    monkeypatch.setattr(
        Decomposer, "_decompose", lambda self, jobs, read: sizes.append(len(jobs)) or inner(self, jobs, read)
    )
    lens = Lens(zoo.encoder("bert"), dtype="float64", strict=True)
    pairs = [(A, f"{i} cats.") for i in range(64)]
    pairs[60] = (A, "word " * 999)
    stream = lens.explain_many(pairs, layer=3, progress=False)
    assert [next(stream).text_b for _ in range(60)] == [b for _, b in pairs[:60]]
    with pytest.raises(InputError, match="longer than the model takes"):
        next(stream)
    assert len(sizes) < 20


def test_a_few_pairs_are_warned_of_one_by_one(tiny):
    options: Any = {"layer": 3, "progress": False}
    texts = [f"{i} cats." for i in range(40)]
    for count, told in ((2, 2), (40, 1)):
        with warnings.catch_warnings(record=True) as found:
            warnings.simplefilter("always")
            list(tiny.explain_many([(A, text) for text in texts[:count]], **options))
        assert len({str(own.message) for own in found if own.category is ReferenceWarning}) == told


def test_with_a_window_of_one_the_next_pair_may_depend_on_the_last_explanation(tiny):
    taken = []
    stream = tiny.explain_many((taken.append(1) or (A, B) for _ in range(5)), layer=3, progress=False, window=1)
    assert [len(taken) for _ in stream] == [1, 2, 3, 4, 5]


class Broken(Exception):
    """Something that is not ours."""


@pytest.mark.parametrize("window", [1, 3, 256])
@pytest.mark.parametrize("wrong", ["no pair", "no text", "too long", "not converged", "a model", "the source"])
def test_all_pairs_before_a_bad_one_are_explained(wrong, window, monkeypatch):
    lens = Lens(zoo.encoder("bert"), dtype="float64", strict=True)
    bad = {"no pair": ("a",), "no text": ("a", 5), "too long": ("a", "word " * 999), "not converged": ("a", "A b c.")}
    bad["a model"] = bad["not converged"]
    error = {"not converged": NotConverged, "a model": Broken, "the source": Broken}.get(wrong, InputError)

    def source():
        for i in range(11):
            yield (A, B) if i % 4 else (B, f"{i}")
        if wrong == "the source":
            raise Broken
        yield bad[wrong]
        yield (A, B)

    inner = Decomposer._decompose

    def failing(self, jobs, read):
        if any(job.text == "A b c." for job in jobs):
            raise NotConverged("no", gap=1.0, tol=1e-3) if wrong == "not converged" else Broken
        return inner(self, jobs, read)

    monkeypatch.setattr(Decomposer, "_decompose", failing)
    pairs: Any = source()
    stream = lens.explain_many(pairs, layer=3, progress=False, window=window)
    assert [next(stream).text_b for _ in range(11)] == [B if i % 4 else f"{i}" for i in range(11)]
    with pytest.raises(error):
        next(stream)
