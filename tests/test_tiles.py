"""Pairs whose products are made together come out as they would alone."""

from __future__ import annotations

import itertools
import random
import warnings
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from handmade import contributions, sampled, space_of
from pairlens import Contributions, InputError, ReferenceWarning, similarity, tiles
from pairlens.side import TREATMENTS, side
from pairlens.similarity import explain, explain_all

REFERENCES = 3


def texts(count: int, space: str) -> list[Contributions]:
    """Texts of 2 to 6 units with one of three references; the third is next to parallel to the second."""
    made = [contributions(seed, 2 + seed % 5, space=space) for seed in range(count)]
    starts = [made[0].reference, made[1].reference, made[1].reference * (1 + 1e-9)]
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


@pytest.mark.parametrize("pattern", patterns([]).keys())
@pytest.mark.parametrize("terms", TREATMENTS)
@pytest.mark.parametrize(("tall", "wide"), [(tiles.TALL, tiles.WIDE), (3, 2)])
def test_together_as_alone(terms, pattern, tall, wide, monkeypatch):
    monkeypatch.setattr(tiles, "TALL", tall)
    monkeypatch.setattr(tiles, "WIDE", wide)
    pairs = patterns(texts(23, space_of(terms, "cosine")))[pattern]
    options = {"reference_terms": terms, "measure": "cosine"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReferenceWarning)
        together = list(explain_all([a for a, _ in pairs], [b for _, b in pairs], **options))
        alone = [explain(a, b, **options) for a, b in pairs]
    assert len(together) == len(pairs)
    for one, other in zip(together, alone, strict=True):
        assert one.score == other.score
        assert (one.text_a, one.text_b) == (other.text_a, other.text_b)
        assert one.base == pytest.approx(other.base, abs=1e-14)
        assert one.gap == pytest.approx(other.gap, abs=1e-13)
        for name in ("matrix", "effects_a", "effects_b", "entry_error"):
            np.testing.assert_allclose(getattr(one, name), getattr(other, name), atol=1e-14, err_msg=name)
        assert not one.matrix.flags.writeable


def test_together_sampled_texts_have_the_errors_they_have_alone():
    some = [sampled(seed, "unit") for seed in range(6)]
    pairs = list(itertools.product(some, some))
    options = {"reference_terms": "project", "measure": "cosine"}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReferenceWarning)
        together = list(explain_all([a for a, _ in pairs], [b for _, b in pairs], **options))
        for e, pair in zip(together, pairs, strict=True):
            np.testing.assert_allclose(e.entry_error, explain(*pair, **options).entry_error, rtol=1e-5)


def test_texts_with_the_same_partners_are_stacked_and_others_are_not(monkeypatch):
    some = [side(own, "project", "cosine") for own in texts(30, "unit")]
    sizes: list[tuple[int, int]] = []
    for name in ("_stacked", "_alone"):
        inner = getattr(tiles, name)
        monkeypatch.setattr(
            tiles, name, lambda *args, inner=inner: sizes.append((len(args[0]), len(args[2]))) or inner(*args)
        )
    tiles.products(*columns(itertools.product(some[:4], some)))
    assert sizes == [(4, 10)] * REFERENCES
    sizes.clear()
    tiles.products(*columns(itertools.product(some, some[:4])))
    assert sizes == [(4, 10)] * REFERENCES
    sizes.clear()
    tiles.products([some[0]], [some[1]])
    assert sizes == [(1, 1)]


@pytest.mark.parametrize("few", [20, 3])
def test_a_matrix_that_is_kept_keeps_no_others(few):
    some = [side(own, "project", "cosine") for own in texts(20, "unit")]
    for pairs in (itertools.product(some[:few], some), itertools.product(some, some[:few])):
        for matrix in tiles.products(*columns(pairs)).matrices:
            assert matrix.base is None or matrix.base.size == matrix.size


def test_matrices_of_long_texts_are_not_all_made_at_once(monkeypatch):
    monkeypatch.setattr(similarity, "ENTRIES", 100)
    entries: list[int] = []
    inner = similarity.products

    def counting(firsts, seconds):
        found = inner(firsts, seconds)
        entries.append(sum(matrix.size for matrix in found.matrices))
        return found

    monkeypatch.setattr(similarity, "products", counting)
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
