"""The integral: completeness, forward = reverse = finite differences, chunking changes nothing, errors are honest."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch
from hypothesis import given, settings
from hypothesis import strategies as st

import pairlens
from pairlens import Adaptive, GaussLegendre, InputError, NotConverged, NumericalError, Riemann
from pairlens.autodiff.modes import differentiable
from pairlens.quadrature.integrate import integrate
from pairlens.quadrature.paths import Problems, forward, reverse

TOKENS, WIDTH, DIM = 5, 4, 6


def network(seed: int = 0, kinks: bool = False):
    """A small random encoder of states (n, TOKENS, WIDTH) to (n, DIM), with attention-like mixing."""
    generator = torch.Generator().manual_seed(seed)

    def draw(*shape):
        return torch.randn(*shape, generator=generator, dtype=torch.float64)

    query, inner, outer = draw(WIDTH, WIDTH), draw(WIDTH, 8), draw(8, DIM)

    def f(h):
        attention = torch.softmax(h @ query @ h.transpose(-1, -2) / 2, dim=-1)
        mixed = attention @ h @ inner
        return ((torch.relu(mixed) if kinks else torch.tanh(mixed)) @ outer).mean(1)

    return f


def problems(seed: int = 0, count: int = 2, groups: int = TOKENS, kinks: bool = False, **options) -> Problems:
    generator = torch.Generator().manual_seed(seed + 100)
    x, r = torch.randn(2, count, TOKENS, WIDTH, generator=generator, dtype=torch.float64)
    f = network(seed, kinks)
    labels = (torch.arange(TOKENS) % groups).expand(count, TOKENS)[..., None]
    cost = options.pop("cost", 1000)
    return Problems(lambda h, rows: f(h), x, r, labels, (groups,) * count, cost, **options)


def solve(p: Problems, rule):
    with differentiable():
        return integrate(p, rule)


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000), st.sampled_from([1e-3, 1e-6]))
def test_contributions_add_up_to_what_they_promise(seed, tol):
    for integral in solve(problems(seed), Adaptive(tol)):
        target = integral.embedding - integral.reference
        gap = np.linalg.norm(integral.values.sum(0) - target) / np.linalg.norm(target)
        assert gap == pytest.approx(integral.gap, abs=1e-15)
        assert gap <= tol


@settings(max_examples=15, deadline=None)
@given(st.integers(0, 10_000))
def test_forward_is_reverse_is_finite_differences(seed):
    p = problems(seed, count=1)
    rows, alphas = torch.zeros(3, dtype=torch.long), np.array([0.1, 0.5, 0.9])
    with differentiable():
        forwards, backwards = forward(p, rows, alphas, TOKENS), reverse(p, rows, alphas, TOKENS)
        step, delta = 1e-6, p.x[0] - p.r[0]
        points = p.points(rows, alphas)
        for group in range(TOKENS):
            tangent = torch.zeros_like(delta)
            tangent[group] = delta[group]
            difference = (p.function(points + step * tangent, rows) - p.function(points - step * tangent, rows)) / 2
            assert torch.allclose(forwards[:, group], difference / step, atol=1e-7)
    assert torch.allclose(forwards, backwards, atol=1e-12)


def test_more_groups_than_dimensions_go_backward_with_the_same_result():
    p = problems(3, count=2)
    every = torch.arange(TOKENS * WIDTH).view(1, TOKENS, WIDTH).expand(2, TOKENS, WIDTH)
    fine = replace(p, labels=every, groups=(TOKENS * WIDTH,) * 2)
    assert TOKENS * WIDTH > DIM
    for coarse, detailed in zip(solve(p, GaussLegendre(9)), solve(fine, GaussLegendre(9)), strict=True):
        regrouped = detailed.values.reshape(TOKENS, WIDTH, DIM).sum(1)
        assert np.allclose(regrouped, coarse.values, atol=1e-12)


@settings(max_examples=10, deadline=None)
@given(st.integers(1, 40), st.integers(1, 7))
def test_chunking_and_batching_change_nothing(budget, groups):
    groups = min(groups, TOKENS)
    whole = solve(problems(7, count=3, groups=groups), GaussLegendre(6))
    chunked = solve(problems(7, count=3, groups=groups, budget=budget * 1000), GaussLegendre(6))
    for one, other in zip(whole, chunked, strict=True):
        assert np.allclose(one.values, other.values, atol=1e-13)
    p = problems(7, count=3, groups=groups)
    for i, one in enumerate(whole):
        alone = replace(p, x=p.x[i : i + 1], r=p.r[i : i + 1], labels=p.labels[i : i + 1], groups=p.groups[:1])
        assert np.allclose(solve(alone, GaussLegendre(6))[0].values, one.values, atol=1e-13)


def test_regrouping_equals_computing_at_that_level():
    fine, coarse = solve(problems(5), GaussLegendre(8)), solve(problems(5, groups=2), GaussLegendre(8))
    for a, b in zip(fine, coarse, strict=True):
        assert np.allclose(np.stack([a.values[0::2].sum(0), a.values[1::2].sum(0)]), b.values, atol=1e-13)


def test_the_unit_tangents_are_spent_on_the_final_nodes_only():
    p = problems(2, count=1)
    seen = []
    inner = p.function
    counting = replace(p, function=lambda h, rows: seen.append(len(h)) or inner(h, rows))
    integral = solve(counting, Adaptive(1e-4))[0]
    # One call with all tangents (the primal is shared); everything else is plain forward passes.
    assert sum(seen) <= integral.nodes + 2 + 9 + 65


def test_row_errors_cover_the_true_errors():
    covered, total, pessimism = 0, 0, []
    for seed in range(12):
        rough, truth = solve(problems(seed), Adaptive(1e-3)), solve(problems(seed), GaussLegendre(80))
        for a, b in zip(rough, truth, strict=True):
            actual = np.linalg.norm(a.values - b.values, axis=1)
            covered += int((a.error >= actual).sum())
            total += len(actual)
            pessimism += list(a.error / np.maximum(actual, 1e-12))
    assert covered / total > 0.85
    assert np.median(pessimism) < 30


def test_kinks_reach_the_tolerance():
    for integral in solve(problems(4, kinks=True), Adaptive(1e-3)):
        assert integral.gap <= 1e-3


def test_not_converging_says_how_far_it_came_and_what_helps():
    with pytest.raises(NotConverged, match=r"max_nodes=80") as caught:
        solve(problems(4, kinks=True), Adaptive(1e-9, max_nodes=20))
    assert caught.value.gap > 1e-9
    assert caught.value.tol == 1e-9


def test_float32_that_cannot_go_further_points_to_float64():
    p = problems(1)
    single = replace(p, x=p.x.float(), r=p.r.float(), function=lambda h, rows: p.function(h.double(), rows).float())
    with pytest.raises(NotConverged, match="float64"):
        solve(single, Adaptive(1e-9))


def test_numbers_that_are_none_raise():
    p = problems(0)
    with pytest.raises(NumericalError, match="NaN"):
        solve(replace(p, function=lambda h, rows: p.function(h, rows) * float("nan")), Adaptive(1e-3))


def test_a_text_equal_to_its_reference_contributes_nothing():
    p = problems(0)
    integral = solve(replace(p, x=p.r.clone()), Adaptive(1e-3))[0]
    assert not integral.values.any()
    assert integral.gap == 0


class TestDecompose:
    def test_rows_are_the_default_groups(self):
        f = network()
        x, r = torch.randn(2, TOKENS, WIDTH, dtype=torch.float64)
        c = pairlens.decompose(f, x, r)
        assert c.values.shape == (TOKENS, DIM)
        assert np.allclose(c.reference + c.values.sum(0), c.embedding, atol=1e-2)
        assert c.gap <= 1e-3

    def test_riemann_is_the_sum_it_says(self):
        f = network()
        x, r = torch.randn(2, TOKENS, WIDTH, dtype=torch.float64)
        c = pairlens.decompose(f, x, r, rule=Riemann(5))
        expected = np.zeros((TOKENS, DIM))
        for k in range(1, 6):
            point = (r + k / 5 * (x - r))[None]
            jacobian = torch.func.jacrev(f)(point)[0, :, 0]
            expected += torch.einsum("ktw,tw->tk", jacobian, x - r).numpy() / 5
        assert np.allclose(c.values, expected, atol=1e-12)

    @pytest.mark.parametrize(
        ("change", "word"),
        [
            ({"r": torch.zeros(2, 2).double()}, "same in shape"),
            ({"groups": torch.zeros(TOKENS, WIDTH)}, "whole numbers"),
            ({"groups": torch.zeros(3, dtype=torch.long)}, "do not broadcast"),
            ({"groups": torch.tensor([0, 0, 2, 2])}, "without holes"),
            ({"f": lambda h: h}, r"\(n, dim\)"),
            ({"x": [1.0, 2.0]}, "tensor with at least one axis, not list"),
            ({"x": torch.tensor(1.0)}, "at least one axis"),
            ({"r": torch.zeros(TOKENS, WIDTH)}, "same in dtype"),
            ({"rule": 5}, "rule is Adaptive"),
            ({"groups": [0, 2, 2, 2]}, "without holes"),
            ({"x": torch.zeros(TOKENS, WIDTH, dtype=torch.long)}, "floating-point"),
        ],
    )
    def test_bad_input_is_named(self, change, word):
        given: dict[str, Any] = {
            "f": network(),
            "x": torch.ones(TOKENS, WIDTH).double(),
            "r": torch.zeros(TOKENS, WIDTH).double(),
        }
        with pytest.raises(InputError, match=word):
            pairlens.decompose(**{**given, **change})
