"""Numbers with many tangents: one run of a model gives its derivatives in the direction of every group of tokens.

A `Dual` stands where a model expects a tensor. It holds the tensor, and beside it one tangent for every group. PyTorch
hands each operation to the rules here (`__torch_function__`), which say what becomes of the tangents; what has no rule
goes through PyTorch's own forward mode, operation by operation, so any model can be run.

The tangents start local: that of group s is zero on the tokens of all other groups. As long as an operation treats
every token by itself, one tangent then stands for all of them, each group's being its own rows of it. So the first
projections of the first layer cost one pass instead of one per group, and its attention, which mixes the tokens, is
put together from the groups' own columns.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.func import jvp, vmap
from torch.utils._pytree import tree_flatten, tree_map, tree_unflatten

from pairlens import kernels


class Unruled(Exception):  # noqa: N818
    """An operation that cannot be taken apart, such as one that writes into its argument."""


@dataclass(frozen=True)
class Groups:
    """Which tokens belong together.

    `labels` (texts, tokens), -1 for tokens in no group; `members` (texts, groups, size), the tokens of every group,
    and `valid` of the same shape, 0.0 where a group has fewer.
    """

    labels: Tensor
    members: Tensor
    valid: Tensor

    @classmethod
    def of(cls, labels: Tensor, count: int, dtype: torch.dtype) -> Groups:
        """The groups 0 to `count` - 1 by the tokens' labels, (texts, tokens)."""
        host = labels.cpu()
        mine = host[:, None, :] == torch.arange(count)[None, :, None]
        size = max(1, int(mine.sum(-1).max())) if mine.numel() else 1
        # Members first, in order; what is left of the row is not valid.
        order = torch.argsort(~mine, dim=-1, stable=True)[..., :size]
        return cls(labels, order.to(labels.device), mine.gather(-1, order).to(labels.device, dtype))

    def __len__(self) -> int:
        return self.members.shape[1]

    def of_rows(self, rows: Tensor) -> Groups:
        """The groups of these texts, in this order."""
        return Groups(self.labels[rows], self.members[rows], self.valid[rows])

    def part(self, span: slice) -> Groups:
        """Some of the groups."""
        labels = self.labels - span.start
        inside = (labels >= 0) & (labels < span.stop - span.start)
        return Groups(torch.where(inside, labels, -1), self.members[:, span], self.valid[:, span])

    def mask(self, dtype: torch.dtype) -> Tensor:
        """1 where a token is of a group, (texts, groups, tokens)."""
        return (self.labels[:, None] == torch.arange(len(self), device=self.labels.device)[:, None]).to(dtype)


