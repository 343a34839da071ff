"""The rule for PyTorch's fused attention, for local tangents and for full ones."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pairlens.autodiff.dual import Dual, Unruled, by_forward_mode, narrow


def attention(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Return the output of fused attention with its tangents."""
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    states = [given[name] for name in names[:3]]
    mask = given.get("attn_mask")
    if not all(isinstance(x, Dual) and x.ndim == 4 for x in states) or isinstance(mask, Dual):
        return by_forward_mode(func, args, kwargs)
    if states[0].shape[2:] != states[1].shape[2:] or states[0].shape[2:] != states[2].shape[2:]:
        return by_forward_mode(func, args, kwargs)
    if given.get("dropout_p"):
        raise Unruled("dropout in training mode is not a function.")
    query, key, value = states
    if query.shape[1] != key.shape[1]:
        if not given.get("enable_gqa"):
            return by_forward_mode(func, args, kwargs)
        key, value = (_repeat_heads(x, query.shape[1] // x.shape[1]) for x in (key, value))
    scale = query.shape[-1] ** -0.5 if given.get("scale") is None else given["scale"]
    mask = _allowed(query) if given.get("is_causal") else mask
    if all(x.axis == 2 for x in (query, key, value)):
        return _locally(query, key, value, scale, mask)
    query, key, value = query.spread(), key.spread(), value.spread()
    share = _shares(torch.matmul(query.primal, key.primal.mT), scale, mask)
    primal = torch.matmul(share, value.primal)
    with narrow(primal):
        return query.like(primal, _mix(share, primal, query, key, value, scale))


def _allowed(query: Dual) -> Tensor:
    """Return a causal mask, (tokens, tokens)."""
    tokens = query.shape[2]
    return torch.ones(tokens, tokens, dtype=torch.bool, device=query.device).tril()


def _shares(scores: Tensor, scale: float, mask: Tensor | None) -> Tensor:
    """Return attention weights from scores, (n, heads, tokens, tokens); overwrites the scores."""
    scores = scores.mul_(scale)
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf) if mask.dtype == torch.bool else scores + mask
    return torch.softmax(scores, -1)


def _repeat_heads(x: Dual, times: int) -> Dual:
    primal, tangent = x.primal.repeat_interleave(times, 1), x.tangent.repeat_interleave(times, 2)
    return x.like(primal, tangent, x.axis)


def _empty_output(n: int, groups: int, tokens: int, heads: int, size: int, like: Tensor) -> Tensor:
    """Return uninitialised tangents of attention's output, (n, groups, heads, tokens, size).

    They are stored as the next projection reads them, the heads of a token adjacent; on CPUs token by token.
    """
    if like.is_cuda:
        return like.new_empty(n, groups, tokens, heads, size).transpose(2, 3)
    return like.new_empty(n, tokens, groups, heads, size).permute(0, 2, 3, 1, 4)


BLOCK = 2**24
"""Tangents of attention scores that are held at a time."""


def _mix(share: Tensor, primal: Tensor, query: Dual, key: Dual, value: Dual, scale: float) -> Tensor:
    """Return the tangents of attention's output, (n, groups, heads, tokens, size), from the attention weights `share`.

    The tangents of the scores, ds, need the most memory, so they are computed for a few groups at a time. Those of the
    weights are never stored: share (ds - Σ share ds) times the values is one product minus a multiple of the output.
    """
    n, heads, tokens, size = query.shape
    groups = query.tangent.shape[1]
    result = _empty_output(n, groups, tokens, heads, size, primal)
    step = max(1, BLOCK // max(1, n * heads * tokens * tokens))
    batch = n * heads
    keys = (key.primal * scale).reshape(batch, tokens, size).transpose(1, 2)
    values, flat = value.primal.reshape(batch, tokens, size), share.reshape(batch, tokens, tokens)
    queries = (query.primal * scale).reshape(batch, 1, tokens, size)
    for start in range(0, groups, step):
        # (n, groups, heads, …) to (n · heads, groups, …)
        moved = [x.tangent[:, start : start + step].transpose(1, 2) for x in (query, key, value)]
        count = moved[0].shape[2]
        weighed = torch.bmm(moved[0].reshape(batch, count * tokens, size), keys)
        weighed = weighed.view(batch * count, tokens, tokens)
        repeated = queries.expand(batch, count, tokens, size).reshape(batch * count, tokens, size)
        weighed.baddbmm_(repeated, moved[1].reshape(batch * count, tokens, size).transpose(1, 2))
        weighed = weighed.view(batch, count, tokens, tokens).mul_(flat[:, None])
        rest = weighed.sum(-1, keepdim=True)
        out = torch.bmm(weighed.view(batch, count * tokens, tokens), values).view(n, heads, count, tokens, size)
        carried = torch.bmm(flat, moved[2].permute(0, 1, 3, 2, 4).reshape(batch, tokens, count * size))
        out += carried.view(n, heads, tokens, count, size).transpose(2, 3)
        place = result[:, start : start + step].transpose(1, 2)
        torch.addcmul(out, rest.view(n, heads, count, tokens, 1), primal[:, :, None], value=-1, out=place)
    return result


def _locally(query: Dual, key: Dual, value: Dual, scale: float, mask: Tensor | None) -> Dual:
    """Return the output of attention with its tangents, where each group moves only its own tokens.

    With moved keys B = share (q · dk) and moved queries A = share (dq · k), group g changes token i by
    Σ_{j in g} [B_ij (v_j - o_i) + share_ij dv_j], and its own tokens by Σ_j A_ij (v_j - o_i) besides.
    """
    groups, members = query.groups, query.groups.members
    n, heads, tokens, size = query.shape
    count, batch = len(groups), n * heads
    # All six in one tensor, (n · heads, tokens, size) each, so that no product has to copy them.
    stacked = torch.stack([part for x in (query, key, value) for part in (x.primal, x.tangent[:, 0])])
    q, dq, k, dk, v, dv = stacked.view(6, batch, tokens, size)
    share = _shares(torch.bmm(q, k.mT).view(n, heads, tokens, tokens), scale, mask)
    flat = share.view(batch, tokens, tokens)
    output = torch.bmm(flat, v)
    primal = output.view(n, heads, tokens, size)
    with narrow(primal):
        moved = flat * scale
        by_query, by_key = torch.bmm(dq, k.mT).mul_(moved), torch.bmm(q, dk.mT).mul_(moved)
        internal = torch.addcmul(torch.bmm(by_query, v), by_query.sum(-1, keepdim=True), output, value=-1)
        # The columns of each group, (n, groups, heads, tokens, members), and their values, (n, groups, heads, members,
        # size), concatenated so that one product computes all three terms; the third concerns the group's own tokens.
        columns = members.reshape(n, 1, 1, -1).expand(n, heads, tokens, -1)
        valid = groups.valid.view(n, count, 1, 1, -1)
        taken = [
            part.view(share.shape).gather(-1, columns).view(n, heads, tokens, count, -1).permute(0, 3, 1, 2, 4) * valid
            for part in (by_key, flat)
        ]
        rows = torch.arange(tokens, device=members.device)[:, None]
        mine = (members[:, :, None, None] == rows) * valid
        places = members.reshape(n, 1, -1, 1).expand(n, heads, -1, size)
        carried = [
            part.view(primal.shape).gather(2, places).view(n, heads, count, -1, size).transpose(1, 2)
            for part in (v, dv, internal)
        ]
        tangent = torch.matmul(torch.cat([*taken, mine.expand_as(taken[0])], -1), torch.cat(carried, -2))
        result = _empty_output(n, count, tokens, heads, size, primal)
        torch.addcmul(tangent, taken[0].sum(-1, keepdim=True), primal[:, None], value=-1, out=result)
    return query.like(primal, result)
