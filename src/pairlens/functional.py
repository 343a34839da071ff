"""The same integral for any differentiable PyTorch callable."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from pairlens.attribution.contributions import Contributions
from pairlens.autodiff import differentiable
from pairlens.errors import InputError
from pairlens.quadrature import Problems, Rule, check_rule, integrate
from pairlens.text import Unit


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
    rule = check_rule(rule)
    _check_ends(x, r)
    if groups is None:
        groups = torch.arange(len(x)).view(-1, *[1] * (x.ndim - 1))
    labels, count = _check_groups(torch.as_tensor(groups), x.shape)

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


def _check_ends(x: Any, r: Any) -> None:
    """Refuse ends of a path that are not tensors of one shape, dtype and device."""
    for name, end in (("x", x), ("r", r)):
        if not isinstance(end, Tensor) or end.ndim == 0:
            raise InputError(f"{name} must be a tensor with at least one axis, not {type(end).__name__}: {end!r:.40}.")
        if not end.is_floating_point():
            raise InputError(f"{name} must hold floating-point numbers, not {end.dtype}.")
    for name in ("shape", "dtype", "device"):
        if getattr(x, name) != getattr(r, name):
            raise InputError(f"x and r must be the same in {name}: {getattr(x, name)} and {getattr(r, name)}.")


def _check_groups(groups: Tensor, shape: torch.Size) -> tuple[Tensor, int]:
    """Return labels with as many axes as the shape, and their number; refuse labels other than 0, 1, 2, …."""
    if groups.is_floating_point() or groups.dtype == torch.bool:
        raise InputError(f"groups must be whole numbers, one label per element of x, not {groups.dtype}.")
    labels = groups.long()
    try:
        torch.broadcast_shapes(labels.shape, shape)
    except RuntimeError:
        labels_shape, x_shape = tuple(groups.shape), tuple(shape)
        raise InputError(f"groups of shape {labels_shape} do not broadcast to x, which has {x_shape}.") from None
    names = torch.unique(labels)
    if int(names.min()) != 0 or int(names.max()) != len(names) - 1:
        raise InputError(f"groups must be labelled 0, 1, 2, … without holes; they are {names.tolist()[:10]}.")
    return labels.view(*[1] * (len(shape) - labels.ndim), *labels.shape), len(names)
