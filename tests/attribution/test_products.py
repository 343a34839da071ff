"""Pairs whose products are made together come out as they would alone."""

from __future__ import annotations

import itertools
import random
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from handmade import contributions, sampled, space_of
from pairlens import Contributions, Explanation, InputError
from pairlens.attribution import products, treatments
from pairlens.attribution.side import MEASURES, TREATMENTS, side
from pairlens.attribution.treatments import explain, explain_all

REFERENCES = 5


def texts(count: int, space: str) -> list[Contributions]:
    """Texts of 1 to 6 units, every fourth one sampled, with few references; one of them is next to parallel to another.

    Where the space has such a thing, one is zero.
    """
    made = [
        (sampled if seed % 4 == 3 else contributions)(seed, units=1 + seed % 6, space=space) for seed in range(count)
    ]
    starts = [own.reference for own in made[:REFERENCES]]
    starts[2] = starts[1] + 1e-9 * starts[0]
    if space == "raw":
        starts[3] = starts[3] * 0
    return [replace(own, reference=starts[place % REFERENCES]) for place, own in enumerate(made)]


def patterns(some: Sequence[Contributions]) -> dict[str, list[tuple[Contributions, Contributions]]]:
    """Pairs as users list them."""
    every = list(itertools.combinations(some, 2))
    shuffled = random.Random(0).sample(every, len(every))
    return {
        "all pairs": every,
        "each with each": list(itertools.product(some, some)),
        "turned": [(b, a) for a, b in every],
        "shuffled": shuffled,
        "few": shuffled[:7],
        "twice": every[:20] * 2,
        "one with all": [(some[0], b) for b in some],
        "all with one": [(a, some[0]) for a in some],
        "none": [],
    }


def columns(pairs: Iterable[tuple[Any, Any]]) -> tuple[list[Any], list[Any]]:
    """The first and the second texts of pairs."""
    firsts, seconds = zip(*pairs, strict=True)
    return list(firsts), list(seconds)


def check_same(one: Explanation, other: Explanation) -> None:
    """Two explanations of one pair agree, but for the last bits."""
    assert one.score == other.score
    assert (one.text_a, one.text_b) == (other.text_a, other.text_b)
    assert one.base == pytest.approx(other.base, rel=1e-12, abs=1e-13)
    assert one.gap == pytest.approx(other.gap, rel=1e-12, abs=1e-12)
    assert one.matrix.flags.c_contiguous
    assert not one.matrix.flags.writeable
    for name in ("matrix", "effects_a", "effects_b", "entry_error"):
        rough = name == "entry_error"  # of sampled texts it is made in single precision
        rtol, atol = (1e-5, 1e-6) if rough else (1e-12, 1e-13)
        np.testing.assert_allclose(getattr(one, name), getattr(other, name), rtol=rtol, atol=atol, err_msg=name)


@pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")
@pytest.mark.parametrize("pattern", patterns([]).keys())
@pytest.mark.parametrize("terms", TREATMENTS)
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(("tall", "wide"), [(products.TALL, products.WIDE), (3, 2)])
def test_together_as_alone(terms, measure, pattern, tall, wide, monkeypatch):
    monkeypatch.setattr(products, "TALL", tall)
    monkeypatch.setattr(products, "WIDE", wide)
    pairs = patterns(texts(31, space_of(terms, measure)))[pattern]
    options: Any = {"reference_terms": terms, "measure": measure}
    together = list(explain_all([a for a, _ in pairs], [b for _, b in pairs], **options))
    assert len(together) == len(pairs)
    for one, pair in zip(together, pairs, strict=True):
        check_same(one, explain(*pair, **options))


def test_the_check_of_sameness_can_fail():
    a, b, c, *_ = texts(REFERENCES, "raw")
    one, other = (
        explain(a, second, reference_terms="keep", measure="dot") for second in (b, replace(b, values=b.values + 1e-9))
    )
    check_same(one, one)
    for wrong in (other, explain(a, c, reference_terms="keep", measure="dot")):
        with pytest.raises(AssertionError):
            check_same(one, wrong)


@pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")
@pytest.mark.parametrize("units", [5, 40, 90])
def test_together_as_alone_where_stacks_are_large(units):
    """Products are made in other ways then."""
    some = [contributions(seed, units + seed % 3, space="unit", dim=256) for seed in range(24)]
    some = [replace(own, reference=some[place % 2].reference) for place, own in enumerate(some)]
    options: Any = {"reference_terms": "project", "measure": "cosine"}
    for pairs in (list(itertools.product(some, some)), list(itertools.product(some, some[:5]))):
        together = list(explain_all(*columns(pairs), **options))
        for one, pair in zip(together, pairs, strict=True):
            alone = explain(*pair, **options)
            np.testing.assert_allclose(one.matrix, alone.matrix, rtol=1e-11, atol=1e-14)
            assert one.base == pytest.approx(alone.base, abs=1e-13)
            assert one.matrix.base is None or one.matrix.base.size == one.matrix.size


def test_texts_with_the_same_partners_are_stacked_and_others_are_not(monkeypatch):
    some = [side(own, "project", "cosine") for own in texts(30, "unit")]
    sizes: list[tuple[int, int]] = []
    inner = products._stacked

    def counting(partners, insides, others, turned):
        sizes.append((len(partners), len(others)))
        return inner(partners, insides, others, turned)

    monkeypatch.setattr(products, "_stacked", counting)
    for pairs in (itertools.product(some[:4], some), itertools.product(some, some[:4])):
        sizes.clear()
        products.products(*columns(pairs))
        assert sizes == [(4, 6)] * REFERENCES
    sizes.clear()
    products.products([some[0], some[1]], [some[1], some[2]])
    assert sizes == []


def test_long_texts_are_not_stacked(monkeypatch):
    stacked: list[int] = []
    inner = products._stacked
    monkeypatch.setattr(products, "_stacked", lambda *args: stacked.append(1) or inner(*args))
    short = [contributions(seed, 4, dim=64) for seed in range(3)]
    long = [contributions(seed, 1 + products.LONG, dim=64) for seed in range(3)]
    for firsts, seconds, times in ((short, long, 0), (long, short, 0), (long, long, 0), (short, short, 1)):
        stacked.clear()
        list(explain_all(*columns(itertools.product(firsts, seconds)), reference_terms="keep", measure="dot"))
        assert len(stacked) == times


@pytest.mark.parametrize("few", [20, 3])
def test_a_matrix_that_is_kept_keeps_no_others(few):
    some = [side(own, "project", "cosine") for own in texts(20, "unit")]
    for pairs in (itertools.product(some[:few], some), itertools.product(some, some[:few])):
        for matrix in products.products(*columns(pairs)).matrices:
            assert matrix.base is None or matrix.base.size == matrix.size


def test_matrices_of_long_texts_are_not_all_made_at_once(monkeypatch):
    monkeypatch.setattr(treatments, "ENTRIES", 100)
    entries: list[int] = []
    inner = treatments.products

    def counting(firsts, seconds):
        found = inner(firsts, seconds)
        entries.append(sum(matrix.size for matrix in found.matrices))
        return found

    monkeypatch.setattr(treatments, "products", counting)
    some = [contributions(seed, units, space="unit") for seed, units in enumerate((2, 30, 3, 4, 12, 5))]
    pairs = list(itertools.product(some, some))
    stream = explain_all(*columns(pairs), reference_terms="keep", measure="cosine")
    next(stream)
    assert len(entries) == 1
    shapes = [(2, 2), *(e.matrix.shape for e in stream)]
    assert shapes == [(len(a.values), len(b.values)) for a, b in pairs]
    largest = [size for size in entries if size > 100]
    assert sorted(largest) == sorted(
        len(a.values) * len(b.values) for a, b in pairs if len(a.values) * len(b.values) > 100
    )


@pytest.mark.parametrize("wrong", ["zero", "model"])
def test_what_comes_before_a_pair_that_cannot_be_explained_comes(wrong):
    some = texts(5, "unit")
    zero = replace(some[0], embedding=some[0].embedding * 0, reference=some[0].reference * 0)
    other = replace(some[0], settings={**some[0].settings, "model": "n"})
    pairs = [*itertools.combinations(some, 2), (some[0], zero if wrong == "zero" else other), (some[0], some[1])]
    stream = explain_all(*columns(pairs), reference_terms="keep", measure="cosine")
    for a, b in pairs[:-2]:
        e = next(stream)
        assert (e.text_a, e.text_b) == (a.text, b.text)
    with pytest.raises(InputError, match="is zero" if wrong == "zero" else "two models"):
        next(stream)
