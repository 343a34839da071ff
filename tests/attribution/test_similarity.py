"""Four treatments of the references, one identity, on contributions made by hand."""

from __future__ import annotations

import copy
import gc
import itertools
import pickle
import warnings
import weakref
from dataclasses import fields, replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from handmade import DIM, contributions, sampled, space_of
from pairlens import Explanation, InputError, ReferenceWarning
from pairlens.attribution.products import PROJECTIONS
from pairlens.attribution.similarity import MEASURES, TREATMENTS, _cache, explain, explain_all


@settings(max_examples=60, deadline=None)
@given(
    st.integers(0, 10_000),
    st.sampled_from(TREATMENTS),
    st.sampled_from(["cosine", "dot"]),
    st.sampled_from([0.0, 1e-3, 0.1]),
)
def test_score_is_the_sum_of_all_terms_and_the_gap_is_bounded(seed, terms, measure, tol):
    space = space_of(terms, measure)
    a, b = contributions(seed, 3, space=space, gap=tol), contributions(seed + 1, 5, space=space, gap=tol)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReferenceWarning)
        e = explain(a, b, reference_terms=terms, measure=measure)
    total = e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum() + e.gap
    assert e.score == pytest.approx(total, abs=1e-12)
    size_a, size_b = (np.linalg.norm(c.embedding - (c.reference if terms == "shift" else 0)) for c in (a, b))
    factor = 1 / (size_a * size_b) if measure == "cosine" else 1.0
    d_a, d_b = np.linalg.norm(a.embedding - a.reference), np.linalg.norm(b.embedding - b.reference)
    v_a, v_b = (d_a, d_b) if terms in ("shift", "ignore") else (size_a, size_b)
    bound = factor * (tol * (d_a * v_b + d_b * v_a) + tol**2 * d_a * d_b)
    assert abs(e.gap) <= bound + 1e-12


@pytest.mark.parametrize("measure", ["cosine", "dot"])
@pytest.mark.parametrize("terms", TREATMENTS)
def test_score_is_the_dot_product_or_cosine_of_the_embeddings(terms, measure):
    space = space_of(terms, measure)
    a, b = contributions(1, space=space), contributions(2, space=space)
    e = explain(a, b, reference_terms=terms, measure=measure)
    one, other = (c.embedding - c.reference if terms == "shift" else c.embedding for c in (a, b))
    expected = one @ other
    if measure == "cosine":
        expected /= np.linalg.norm(one) * np.linalg.norm(other)
    assert e.score == pytest.approx(expected, abs=1e-12)


def test_project_removes_the_plane_of_the_references_and_nothing_else():
    a, b = contributions(1, space="unit"), contributions(2, space="unit")
    e = explain(a, b, reference_terms="project", measure="cosine")
    basis, _ = np.linalg.qr(np.stack([a.reference, b.reference], axis=1))
    projector = np.eye(DIM) - basis @ basis.T
    assert np.allclose(e.matrix, a.values @ projector @ b.values.T, atol=1e-12)
    assert e.base == pytest.approx(a.embedding @ basis @ basis.T @ b.embedding, abs=1e-12)
    assert not e.effects_a.any()


def test_equal_references_remove_one_direction_and_zero_references_none():
    a, b = contributions(1, space="unit"), contributions(2, space="unit")
    same = replace(b, reference=a.reference * 2.0)
    e = explain(a, same, reference_terms="project", measure="cosine")
    direction = a.reference / np.linalg.norm(a.reference)
    projector = np.eye(DIM) - np.outer(direction, direction)
    assert np.allclose(e.matrix, a.values @ projector @ b.values.T, atol=1e-9)
    zero = [contributions(seed, reference="none") for seed in (1, 2)]
    expected = explain(*zero, reference_terms="shift", measure="cosine").matrix
    for terms in TREATMENTS:
        found = explain(*zero, reference_terms=terms, measure="cosine")
        assert np.allclose(found.matrix, expected, atol=1e-12)
        assert found.base == 0
        assert not found.effects_a.any()


def test_keep_reports_every_term():
    a, b = contributions(3, space="unit"), contributions(4, space="unit")
    e = explain(a, b, reference_terms="keep", measure="cosine")
    assert e.base == pytest.approx(a.reference @ b.reference)
    assert np.allclose(e.effects_a, a.values @ b.reference)
    assert np.allclose(e.effects_b, b.values @ a.reference)
    assert np.allclose(e.matrix, a.values @ b.values.T)


def test_a_dot_product_behind_a_final_normalize_is_scaled_to_the_output():
    a, b = contributions(5), contributions(6)
    a, b = (replace(c, output=c.embedding / np.linalg.norm(c.embedding)) for c in (a, b))
    dot = explain(a, b, reference_terms="ignore", measure="dot")
    cosine = explain(a, b, reference_terms="ignore", measure="cosine")
    assert dot.score == pytest.approx(cosine.score, abs=1e-12)
    assert np.allclose(dot.matrix, cosine.matrix, atol=1e-12)


