"""The same integral for any differentiable PyTorch callable."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor

from pairlens.architectures import differentiable
from pairlens.contributions import Contributions
from pairlens.errors import InputError
from pairlens.integrate import Problems, check_groups, integrate
from pairlens.quadrature import Adaptive, Rule
from pairlens.tokens import Unit


def decompose(
    f: Callable[[Tensor], Tensor],
    x: Tensor,
    r: Tensor,
    groups: Tensor | None = None,
    rule: Rule | None = None,
) -> Contributions:
    """Split f(x) - f(r) among groups of elements of x, along the straight path from r.

    Args:
        f: maps a batch (n, *shape) to embeddings (n, dim); differentiable, each row by itself.
        x: the input, (*shape).
        r: the reference, (*shape).
        groups: the group of every element, whole numbers from 0, of x's shape or broadcastable to it; by default
            every entry of x's first axis is a group.
        rule: `Adaptive(tol)` (default), `GaussLegendre(n)` or `Riemann(n)`.

    Returns:
        Contributions: `values` has a row for every group; `values.sum(0)` is f(x) - f(r) to within `gap`.

    Example:
        Two images and an encoder: which patches make their embeddings similar?

        >>> import torch, pairlens
        >>> _ = torch.manual_seed(0)
        >>> encode = torch.nn.Sequential(
        ...     torch.nn.Conv2d(3, 8, 4), torch.nn.GELU(), torch.nn.Flatten(), torch.nn.Linear(8 * 13 * 13, 5)
        ... ).double()
        >>> one, other, grey = torch.rand(2, 3, 16, 16).double().unbind() + (torch.full((3, 16, 16), 0.5).double(),)
        >>> rows = torch.arange(16) // 8
        >>> patches = rows[:, None] * 2 + rows[None, :]  # four patches of 8 x 8
        >>> a = pairlens.decompose(encode, one, grey, patches)
        >>> b = pairlens.decompose(encode, other, grey, patches)
        >>> matrix = a.values @ b.values.T  # patch against patch
        >>> matrix.shape, a.gap < 1e-3
        ((4, 4), True)
    """
    if x.shape != r.shape:
        raise InputError(f"x has shape {tuple(x.shape)} and r {tuple(r.shape)}; they must be the same.")
    if not (x.is_floating_point() and r.is_floating_point()):
        raise InputError(f"x and r must hold floating-point numbers, not {x.dtype} and {r.dtype}.")
    if groups is None:
        groups = torch.arange(len(x)).view(-1, *[1] * (x.ndim - 1))
    labels, count = check_groups(groups, x.shape)
    rule = Adaptive() if rule is None else rule

    def function(points: Tensor, rows: Tensor) -> Tensor:
        return f(points)

    x, r = x.detach()[None], r.detach()[None]
    with differentiable():
        shape = function(x, torch.zeros(1)).shape
        if len(shape) != 2 or shape[0] != 1:
            raise InputError(f"f must map a batch (n, *shape) to (n, dim); for one input it gave {tuple(shape)}.")
        cost = 64 * x.numel() * x.element_size()
        integral = integrate(Problems(function, x, r, labels[None].to(x.device), (count,), cost), rule)[0]
    return Contributions(
        text="",
        units=tuple(Unit(f"group {i}", 0, 0, "rest") for i in range(count)),
        tokens=(),
        values=integral.values,
        error=integral.error,
        reference=integral.reference,
        embedding=integral.embedding,
        output=integral.embedding,
        gap=integral.gap,
        settings={
            "model": getattr(f, "__name__", type(f).__name__),
            "method": "integrated-jacobian",
            "space": "raw",
            "level": "group",
            "rule": repr(rule),
            "nodes": integral.nodes,
        },
    )
