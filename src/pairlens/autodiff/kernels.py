"""What tangents go through, products and what is between them, in one kernel each, on CUDA devices; needs Triton.

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

import functools
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


EXACTLY = "tf32x3"
"""How products are taken in full: three products of TF32 for one, at least as exact as float32 (measured on an H200:
2e-7 for 4e-7 to 7e-7) and 1.5 times as fast. One alone, which cuts digits off, cost MiniLM's layer 0 a gap of 1e-3 in
attention."""
STRONG = {(8, 0), (9, 0), (10, 0), (10, 3)}
"""Compute capabilities of devices whose matrix units are so much faster than the rest that this pays for layers too.

By their data sheets: A100, H100 and H200, B200 and B300. Measured on an H200 alone.
"""
LARGE = 2048
"""Rows from which on a product is cut into large blocks."""
enabled = triton is not None
"""Whether they are used where they can be."""
BLOCK = 4096
"""Numbers that one program multiplies."""
WIDEST = 8192
"""Numbers of a token's state that fit into one program."""


def mixes(query: Tensor) -> bool:
    """Whether attention with queries (n, heads, tokens, size) can be done here."""
    return enabled and query.is_cuda and query.dtype == torch.float32 and query.shape[-2] <= LONGEST


def multiplies(x: Tensor, weight: Tensor) -> bool:
    """Whether a product of (…, width) with a weight (out, width) can be done here, and had better be."""
    full = x.dtype == weight.dtype == torch.float32 and x.is_contiguous() and weight.is_contiguous()
    return enabled and x.is_cuda and full and _capability(x.device) in STRONG


@functools.cache
def _capability(device: torch.device) -> tuple[int, int]:
    return torch.cuda.get_device_capability(device)