def test_mixing_spaces_or_models_raises():
    unit, raw = contributions(1, space="unit"), contributions(2)
    with pytest.raises(InputError, match="unit"):
        explain(unit, raw, reference_terms="project", measure="cosine")
    with pytest.raises(InputError, match="raw"):
        explain(unit, raw, reference_terms="shift", measure="cosine")
    other = replace(raw, settings={**raw.settings, "model": "n"})
    with pytest.raises(InputError, match="two models"):
        explain(raw, other, reference_terms="shift", measure="cosine")


def test_a_base_above_half_of_the_score_warns():
    a = contributions(1, space="unit")
    heavy = replace(a, values=a.values * 1e-3, reference=a.embedding)
    with pytest.warns(ReferenceWarning, match=r"base = 1\.000, is more than half of the score, 1\.000"):
        explain(heavy, heavy, reference_terms="project", measure="cosine")


@pytest.mark.parametrize(("many", "texts"), [(True, 1), (False, 4)])
def test_large_bases_of_many_pairs_are_warned_about_in_the_same_words(many, texts):
    light = [contributions(seed, space="unit") for seed in range(4)]
    heavy = [replace(c, values=c.values * 1e-3, reference=c.embedding) for c in light]
    options: Any = {"reference_terms": "project", "measure": "cosine", "many": many}
    with pytest.warns(ReferenceWarning, match="more than half") as told:
        list(explain_all(heavy, heavy[1:] + heavy[:1], **options))
    assert len(told) == 4
    assert len({str(warning.message) for warning in told}) == texts


def test_unknown_names_come_with_the_nearest_one():
    a = contributions(1)
    with pytest.raises(InputError, match="Did you mean 'project'"):
        explain(a, a, reference_terms="projct", measure="cosine")


def test_swapping_and_regrouping_keep_the_sums():
    a, b = contributions(1, 3, space="unit"), contributions(2, 5, space="unit")
    e = explain(a, b, reference_terms="keep", measure="cosine")
    back = explain(b, a, reference_terms="keep", measure="cosine")
    swapped = e.swap()
    assert np.allclose(swapped.matrix, back.matrix, atol=1e-15)
    assert np.allclose(swapped.effects_a, back.effects_a)
    assert swapped.text_a == e.text_b
    spans = [(0, 2), (2, 3)]
    coarse = replace(e, text_a="abc", text_b="abcde").at((spans, [(0, 5)]))
    assert coarse.matrix.shape == (2, 1)
    assert coarse.matrix.sum() == pytest.approx(e.matrix.sum())
    assert coarse.effects_a.sum() == pytest.approx(e.effects_a.sum())
    assert [u.text for u in coarse.units_a] == ["ab", "c"]


def test_top_is_by_magnitude_and_signed():
    e = explain(contributions(1), contributions(2), reference_terms="shift", measure="dot")
    pairs = e.top(1000)
    assert len(pairs) == e.matrix.size
    assert [abs(p.value) for p in pairs] == sorted((abs(p.value) for p in pairs), reverse=True)
    assert min(p.value for p in pairs) < 0 < max(p.value for p in pairs)
    first = pairs[0]
    assert e.matrix[first.row, first.column] == first.value
    assert (first.a, first.b) == (e.units_a[first.row], e.units_b[first.column])
    with pytest.raises(InputError, match="at least 1"):
        e.top(0)


def test_top_of_no_units_is_empty():
    e = explain(contributions(1), contributions(2), reference_terms="shift", measure="dot")
    bare = replace(e, matrix=e.matrix[:0], entry_error=e.entry_error[:0], units_a=(), effects_a=e.effects_a[:0])
    assert bare.top(3) == []


def test_dot_with_keep_needs_contributions_to_the_output():
    unit, raw = contributions(1, space="unit"), contributions(2)
    behind = replace(raw, output=raw.embedding / np.linalg.norm(raw.embedding))
    with pytest.raises(InputError, match="output"):
        explain(unit, behind, reference_terms="keep", measure="dot")
    assert explain(raw, raw, reference_terms="keep", measure="dot").base == pytest.approx(raw.reference @ raw.reference)


def test_results_cannot_be_changed():
    e = explain(contributions(1), contributions(2), reference_terms="shift", measure="dot")
    for array in (e.matrix, e.swap().matrix, e.effects_a, contributions(1).values):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 5.0


def test_settings_name_both_texts_where_they_differ():
    a, b = contributions(1), contributions(2)
    b = replace(b, settings={**b.settings, "layer": 3, "level": "word"})
    a = replace(a, settings={**a.settings, "layer": 5})
    e = explain(a, b, reference_terms="shift", measure="dot")
    assert e.settings["layer"] == [5, 3]
    assert e.swap().settings["layer"] == [3, 5]
    assert e.swap().settings["level"] == ["word", "token"]


