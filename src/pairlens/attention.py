"""What attention does to tangents: the rule for PyTorch's fused function, local tangents or not."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pairlens import kernels
from pairlens.dual import Dual, Unruled, by_forward_mode, narrow


def attention(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The rule for PyTorch's fused attention."""
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
    scores = torch.matmul(query.primal * scale, key.primal.transpose(-1, -2))
    if given.get("is_causal"):
        mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).tril()
    if mask is not None:
        scores = torch.where(mask, scores, -torch.inf) if mask.dtype == torch.bool else scores + mask
    share = torch.softmax(scores, -1)
    local = all(x.axis == 2 for x in (query, key, value))
    mix = _mix_local if local else _mix
    primal = torch.matmul(share, value.primal)
    if not local:
        query, key, value = query.spread(), key.spread(), value.spread()
    with narrow(primal):
        return query.like(primal, mix(share, primal, query, key, value, scale))


def _repeat_heads(x: Dual, times: int) -> Dual:
    primal, tangent = x.primal.repeat_interleave(times, 1), x.tangent.repeat_interleave(times, 2)
    return x.like(primal, tangent, x.axis)


BLOCK = 2**24
"""Numbers of attention scores' tangents that are held at a time."""


def _mix(share: Tensor, primal: Tensor, query: Dual, key: Dual, value: Dual, scale: float) -> Tensor:
    """The tangents of attention's output, (n, groups, heads, tokens, size), from the shares of every token.

    The scores' tangents are the largest thing there is: they are made for a few groups at a time, and never those of
    the shares, since share (ds - Σ share ds) times the values is one product less a multiple of the output.
    """
    n, heads, tokens, size = query.shape
    if kernels.mixes(share):
        states, tangents = zip(*((x.primal, x.tangent) for x in (query, key, value)), strict=True)
        return kernels.mix(share, primal, states, tangents, scale)
    groups = query.tangent.shape[1]
    found = torch.empty(n, groups, tokens, heads, size, dtype=primal.dtype, device=primal.device)
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
        own = queries.expand(batch, count, tokens, size).reshape(batch * count, tokens, size)
        weighed.baddbmm_(own, moved[1].reshape(batch * count, tokens, size).transpose(1, 2))
        weighed = weighed.view(batch, count, tokens, tokens).mul_(flat[:, None])
        rest = weighed.sum(-1, keepdim=True)
        out = torch.bmm(weighed.view(batch, count * tokens, tokens), values).view(n, heads, count, tokens, size)
        carried = torch.bmm(flat, moved[2].permute(0, 1, 3, 2, 4).reshape(batch, tokens, count * size))
        out += carried.view(n, heads, tokens, count, size).transpose(2, 3)
        out.addcmul_(rest.view(n, heads, count, tokens, 1), primal[:, :, None], value=-1)
        found[:, start : start + step] = out.permute(0, 2, 3, 1, 4)
    return found.transpose(2, 3)


def _mix_local(share: Tensor, primal: Tensor, query: Dual, key: Dual, value: Dual, scale: float) -> Tensor:
    """The same where a group moves its own tokens only, which the others meet as keys and values alone.

    With moved keys B = share (q · dk) and moved queries A = share (dq · k), group g changes token i by
    Σ_{j in g} [B_ij (v_j - o_i) + share_ij dv_j], and its own tokens by Σ_j A_ij (v_j - o_i) besides.
    """
    groups = query.groups
    n, heads, tokens, size = query.shape
    count, members = len(groups), groups.members
    if kernels.mixes(share):
        states = [x.primal for x in (query, key, value)]
        tangents = [x.tangent.expand(-1, count, -1, -1, -1) for x in (query, key, value)]
        return kernels.mix(share, primal, states, tangents, scale, groups.labels)
    moved_queries, moved_keys, moved_values = (x.tangent[:, 0] for x in (query, key, value))
    by_query = share * torch.matmul(moved_queries * scale, key.primal.transpose(-1, -2))
    by_key = share * torch.matmul(query.primal * scale, moved_keys.transpose(-1, -2))
    own = torch.matmul(by_query, value.primal) - by_query.sum(-1, keepdim=True) * primal
    # Every group's columns: (n, groups, heads, tokens, members), and their values (n, groups, heads, members, size).
    columns = members.reshape(n, 1, 1, -1).expand(n, heads, tokens, -1)
    valid = groups.valid.view(n, count, 1, 1, -1)
    taken = [
        part.gather(-1, columns).view(n, heads, tokens, count, -1).permute(0, 3, 1, 2, 4) * valid
        for part in (by_key, share)
    ]
    places = members.reshape(n, 1, -1, 1).expand(n, heads, -1, size)
    carried = [
        part.gather(2, places).view(n, heads, count, -1, size).transpose(1, 2) for part in (value.primal, moved_values)
    ]
    tangent = torch.matmul(torch.cat(taken, -1), torch.cat(carried, -2))
    tangent.addcmul_(taken[0].sum(-1, keepdim=True), primal[:, None], value=-1)
    return tangent.addcmul_(groups.mask(primal.dtype).view(n, count, 1, tokens, 1), own[:, None])