def multiply(x: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """As `torch.nn.functional.linear`, in full precision."""
    assert triton is not None
    width, out = weight.shape[1], weight.shape[0]
    rows = x.numel() // width
    found = torch.empty(*x.shape[:-1], out, dtype=x.dtype, device=x.device)
    if not found.numel():
        return found
    high, wide, deep, warps = (128, 64, 32, 8) if rows >= LARGE else (64, 32, 64, 4)
    _multiply[(triton.cdiv(rows, high) * triton.cdiv(out, wide),)](
        x,
        weight,
        weight if bias is None else bias,
        found,
        rows,
        out,
        WIDTH=width,
        HIGH=high,
        WIDE=wide,
        DEEP=deep,
        BIASED=bias is not None,
        EXACTLY=EXACTLY,
        num_warps=warps,
        num_stages=3,
    )
    return found


def normalises(tangent: Tensor) -> bool:
    """Whether a normalisation of tangents (…, width) can be done here."""
    return enabled and tangent.is_cuda and tangent.dtype == torch.float32 and tangent.shape[-1] <= WIDEST


def normalise(
    tangent: Tensor, rest: Tensor | None, primal: Tensor, mean: Tensor, rstd: Tensor, weight: Tensor | None
) -> Tensor:
    """The tangents of a layer normalisation, (n, groups, …, width).

    Args:
        tangent: those of its input, (n, groups, …, width).
        rest: what is to be added to them before, of the same shape, as a residual is.
        primal: the input, (n, …, width).
        mean: its mean, (n, …, 1).
        rstd: one over its deviation, (n, …, 1).
        weight: what the result is multiplied by, (width,).
    """
    assert triton is not None
    tangent, primal = tangent.contiguous(), primal.contiguous()
    width, groups = tangent.shape[-1], tangent.shape[1]
    added = tangent if rest is None else rest.contiguous()
    found = torch.empty_like(tangent)
    inner = primal[0].numel() // width
    _normalise[(tangent.numel() // width,)](
        tangent,
        added,
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
        ADDED=rest is not None,
        num_warps=4 if width > 512 else 2,
    )
    return found


def mix(
    share: Tensor,
    primal: Tensor,
    states: Sequence[Tensor],
    tangents: Sequence[Tensor],
    scale: float,
    labels: Tensor | None = None,
) -> Tensor:
    """The tangents of attention's output, (n, groups, heads, tokens, size).

    Args:
        share: the shares, (n, heads, tokens, tokens).
        primal: attention's output, (n, heads, tokens, size).
        states: queries, keys and values, each (n, heads, tokens, size).
        tangents: theirs, each (n, groups, heads, tokens, size).
        scale: what the scores are multiplied by.
        labels: where tangents are local, every token's group, (n, tokens): each group's are zero elsewhere.
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
        found if labels is None else labels.contiguous(),
        *[stride for x in (*moved, found) for stride in x.stride()[:4]],
        heads,
        groups,
        tokens,
        scale,
        SIZE=size,
        TOKENS=max(16, triton.next_power_of_2(tokens)),
        WIDE=max(16, triton.next_power_of_2(size)),
        LOCAL=labels is not None,
        EXACTLY=EXACTLY,
        num_warps=4 if tokens > 16 else 1,
    )
    return found


def scales(tangent: Tensor, slope: Tensor) -> bool:
    """Whether tangents (n, groups, …) can be multiplied by slopes (n, …) here."""
    return enabled and tangent.is_cuda and tangent.dtype == slope.dtype == torch.float32 and tangent.is_contiguous()


def scale(tangent: Tensor, slope: Tensor) -> Tensor:
    """Tangents (n, groups, …) times what belongs to the primal, (n, …)."""
    assert triton is not None
    found, count = torch.empty_like(tangent), slope[0].numel()
    grid = (tangent.shape[0] * tangent.shape[1], triton.cdiv(count, BLOCK))
    _scale[grid](tangent, slope.contiguous(), found, tangent.shape[1], count, BLOCK=BLOCK, num_warps=8)
    return found


def pools(tangent: Tensor) -> bool:
    """Whether tangents (n, groups, tokens, width) can be summed over the tokens here."""
    small = tangent.shape[2] <= LONGEST and tangent.is_contiguous()
    return enabled and tangent.is_cuda and tangent.dtype == torch.float32 and small


def pool(tangent: Tensor, share: Tensor, along: Tensor) -> tuple[Tensor, Tensor]:
    """The tokens' weighted sum of tangents, (n, groups, width), and products with a vector, (n, groups, tokens).

    Args:
        tangent: the tangents, (n, groups, tokens, width).
        share: the tokens' weights, (n, tokens).
        along: a vector for every token, (n, tokens, width).
    """
    assert triton is not None
    n, groups, tokens, width = tangent.shape
    total = torch.empty(n, groups, width, dtype=tangent.dtype, device=tangent.device)
    taken = torch.empty(n, groups, tokens, dtype=tangent.dtype, device=tangent.device)
    _pool[(n * groups,)](
        tangent,
        share.contiguous(),
        along.contiguous(),
        total,
        taken,
        groups,
        tokens,
        WIDTH=width,
        TOKENS=triton.next_power_of_2(tokens),
        BLOCK=128,
        num_warps=4,
    )
    return total, taken


if triton is not None:

    @triton.jit
    def _multiply(
        x,
        weight,
        bias,
        found,
        rows,
        out,
        WIDTH: tl.constexpr,
        HIGH: tl.constexpr,
        WIDE: tl.constexpr,
        DEEP: tl.constexpr,
        BIASED: tl.constexpr,
        EXACTLY: tl.constexpr,
    ):
        # Columns run fastest, so that programs side by side share rows in the cache; the weight is there anyway.
        across = tl.cdiv(out, WIDE)
        row = (tl.program_id(0) // across).to(tl.int64) * HIGH + tl.arange(0, HIGH)
        column = tl.program_id(0) % across * WIDE + tl.arange(0, WIDE)
        total = tl.zeros((HIGH, WIDE), tl.float32)
        for start in range(0, WIDTH, DEEP):
            inner = start + tl.arange(0, DEEP)
            inside = (row[:, None] < rows) & (inner[None, :] < WIDTH)
            left = tl.load(x + row[:, None] * WIDTH + inner[None, :], mask=inside, other=0.0)
            inside = (column[None, :] < out) & (inner[:, None] < WIDTH)
            right = tl.load(weight + column[None, :] * WIDTH + inner[:, None], mask=inside, other=0.0)
            total = tl.dot(left, right, total, input_precision=EXACTLY)
        if BIASED:
            total += tl.load(bias + column, mask=column < out, other=0.0)[None, :]
        inside = (row[:, None] < rows) & (column[None, :] < out)
        tl.store(found + row[:, None] * out + column[None, :], total, mask=inside)

    @triton.jit
    def _scale(tangent, slope, found, groups, count, BLOCK: tl.constexpr):
        row = tl.program_id(0).to(tl.int64)
        columns = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
        inside = columns < count
        factor = tl.load(slope + row // groups * count + columns, mask=inside)
        t = tl.load(tangent + row * count + columns, mask=inside)
        tl.store(found + row * count + columns, t * factor, mask=inside)

    @triton.jit
    def _pool(
        tangent,
        share,
        along,
        total,
        taken,
        groups,
        tokens,
        WIDTH: tl.constexpr,
        TOKENS: tl.constexpr,
        BLOCK: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        n = row // groups
        rows = tl.arange(0, TOKENS)
        weight = tl.load(share + n * tokens + rows, mask=rows < tokens, other=0.0)
        product = tl.zeros((TOKENS,), tl.float32)
        for start in range(0, WIDTH, BLOCK):
            columns = start + tl.arange(0, BLOCK)
            inside = (rows[:, None] < tokens) & (columns[None, :] < WIDTH)
            t = tl.load(tangent + (row * tokens + rows[:, None]) * WIDTH + columns[None, :], mask=inside, other=0.0)
            place = along + (n * tokens + rows[:, None]) * WIDTH + columns[None, :]
            product += tl.sum(t * tl.load(place, mask=inside, other=0.0), axis=1)
            tl.store(total + row * WIDTH + columns, tl.sum(t * weight[:, None], axis=0), mask=columns < WIDTH)
        tl.store(taken + row * tokens + rows, product, mask=rows < tokens)

    @triton.jit
    def _tangent(pointer, at_n, at_g, at_h, at_t, n, g, h, rows, columns, inside):
        place = n * at_n + g * at_g + h * at_h + rows[:, None] * at_t + columns[None, :]
        return tl.load(pointer + place, mask=inside, other=0.0)

    @triton.jit
    def _normalise(
        tangent,
        rest,
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
        ADDED: tl.constexpr,
    ):
        row = tl.program_id(0).to(tl.int64)
        own = row // (groups * inner) * inner + row % inner
        columns = tl.arange(0, WIDE)
        inside = columns < WIDTH
        r = tl.load(rstd + own)
        t = tl.load(tangent + row * WIDTH + columns, mask=inside, other=0.0)
        if ADDED:
            t += tl.load(rest + row * WIDTH + columns, mask=inside, other=0.0)
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
        labels,
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
        LOCAL: tl.constexpr,
        EXACTLY: tl.constexpr,
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
        if LOCAL:
            own = tl.load(labels + n * tokens + rows, mask=rows < tokens, other=-1) == g
            dq = tl.where(own[:, None], dq, 0.0)
            dk = tl.where(own[:, None], dk, 0.0)
            dv = tl.where(own[:, None], dv, 0.0)
        moved = tl.dot(dq, tl.trans(k), input_precision=EXACTLY)
        moved = tl.dot(q, tl.trans(dk), moved, input_precision=EXACTLY)
        moved = moved * p
        rest = tl.sum(moved, axis=1)
        out = tl.dot(moved, v, input_precision=EXACTLY)
        out = tl.dot(p, dv, out, input_precision=EXACTLY)
        out = out - rest[:, None] * o
        place = n * f_n + g * f_g + h * f_h + rows[:, None] * f_t + columns[None, :]
        tl.store(found + place, out, mask=inside)
