"""What tangents go through between matrix products, in one kernel each, on CUDA devices; needs Triton.

Between the matrix products of a layer, PyTorch moves the tangents of queries, keys and values through memory some
twenty times: split by heads, copied, multiplied in small batches, summed, put back; and those of a normalisation six
times. Here they are read once and written once. The numbers are those of `dual`'s plain rules, which are used wherever
these cannot be.
"""

# Kernels take pointers and numbers, which Triton types by itself, and constants in capitals.
# ruff: noqa: ANN001, ANN202
# pyright: reportMissingParameterType=false, reportPossiblyUnboundVariable=false, reportMissingImports=false
# pyright: reportOptionalMemberAccess=false, reportIndexIssue=false, reportUntypedFunctionDecorator=false

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import Tensor

LONGEST = 64
"""Tokens up to which a head's scores fit into one program."""

try:
    import triton
    import triton.language as tl
except ImportError:
    triton = None


WIDEST = 8192
"""Numbers of a token's state that fit into one program."""


def mixes(share: Tensor) -> bool:
    """Whether attention with shares (n, heads, tokens, tokens) can be done here."""
    return triton is not None and share.is_cuda and share.dtype == torch.float32 and share.shape[-1] <= LONGEST


def normalises(tangent: Tensor) -> bool:
    """Whether a normalisation of tangents (…, width) can be done here."""
    return triton is not None and tangent.is_cuda and tangent.dtype == torch.float32 and tangent.shape[-1] <= WIDEST


