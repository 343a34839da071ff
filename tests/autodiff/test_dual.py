"""Derivatives by dual numbers equal those of PyTorch's forward mode, on every family of models."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn
from torch.func import jvp, vmap

import zoo
from pairlens import Adaptive, GaussLegendre, Lens
from pairlens.autodiff import attention, deferred, derivatives, dual
from pairlens.autodiff.modes import differentiable
from pairlens.model.encoder import Encoder

A, B = zoo.TEXTS[:2]
FLOAT32_INSIDE = ("modernbert", "qwen3", "gemma3", "embeddinggemma")


def both_modes(encoder: Encoder, layer: int, labels: list[int]) -> tuple[torch.Tensor, torch.Tensor]:
    """Return derivatives at three points of a text's path by dual numbers, and by PyTorch, (points, groups, dim)."""
    heads = encoder.states([encoder.read(A)], layer, "padding", "unit")
    tail, rows = encoder.tail(heads), torch.zeros(3, dtype=torch.long)
    alphas = torch.tensor([0.1, 0.5, 0.9], dtype=encoder.dtype)[:, None, None]
    points, direction = torch.lerp(heads.r[rows], heads.x[rows], alphas), (heads.x - heads.r)[rows]
    marks = torch.tensor([labels])
    groups = dual.Groups.of(marks, max(labels) + 1, encoder.dtype).of_rows(rows)

    def along(group: torch.Tensor) -> torch.Tensor:
        tangent = torch.where(marks[..., None] == group, direction, 0)
        return jvp(lambda h: tail(h, rows), (points,), (tangent,))[1]

    with differentiable():
        expected = vmap(along, out_dims=1)(torch.arange(len(groups)))
        halves = [groups.part(slice(0, 2)), groups.part(slice(2, len(groups)))]
        ours = [derivatives(lambda h: tail(h, rows), points, direction, half) for half in halves]
    return torch.cat(ours, 1), expected


@pytest.mark.parametrize("family", zoo.FAMILIES)
def test_derivatives_equal_forward_mode_for_every_family(family):
    encoder = Encoder(zoo.encoder(family), dtype=torch.float64)
    count = len(encoder.read(A).tokens)
    alone, scattered = list(range(count)), [-1, *(i % 3 for i in range(count - 1))]
    for layer in range(encoder.layers() + 1):
        for labels in (alone, scattered):
            result, expected = both_modes(encoder, layer, labels)
            limit = 1e-6 if family in FLOAT32_INSIDE else 1e-12
            assert (result - expected).norm() <= limit * expected.norm()
    assert encoder.takes_duals()


def test_attention_in_blocks_equals_attention_at_once(monkeypatch):
    encoder = Encoder(zoo.encoder("bert"), dtype=torch.float64)
    labels = list(range(len(encoder.read(A).tokens)))
    whole, _ = both_modes(encoder, 0, labels)
    monkeypatch.setattr(attention, "BLOCK", 1)
    blocks, _ = both_modes(encoder, 0, labels)
    assert torch.allclose(whole, blocks, atol=1e-14)


@pytest.mark.parametrize("twice", [False, True])
def test_a_projection_may_be_used_twice(twice):
    torch.manual_seed(0)
    n, tokens, width = 2, 5, 8
    up, down = torch.randn(16, width, dtype=torch.float64), torch.randn(width, 16, dtype=torch.float64)
    weights = torch.rand(n, tokens, 1, dtype=torch.float64)

    def layer(h: torch.Tensor) -> torch.Tensor:
        inner = F.linear(h, up)
        moved = F.gelu(inner) * inner if twice else F.gelu(inner)
        return (F.layer_norm(F.linear(moved, down) + h, (width,)) * weights).sum(1)

    points, direction = torch.randn(2, n, tokens, width, dtype=torch.float64)
    groups = dual.Groups.of(torch.arange(tokens)[None], tokens, torch.float64).of_rows(torch.zeros(n, dtype=torch.long))
    result = derivatives(layer, points, direction, groups)
    for token in range(tokens):
        tangent = torch.zeros_like(direction)
        tangent[:, token] = direction[:, token]
        assert torch.allclose(result[:, token], jvp(layer, (points,), (tangent,))[1], atol=1e-12)