@pytest.mark.parametrize("terms", TREATMENTS)
def test_cached_projections_do_not_change_an_explanation(terms):
    space = space_of(terms, "cosine")
    a = contributions(1, space=space)
    others = [contributions(seed, 3, space=space) for seed in range(2, 2 + PROJECTIONS + 10)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ReferenceWarning)
        for b in (*others, *others[:3]):
            for pair in ((a, b), (b, a)):
                e, alone = (
                    explain(*texts, reference_terms=terms, measure="cosine")
                    for texts in (pair, tuple(map(replace, pair)))
                )
                assert np.array_equal(e.matrix, alone.matrix)
                assert np.array_equal(e.entry_error, alone.entry_error)
                assert (e.score, e.base, e.gap) == (alone.score, alone.base, alone.gap)


def test_swapping_the_texts_transposes_the_matrix():
    a, b = contributions(1, space="unit"), contributions(2, 6, space="unit")
    e, turned = (explain(*pair, reference_terms="project", measure="cosine") for pair in ((a, b), (b, a)))
    assert np.allclose(e.matrix, turned.matrix.T, atol=1e-15)
    assert np.allclose(e.entry_error, turned.entry_error.T, atol=1e-15)


def test_cached_treatments_are_freed_with_their_contributions():
    a, b = contributions(1, space="unit"), contributions(2, space="unit")
    explain(a, b, reference_terms="project", measure="cosine")
    assert a in _cache
    assert b in _cache
    gone = weakref.ref(a)
    del a
    gc.collect()
    assert gone() is None
    assert b in _cache


def same(one: Explanation, other: Explanation) -> bool:
    """Whether all fields of two explanations are the same, bit for bit."""
    pairs = ((getattr(one, f.name), getattr(other, f.name)) for f in fields(Explanation))
    return all(np.array_equal(a, b) if isinstance(a, np.ndarray) else a == b for a, b in pairs)


@pytest.mark.parametrize("make", [contributions, sampled])
@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize("terms", TREATMENTS)
def test_explanations_survive_pickling_copying_and_swapping_twice(terms, measure, make):
    a, b = make(1, space=space_of(terms, measure)), contributions(2, 6, space=space_of(terms, measure))
    e = explain(a, b, reference_terms=terms, measure=measure)
    assert e.settings["reference_terms"] == terms
    for twin in (pickle.loads(pickle.dumps(e)), copy.copy(e), copy.deepcopy(e), e.swap().swap()):
        assert same(twin, e)


def test_score_base_and_gap_are_floats_where_references_are_zero():
    a, b = (contributions(seed, reference="none") for seed in (1, 2))
    e = explain(a, b, reference_terms="project", measure="dot")
    assert (type(e.score), type(e.base), type(e.gap)) == (float, float, float)
    assert e.base == 0


def test_an_explanation_does_not_keep_the_values_it_was_made_of():
    a, b = contributions(1, space="unit"), contributions(2, space="unit")
    kept = explain(a, b, reference_terms="project", measure="cosine")
    gone = weakref.ref(a.values), weakref.ref(b.values)
    del a, b
    gc.collect()
    assert [values() for values in gone] == [None, None]
    assert kept.entry_error.shape == kept.matrix.shape
    assert kept.text_a == "text 1"


@pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")
@pytest.mark.parametrize("terms", TREATMENTS)
@pytest.mark.parametrize("measure", MEASURES)
def test_explain_all_gives_the_explanation_of_every_pair_in_order(terms, measure):
    texts = [
        (sampled if seed % 4 == 3 else contributions)(seed, units=1 + seed % 6, space=space_of(terms, measure))
        for seed in range(8)
    ]
    pairs = list(itertools.permutations(texts, 2))
    firsts, seconds = [a for a, _ in pairs], [b for _, b in pairs]
    together = list(explain_all(firsts, seconds, reference_terms=terms, measure=measure))
    assert len(together) == len(pairs)
    for e, (a, b) in zip(together, pairs, strict=True):
        assert same(e, explain(replace(a), replace(b), reference_terms=terms, measure=measure))


@pytest.mark.parametrize("wrong", ["zero", "model"])
def test_explain_all_yields_the_pairs_before_one_that_cannot_be_explained(wrong):
    texts = [contributions(seed, space="unit") for seed in range(4)]
    zero = replace(texts[0], embedding=texts[0].embedding * 0, reference=texts[0].reference * 0)
    other = replace(texts[0], settings={**texts[0].settings, "model": "n"})
    firsts, seconds = [texts[0], texts[1], texts[0]], [texts[1], texts[2], zero if wrong == "zero" else other]
    stream = explain_all(firsts, seconds, reference_terms="keep", measure="cosine")
    assert [next(stream).text_b for _ in range(2)] == [texts[1].text, texts[2].text]
    with pytest.raises(InputError, match="is zero" if wrong == "zero" else "two models"):
        next(stream)