def normalise(tangent: Tensor, primal: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None) -> Tensor:
    """The tangents of a layer normalisation, (n, groups, …, width).

    Args:
        tangent: those of its input, (n, groups, …, width).
        primal: the input, (n, …, width).
        mean: its mean, (n, …, 1).
        rstd: one over its deviation, (n, …, 1).
        weight: what the result is multiplied by, (width,).
    """
    assert triton is not None
    tangent, primal = tangent.contiguous(), primal.contiguous()
    width, groups = tangent.shape[-1], tangent.shape[1]
    found = torch.empty_like(tangent)
    inner = primal[0].numel() // width
    _normalise[(tangent.numel() // width,)](
        tangent,
        primal,
        mean.contiguous(),
        rstd.contiguous(),
        tangent if weight is None else weight,
        found,
        groups,
        inner,
        WIDTH=width,
        WIDE=triton.next_power_of_2(width),
        WEIGHED=weight is not None,
        num_warps=4 if width > 512 else 2,
    )
    return found


def mix(
    share: Tensor,
    primal: Tensor,
    states: Sequence[Tensor],
    tangents: Sequence[Tensor],
    scale: float,
) -> Tensor:
    """The tangents of attention's output, (n, groups, heads, tokens, size).

    Args:
        share: the shares, (n, heads, tokens, tokens).
        primal: attention's output, (n, heads, tokens, size).
        states: queries, keys and values, each (n, heads, tokens, size).
        tangents: theirs, each (n, groups, heads, tokens, size).
        scale: what the scores are multiplied by.
    """
    assert triton is not None
    n, groups, heads, tokens, size = tangents[0].shape
    # Laid out as the next projection wants it: a token's heads side by side.
    found = torch.empty(n, groups, tokens, heads, size, dtype=primal.dtype, device=primal.device).transpose(2, 3)
    share, primal = share.contiguous(), primal.contiguous()
    own = [x.contiguous() for x in states]
    moved = [x if x.stride(-1) == 1 else x.contiguous() for x in tangents]
    _mix[(n * heads * groups,)](
        share,
        primal,
        *own,
        *moved,
        found,
        *[stride for x in (*moved, found) for stride in x.stride()[:4]],
        heads,
        groups,
        tokens,
        scale,
        SIZE=size,
        TOKENS=max(16, triton.next_power_of_2(tokens)),
        WIDE=max(16, triton.next_power_of_2(size)),
        num_warps=4 if tokens > 16 else 2,
    )
    return found


if triton is not None:

    @triton.jit
    def _tangent(pointer, at_n, at_g, at_h, at_t, n, g, h, rows, columns, inside):
        place = n * at_n + g * at_g + h * at_h + rows[:, None] * at_t + columns[None, :]
        return tl.load(pointer + place, mask=inside, other=0.0)

    @triton.jit
    def _normalise(
        tangent,
        primal,
        mean,
        rstd,
        weight,
        found,
        groups,
        inner,
        WIDTH: tl.constexpr,
        WIDE: tl.constexpr,
        WEIGHED: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        own = row // (groups * inner) * inner + row % inner
        columns = tl.arange(0, WIDE)
        inside = columns < WIDTH
        r = tl.load(rstd + own)
        t = tl.load(tangent + row * WIDTH + columns, mask=inside, other=0.0)
        x = tl.load(primal + own * WIDTH + columns, mask=inside, other=0.0)
        hat = tl.where(inside, (x - tl.load(mean + own)) * r, 0.0)
        out = (t - tl.sum(t, axis=0) / WIDTH - hat * (tl.sum(t * hat, axis=0) / WIDTH)) * r
        if WEIGHED:
            out = out * tl.load(weight + columns, mask=inside, other=0.0)
        tl.store(found + row * WIDTH + columns, out, mask=inside)

    @triton.jit
    def _mix(
        share,
        primal,
        query,
        key,
        value,
        moved_query,
        moved_key,
        moved_value,
        found,
        q_n,
        q_g,
        q_h,
        q_t,
        k_n,
        k_g,
        k_h,
        k_t,
        v_n,
        v_g,
        v_h,
        v_t,
        f_n,
        f_g,
        f_h,
        f_t,
        heads,
        groups,
        tokens,
        scale,
        SIZE: tl.constexpr,
        TOKENS: tl.constexpr,
        WIDE: tl.constexpr,
    ):
        # Groups run fastest, so that programs side by side share the primals in the cache.
        program = tl.program_id(0).to(tl.int64)
        g = program % groups
        h = (program // groups) % heads
        n = program // (groups * heads)
        rows, columns = tl.arange(0, TOKENS), tl.arange(0, WIDE)
        inside = (rows[:, None] < tokens) & (columns[None, :] < SIZE)
        head = (n * heads + h) * tokens
        plain = head * SIZE + rows[:, None] * SIZE + columns[None, :]
        q = tl.load(query + plain, mask=inside, other=0.0) * scale
        k = tl.load(key + plain, mask=inside, other=0.0)
        v = tl.load(value + plain, mask=inside, other=0.0)
        o = tl.load(primal + plain, mask=inside, other=0.0)
        square = (rows[:, None] < tokens) & (rows[None, :] < tokens)
        p = tl.load(share + head * tokens + rows[:, None] * tokens + rows[None, :], mask=square, other=0.0)
        dq = _tangent(moved_query, q_n, q_g, q_h, q_t, n, g, h, rows, columns, inside) * scale
        dk = _tangent(moved_key, k_n, k_g, k_h, k_t, n, g, h, rows, columns, inside)
        dv = _tangent(moved_value, v_n, v_g, v_h, v_t, n, g, h, rows, columns, inside)
        # Always in full: it is memory that this waits for, and TF32 here, which cuts digits off, cost MiniLM's layer 0
        # a gap of 1e-3.
        moved = tl.dot(dq, tl.trans(k), input_precision="ieee")
        moved = tl.dot(q, tl.trans(dk), moved, input_precision="ieee")
        moved = moved * p
        rest = tl.sum(moved, axis=1)
        out = tl.dot(moved, v, input_precision="ieee")
        out = tl.dot(p, dv, out, input_precision="ieee")
        out = out - rest[:, None] * o
        place = n * f_n + g * f_g + h * f_h + rows[:, None] * f_t + columns[None, :]
        tl.store(found + place, out, mask=inside)