class Odd(nn.Module):
    """Writes into a buffer on the way, which no rule can see."""

    def forward(self, features: dict[str, Any]) -> dict[str, Any]:
        states = torch.zeros_like(features["sentence_embedding"])
        states[:, 1:] = features["sentence_embedding"][:, :-1]
        return {**features, "sentence_embedding": states}


def test_operations_without_a_rule_use_forward_mode():
    model = zoo.encoder("bert", normalize=False, similarity="dot")
    model.append(Odd())
    lens = Lens(model, dtype="float64")
    encoder: Any = lens.encoder
    try:
        e = lens.explain(A, B, layer=1, rule=GaussLegendre(6))
    except RuntimeError:
        pytest.skip("PyTorch's own forward mode cannot do it either")
    assert encoder.takes_duals() is False
    assert max(e.gap_a, e.gap_b) < 1e-2


def test_a_wrong_rule_is_detected(monkeypatch):
    def wrong(func, args, kwargs):
        result = right(func, args, kwargs)
        if not isinstance(result, dual.Dual):
            return result
        return result.like(result.primal, result.tangent * 1.01, result.axis)

    right = dual.RULES[torch.nn.functional.gelu]
    monkeypatch.setitem(dual.RULES, torch.nn.functional.gelu, wrong)
    assert Encoder(zoo.encoder("bert")).takes_duals() is False


def test_both_ways_give_the_same_explanation(monkeypatch):
    for level in ("token", "sentence"):
        options: Any = {"layer": 1, "rule": Adaptive(1e-6), "level": level}
        ruled = Lens(zoo.encoder("mpnet"), dtype="float64").explain(A, B, **options)
        with monkeypatch.context() as patch:
            patch.setattr(Encoder, "takes_duals", lambda *_: False)
            general = Lens(zoo.encoder("mpnet"), dtype="float64").explain(A, B, **options)
        np.testing.assert_allclose(ruled.matrix, general.matrix, atol=1e-12)


def test_the_first_layer_projects_all_groups_at_once():
    # Its queries, keys and values of every group are rows of one pass; behind attention there is one for each.
    encoder = Encoder(zoo.encoder("bert"), dtype=torch.float64)
    seen: list[int] = []
    right = dual.RULES[torch.nn.functional.linear]

    def watched(func, args, kwargs):
        seen.append(args[0].tangent.shape[1])
        return right(func, args, kwargs)

    dual.RULES[torch.nn.functional.linear] = watched
    try:
        both_modes(encoder, 2, list(range(len(encoder.read(A).tokens))))
    finally:
        dual.RULES[torch.nn.functional.linear] = right
    assert seen[:3] == [1, 1, 1]
    assert seen[3] == 2


def test_the_last_layer_sums_before_it_projects(monkeypatch):
    # One row for every point and group instead of one for every token; the numbers are checked above.
    encoder = Encoder(zoo.encoder("bert", intermediate_size=64), dtype=torch.float64)
    rows: list[tuple[int, ...]] = []
    plain = deferred.project

    def watched(tangent, weight):
        rows.append((tangent.ndim, *weight.shape))
        return plain(tangent, weight)

    monkeypatch.setattr(deferred, "project", watched)
    result, expected = both_modes(encoder, 2, list(range(len(encoder.read(A).tokens))))
    assert (result - expected).norm() <= 1e-12 * expected.norm()
    assert [ndim for ndim, out, inner in rows if out < inner] == [3, 3]  # once for each half of the groups


def test_writing_in_place_does_not_change_earlier_results():
    x, t = torch.randn(2, 3, 4), torch.randn(2, 1, 3, 4)
    groups = dual.Groups.of(torch.arange(3).expand(2, 3), 3, x.dtype)
    weight = torch.randn(4, 4)

    def function(h):
        y = torch.nn.functional.linear(h, weight)
        h += 1.0 * h
        return (y + h).sum(1)

    result = derivatives(lambda h: function(h * 1.0), x, t[:, 0], groups)
    mask = groups.mask(x.dtype)[..., None]
    expected = ((t * mask) @ weight.T + 2 * t * mask).sum(2)
    assert torch.allclose(result, expected, atol=1e-5)