class Dual(Tensor):
    """A tensor (n, …) with tangents (n, groups, …); or, while local, (n, 1, …), and `axis` is where its tokens are."""

    primal: Tensor
    tangent: Tensor
    groups: Groups
    axis: int | None

    @staticmethod
    def __new__(cls, primal: Tensor, tangent: Tensor, groups: Groups, axis: int | None = None) -> Dual:
        made = Tensor._make_wrapper_subclass(cls, primal.shape, dtype=primal.dtype, device=primal.device)  # pyright: ignore[reportAttributeAccessIssue]
        made.primal, made.tangent, made.groups, made.axis = primal, tangent, groups, axis
        return made

    def __repr__(self, **_: Any) -> str:
        return f"Dual({tuple(self.primal.shape)}, {len(self.groups)} tangents{'' if self.axis is None else ', local'})"

    def like(self, primal: Tensor, tangent: Tensor, axis: int | None = None) -> Dual:
        """Another one of the same groups."""
        return Dual(primal, tangent, self.groups, axis)

    def spread(self) -> Dual:
        """The same with every group's tangent written out."""
        if self.axis is None:
            return self
        mask = self.groups.mask(self.primal.dtype)
        shape = [*mask.shape[:2], *[1] * (self.primal.ndim - 1)]
        shape[self.axis + 1] = mask.shape[2]
        return self.like(self.primal, self.tangent * mask.view(shape))

    @classmethod
    def __torch_function__(
        cls, func: Callable[..., Any], types: Any, args: tuple[Any, ...] = (), kwargs: dict[str, Any] | None = None
    ) -> Any:
        rule = RULES.get(func, _by_forward_mode)
        return rule(func, args, kwargs or {})

    @classmethod
    def __torch_dispatch__(cls, func: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        raise Unruled(f"{func} met tangents where no rule could see it.")


LIMITS = {"highest": 0.0, "high": 3e-3, "bf16": 3e-2}
"""Ways to multiply tangents, and how far off, relatively, their sums may be for it.

Measured on an H200, gap of 16 Gauss nodes: MiniLM's layers 0 to 5 lose 0.5e-4 to 1.5e-4 to TF32, a random model of 12
layers x 768 with large weights 1.2e-3.
"""
PRECISIONS = tuple(LIMITS)
_policy = ["highest"]


@contextlib.contextmanager
def precision(policy: str) -> Iterator[None]:
    """A context in which tangents are multiplied so exactly; primals always are in full.

    "highest": as the dtype says. "high": on CUDA devices with the 11 bits of TF32, elsewhere in full. "bf16": the
    layers' own products with 8 bits, attention as for "high".
    """
    _policy.append(policy)
    try:
        yield
    finally:
        _policy.pop()


@contextlib.contextmanager
def _narrow(tensor: Tensor) -> Iterator[None]:
    """A context in which a product of tangents may be less exact, if the policy says so."""
    if _policy[-1] == "highest" or not tensor.is_cuda:
        yield
        return
    settings: Any = torch.backends.cuda.matmul
    name, value = ("fp32_precision", "tf32") if hasattr(settings, "fp32_precision") else ("allow_tf32", True)
    before = getattr(settings, name)
    setattr(settings, name, value)
    try:
        yield
    finally:
        setattr(settings, name, before)


def _project(tangent: Tensor, weight: Tensor) -> Tensor:
    """Tangents times a weight, as exactly as the policy says."""
    if _policy[-1] == "bf16" and tangent.dtype == torch.float32:
        return F.linear(tangent.bfloat16(), weight.bfloat16()).float()
    with _narrow(tangent):
        return F.linear(tangent, weight)


def push(
    function: Callable[[Tensor], Tensor], points: Tensor, direction: Tensor, groups: Groups
) -> tuple[Tensor, Tensor]:
    """Values of a function at points, (n, dim), and its derivatives in every group's direction, (n, groups, dim).

    Args:
        function: maps states (n, tokens, width) to embeddings (n, dim).
        points: the states.
        direction: the sum of all groups' tangents, (n, tokens, width).
        groups: which tokens belong together, for every point.
    """
    found = function(Dual(points, direction[:, None], groups, axis=1))
    if not isinstance(found, Dual):
        return found, torch.zeros(len(found), len(groups), found.shape[-1], dtype=found.dtype, device=found.device)
    found = found.spread()
    return found.primal, found.tangent


# What an operation does to primals and tangents. A rule takes the function and its arguments.


def _primal(value: Any) -> Any:
    return value.primal if isinstance(value, Dual) else value


def _by_forward_mode(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """PyTorch's own forward mode for one operation."""
    plain = func(*tree_map(_primal, args), **tree_map(_primal, kwargs))
    leaves, shape = tree_flatten(plain)
    moving = [isinstance(leaf, Tensor) and leaf.is_floating_point() for leaf in leaves]
    if not any(moving):
        return plain
    name = getattr(func, "__name__", "")
    if (name.endswith("_") and not name.endswith("__")) or name == "__setitem__" or kwargs.get("out") is not None:
        raise Unruled(f"{name} writes into its argument.")
    inputs, form = tree_flatten((args, kwargs))
    places = [i for i, value in enumerate(inputs) if isinstance(value, Dual)]
    duals = [inputs[i].spread() for i in places]
    if any(leaf.ndim == 0 for leaf, moves in zip(leaves, moving, strict=True) if moves):
        raise Unruled(f"{name} gives a single number.")

    def run(*primals: Tensor) -> tuple[Tensor, ...]:
        filled = list(inputs)
        for place, primal in zip(places, primals, strict=True):
            filled[place] = primal
        own_args, own_kwargs = tree_unflatten(filled, form)
        found = tree_flatten(func(*own_args, **own_kwargs))[0]
        return tuple(leaf for leaf, moves in zip(found, moving, strict=True) if moves)

    def along(*tangents: Tensor) -> tuple[Tensor, ...]:
        return jvp(run, tuple(dual.primal for dual in duals), tangents)[1]

    tangents = iter(vmap(along, in_dims=1, out_dims=1)(*[dual.tangent for dual in duals]))
    made = [
        duals[0].like(leaf, next(tangents)) if moves else leaf for leaf, moves in zip(leaves, moving, strict=True)
    ]
    return tree_unflatten(made, shape)


def _writing(plain: Callable[..., Any]) -> Callable[..., Any]:
    """The rule for an operation that writes its result into its first argument."""

    def rule(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        target, found = args[0], RULES[plain](plain, args, kwargs)
        if not isinstance(target, Dual) or found.shape != target.shape:
            raise Unruled(f"{plain.__name__} writes tangents into a tensor without.")
        target.primal, target.tangent, target.axis = found.primal, found.tangent, found.axis
        return target

    return rule


def _same(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Does nothing outside of training."""
    if kwargs.get("training", args[2] if len(args) > 2 else True):
        raise Unruled("dropout in training mode is not a function.")
    return args[0]


def _linear(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, weight = args[0], args[1] if len(args) > 1 else kwargs["weight"]
    if not isinstance(x, Dual) or isinstance(weight, Dual) or x.axis == x.ndim - 1:
        return _by_forward_mode(func, args, kwargs)
    primal = func(x.primal, *args[1:], **kwargs)
    return x.like(primal, _project(x.tangent, weight), x.axis)


def _layer_norm(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = ("input", "normalized_shape", "weight", "bias", "eps")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    x, weight = given["input"], given.get("weight")
    if not isinstance(x, Dual) or len(given["normalized_shape"]) != 1 or x.axis == x.ndim - 1:
        return _by_forward_mode(func, args, kwargs)
    primal, mean, rstd = torch.native_layer_norm(
        x.primal, given["normalized_shape"], weight, given.get("bias"), given.get("eps", 1e-5)
    )
    if kernels.normalises(x.tangent):
        return x.like(primal, kernels.normalise(x.tangent, x.primal, mean, rstd, weight), x.axis)
    # The Jacobian of x -> (x - mean) / deviation is symmetric, so PyTorch's fused backward pass multiplies by it.
    tangent = x.tangent.contiguous()
    rows = (tangent.shape[0], tangent.shape[1], *mean.shape[1:])
    tangent = torch.ops.aten.native_layer_norm_backward(
        tangent,
        x.primal[:, None].expand_as(tangent).contiguous(),
        given["normalized_shape"],
        mean[:, None].expand(rows).contiguous(),
        rstd[:, None].expand(rows).contiguous(),
        None,
        None,
        [True, False, False],
    )[0]
    return x.like(primal, tangent if weight is None else tangent.mul_(weight), x.axis)


def _pointwise(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of each number by itself: its slope, which belongs to the primal, times the tangents."""
    x = args[0] if args else None
    if not isinstance(x, Dual) or any(isinstance(value, Tensor) for value in (*args[1:], *kwargs.values())):
        return _by_forward_mode(func, args, kwargs)
    primal, slope = jvp(lambda h: func(h, *args[1:], **kwargs), (x.primal,), (torch.ones_like(x.primal),))
    return x.like(primal, x.tangent * slope[:, None], x.axis)


def _beside(value: Any, ndim: int) -> Any:
    """A primal as it stands beside tangents of duals of `ndim` axes."""
    return value[:, None] if isinstance(value, Tensor) and value.ndim == ndim else value


def _matched(a: Any, b: Any) -> tuple[Any, Any, int | None] | None:
    """Two factors or terms whose tangents can be combined as they are, and where their tokens are; None if not."""
    duals = [value for value in (a, b) if isinstance(value, Dual)]
    ndim = duals[0].ndim
    if any(isinstance(value, Tensor) and value.ndim > ndim for value in (a, b)):
        return None
    if len(duals) == 2:
        if duals[0].ndim != duals[1].ndim:
            return None
        if duals[0].axis != duals[1].axis:
            a, b = a.spread(), b.spread()
        return a, b, a.axis
    return a, b, duals[0].axis


def _sum(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    matched = _matched(*args) if len(args) == 2 and not kwargs else None
    if matched is None:
        return _by_forward_mode(func, args, kwargs)
    a, b, axis = matched
    primal = func(_primal(a), _primal(b))
    if isinstance(a, Dual) and isinstance(b, Dual):
        return a.like(primal, func(a.tangent, b.tangent), axis)
    own = a if isinstance(a, Dual) else b
    tangent = own.tangent
    if own is b and func in MINUS:
        tangent = tangent if func is Tensor.__rsub__ else -tangent
    elif own is a and func is Tensor.__rsub__:
        tangent = -tangent
    if own.primal.shape != primal.shape:
        tangent = tangent.expand(primal.shape[0], tangent.shape[1], *primal.shape[1:])
    return own.like(primal, tangent.to(primal.dtype), axis)


def _product(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    matched = _matched(*args) if len(args) == 2 and not kwargs else None
    if matched is None:
        return _by_forward_mode(func, args, kwargs)
    a, b, axis = matched
    ndim = (a if isinstance(a, Dual) else b).ndim
    primal = _primal(a) * _primal(b)
    if isinstance(a, Dual) and isinstance(b, Dual):
        tangent = torch.addcmul(a.tangent * _beside(b.primal, ndim), b.tangent, _beside(a.primal, ndim))
        return a.like(primal, tangent, axis)
    own, factor = (a, b) if isinstance(a, Dual) else (b, a)
    return own.like(primal, own.tangent * _beside(factor, ndim), axis)


def _quotient(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) != 2 or not isinstance(args[0], Dual) or isinstance(args[1], Dual):
        return _by_forward_mode(func, args, kwargs)
    x, divisor = args
    if isinstance(divisor, Tensor) and divisor.ndim > x.ndim:
        return _by_forward_mode(func, args, kwargs)
    return x.like(func(x.primal, divisor), x.tangent / _beside(divisor, x.ndim), x.axis)


def _over_features(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A sum or mean; over the last axis it leaves the tokens alone."""
    x = args[0]
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if not isinstance(x, Dual) or dim not in (-1, (-1,), [-1]) or x.axis == x.ndim - 1 or x.ndim < 2:
        return _by_forward_mode(func, args, kwargs)
    return x.like(func(x.primal, *args[1:], **kwargs), func(x.tangent, *args[1:], **kwargs), x.axis)


def _plainly(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """The same to tangents as to primals: another sign, type or memory layout."""
    x = args[0]
    if not isinstance(x, Dual):
        return _by_forward_mode(func, args, kwargs)
    rest = [_primal(value) for value in args[1:]]
    primal = func(x.primal, *rest, **kwargs)
    return x.like(primal, func(x.tangent, *rest, **kwargs), x.axis) if primal.is_floating_point() else primal


def _shape(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x: Dual = args[0]
    primal = func(x.primal, *args[1:], **kwargs)
    if primal.ndim == 0 or primal.shape[0] != x.primal.shape[0]:
        return _by_forward_mode(func, args, kwargs)
    kept = x.axis is not None and primal.shape[: x.axis + 1] == x.primal.shape[: x.axis + 1]
    own = x if kept else x.spread()
    tangent = own.tangent.reshape(primal.shape[0], own.tangent.shape[1], *primal.shape[1:])
    return own.like(primal, tangent, own.axis)


def _transpose(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) != 3 or not isinstance(args[0], Dual):
        return _by_forward_mode(func, args, kwargs)
    x, (first, second) = args[0], sorted(d % args[0].ndim for d in args[1:])
    if first == 0:
        return _by_forward_mode(func, args, kwargs)
    axis = {first: second, second: first}.get(x.axis, x.axis)
    return x.like(x.primal.transpose(first, second), x.tangent.transpose(first + 1, second + 1), axis)


def _pick(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """`x[..., a:b]`, which rotary positions ask for, leaves the tokens alone."""
    x, index = args
    simple = isinstance(index, tuple) and len(index) == 2 and index[0] is Ellipsis and isinstance(index[1], slice)
    if not isinstance(x, Dual) or not simple or x.axis == x.ndim - 1 or x.ndim < 2:
        return _by_forward_mode(func, args, kwargs)
    return x.like(x.primal[index], x.tangent[index], x.axis)


def _join(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Duals side by side along the last axis."""
    parts, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0)
    alike = all(isinstance(part, Dual) and part.axis == parts[0].axis for part in parts)
    if not alike or dim not in (-1, parts[0].ndim - 1) or parts[0].ndim < 2 or parts[0].axis == parts[0].ndim - 1:
        return _by_forward_mode(func, args, kwargs)
    primal, tangent = (torch.cat(own, -1) for own in ([p.primal for p in parts], [p.tangent for p in parts]))
    return parts[0].like(primal, tangent, parts[0].axis)


def _softmax(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x = args[0] if args else kwargs.get("input")
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if not args or not isinstance(x, Dual) or dim not in (-1, x.ndim - 1):
        return _by_forward_mode(func, args, kwargs)
    x = x.spread()
    primal = func(x.primal, *args[1:], **kwargs)
    share = primal[:, None]
    weighed = share * x.tangent
    return x.like(primal, weighed - share * weighed.sum(-1, keepdim=True))


def _matmul(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    a, b = args
    duals = [value.spread() for value in args if isinstance(value, Dual)]
    ndim = duals[0].ndim
    if any(value.ndim > ndim or (isinstance(value, Dual) and value.ndim < ndim) for value in args) or ndim < 3:
        return _by_forward_mode(func, args, kwargs)
    primal = torch.matmul(_primal(a), _primal(b))
    parts = []
    if isinstance(a, Dual):
        parts.append(torch.matmul(a.spread().tangent, _beside(_primal(b), ndim)))
    if isinstance(b, Dual):
        parts.append(torch.matmul(_beside(_primal(a), ndim), b.spread().tangent))
    return duals[0].like(primal, parts[0] if len(parts) == 1 else parts[0] + parts[1])


def _attention(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = ("query", "key", "value", "attn_mask", "dropout_p", "is_causal", "scale", "enable_gqa")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    states = [given[name] for name in names[:3]]
    mask = given.get("attn_mask")
    if not all(isinstance(x, Dual) and x.ndim == 4 for x in states) or isinstance(mask, Dual):
        return _by_forward_mode(func, args, kwargs)
    if given.get("dropout_p"):
        raise Unruled("dropout in training mode is not a function.")
    query, key, value = states
    if query.shape[1] != key.shape[1]:
        if not given.get("enable_gqa"):
            return _by_forward_mode(func, args, kwargs)
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
    with _narrow(primal):
        return query.like(primal, mix(share, primal, *(x if local else x.spread() for x in (query, key, value)), scale))


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
        states, tangents = ((x.primal for x in (query, key, value)), (x.tangent for x in (query, key, value)))
        return kernels.mix(share, primal, (*states,), (*tangents,), scale, exact=_policy[-1] == "highest")
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


POINTWISE = (
    *(F.gelu, F.silu, F.relu, F.tanh, F.sigmoid, F.softplus, F.elu, F.leaky_relu, F.hardswish, F.mish),
    *(getattr(torch, name) for name in ("tanh", "sigmoid", "relu", "erf", "exp", "rsqrt", "sqrt", "pow", "square")),
    *(getattr(Tensor, name) for name in ("tanh", "sigmoid", "relu", "erf", "exp", "rsqrt", "sqrt", "pow", "square")),
    Tensor.__pow__,
)
MINUS = (torch.sub, Tensor.sub, Tensor.__sub__, Tensor.__rsub__)


def _rules(pairs: Sequence[tuple[Sequence[Any], Callable[..., Any]]]) -> dict[Any, Callable[..., Any]]:
    return {func: rule for functions, rule in pairs for func in functions}


RULES = _rules(
    [
        ((F.dropout,), _same),
        ((F.linear,), _linear),
        ((F.layer_norm,), _layer_norm),
        (POINTWISE, _pointwise),
        ((torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, *MINUS), _sum),
        ((torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__), _product),
        ((torch.div, Tensor.div, Tensor.__truediv__), _quotient),
        ((torch.mean, Tensor.mean, torch.sum, Tensor.sum), _over_features),
        ((Tensor.to, Tensor.float, Tensor.double, Tensor.contiguous, Tensor.type_as), _plainly),
        ((torch.neg, Tensor.neg, Tensor.__neg__), _plainly),
        ((Tensor.view, Tensor.reshape, torch.reshape), _shape),
        ((Tensor.transpose, torch.transpose), _transpose),
        ((Tensor.__getitem__,), _pick),
        ((torch.cat,), _join),
        ((F.softmax, torch.softmax, Tensor.softmax), _softmax),
        ((torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm), _matmul),
        ((F.scaled_dot_product_attention,), _attention),
        ((Tensor.add_, Tensor.__iadd__), _writing(Tensor.add)),
        ((Tensor.sub_, Tensor.__isub__), _writing(Tensor.sub)),
        ((Tensor.mul_, Tensor.__imul__), _writing(Tensor.mul)),
        ((Tensor.div_, Tensor.__itruediv__), _writing(Tensor.div)),
    ]
)
"""What is known of operations by name; all others go through `_by_forward_mode`."""
