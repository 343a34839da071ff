"""The rules of operations: each takes the function that a model called and its arguments, and computes the tangents."""

from __future__ import annotations

import weakref
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch import Tensor
from torch.autograd import forward_ad

from pairlens.autodiff.attention import attention
from pairlens.autodiff.deferred import Ending, Norm, Projection, Scaled, normalised, scaled
from pairlens.autodiff.dual import RULES, Dual, Unruled, bare, by_forward_mode
from pairlens.linalg import linear


def _writing(plain: Callable[..., Any]) -> Callable[..., Any]:
    """Return the rule of an operation that writes its result into its first argument."""

    def rule(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        target, result = args[0], RULES[plain](plain, args, kwargs)
        if not isinstance(target, Dual) or result.shape != target.shape:
            raise Unruled(f"{plain.__name__} writes tangents into a tensor without.")
        target.primal, target.lazy, target.axis = result.primal, result.lazy, result.axis
        return target

    return rule


def _same(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Dropout: nothing outside of training."""
    if kwargs.get("training", args[2] if len(args) > 2 else True):
        raise Unruled("dropout in training mode is not a function.")
    return args[0] if args else kwargs["input"]


def _linear(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x, weight = args[0], args[1] if len(args) > 1 else kwargs["weight"]
    if not isinstance(x, Dual) or isinstance(weight, Dual) or x.axis == x.ndim - 1:
        return by_forward_mode(func, args, kwargs)
    bias = args[2] if len(args) > 2 else kwargs.get("bias")
    primal = linear(x.primal, weight, bias)
    if x.axis is None and weight.shape[0] <= weight.shape[1]:
        return x.like(primal, Ending(x.now(), weight))
    return x.like(primal, Projection(x.lazy, weight), x.axis)


def _layer_norm(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    names = ("input", "normalized_shape", "weight", "bias", "eps")
    given = {**dict(zip(names, args, strict=False)), **kwargs}
    x, weight = given["input"], given.get("weight")
    ending = x.lazy.made if isinstance(x, Dual) and isinstance(x.lazy.made, Ending) and x.ndim == 3 else None
    if not isinstance(x, Dual) or len(given["normalized_shape"]) != 1 or x.axis == x.ndim - 1:
        return by_forward_mode(func, args, kwargs)
    primal, mean, rstd = torch.native_layer_norm(
        x.primal, given["normalized_shape"], weight, given.get("bias"), given.get("eps", 1e-5)
    )
    norm = Norm(x.primal, mean, rstd, weight)
    if ending is not None and ending.rest is not None and ending.norm is None:
        return x.like(primal, replace(ending, norm=norm, shared=weakref.ref(x.lazy)))
    return x.like(primal, normalised(x.tangent, norm), x.axis)


def _pointwise(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A function of each number separately: its slope at the primal times the tangents."""
    x = args[0] if args else None
    if not isinstance(x, Dual) or any(isinstance(value, Tensor) for value in (*args[1:], *kwargs.values())):
        return by_forward_mode(func, args, kwargs)
    with forward_ad.dual_level():
        moving = forward_ad.make_dual(x.primal, torch.ones_like(x.primal))
        primal, slope = forward_ad.unpack_dual(func(moving, *args[1:], **kwargs))
        slope = torch.zeros_like(primal) if slope is None else slope
    if isinstance(x.lazy.made, Projection):
        return x.like(primal, Scaled(weakref.ref(x.lazy), x.lazy.made, slope), x.axis)
    return x.like(primal, lambda lazy=x.lazy: scaled(lazy(), slope), x.axis)


def _broadcast(value: Any, ndim: int) -> Any:
    """Return a primal in the shape that multiplies the tangents of duals with `ndim` axes."""
    return value[:, None] if isinstance(value, Tensor) and value.ndim == ndim else value


def _matched(a: Any, b: Any) -> tuple[Any, Any, int | None] | None:
    """Return two factors or terms whose tangents can be combined, and the axis of their tokens; None if they cannot."""
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
    if len(args) == 2 and not kwargs and func not in MINUS and all(isinstance(value, Dual) for value in args):
        a, b = args
        if isinstance(a.lazy.made, Ending) and a.lazy.made.rest is None and a.shape == b.shape:
            return a.like(func(a.primal, b.primal), replace(a.lazy.made, rest=b.now()))
    matched = _matched(*args) if len(args) == 2 and not kwargs else None
    if matched is None:
        return by_forward_mode(func, args, kwargs)
    a, b, axis = matched
    primal = func(bare(a), bare(b))
    if isinstance(a, Dual) and isinstance(b, Dual):
        return a.like(primal, func(a.tangent, b.tangent), axis)
    dual = a if isinstance(a, Dual) else b
    tangent = dual.tangent
    if dual is b and func in MINUS:
        tangent = tangent if func is Tensor.__rsub__ else -tangent
    elif dual is a and func is Tensor.__rsub__:
        tangent = -tangent
    if dual.primal.shape != primal.shape:
        tangent = tangent.expand(primal.shape[0], tangent.shape[1], *primal.shape[1:])
    return dual.like(primal, tangent.to(primal.dtype), axis)


def _product(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    matched = _matched(*args) if len(args) == 2 and not kwargs else None
    if matched is None:
        return by_forward_mode(func, args, kwargs)
    a, b, axis = matched
    ndim = (a if isinstance(a, Dual) else b).ndim
    primal = bare(a) * bare(b)
    if isinstance(a, Dual) and isinstance(b, Dual):
        tangent = torch.addcmul(a.tangent * _broadcast(b.primal, ndim), b.tangent, _broadcast(a.primal, ndim))
        return a.like(primal, tangent, axis)
    dual, factor = (a, b) if isinstance(a, Dual) else (b, a)
    made = dual.lazy.made
    if isinstance(made, Ending) and made.norm is not None and made.scale is None:  # noqa: SIM102
        if isinstance(factor, Tensor) and factor.shape == (*dual.shape[:2], 1):
            return dual.like(primal, replace(made, scale=factor))
    return dual.like(primal, dual.tangent * _broadcast(factor, ndim), axis)


def _quotient(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) != 2 or not isinstance(args[0], Dual) or isinstance(args[1], Dual):
        return by_forward_mode(func, args, kwargs)
    x, divisor = args
    if isinstance(divisor, Tensor) and divisor.ndim > x.ndim:
        return by_forward_mode(func, args, kwargs)
    return x.like(func(x.primal, divisor), x.tangent / _broadcast(divisor, x.ndim), x.axis)


def _over_features(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A sum or mean. Over the last axis, tangents stay local."""
    x = args[0]
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if isinstance(x, Dual) and isinstance(x.lazy.made, Ending) and x.lazy.made.scale is not None and dim == 1:  # noqa: SIM102
        if func in (torch.sum, Tensor.sum) and set(kwargs) <= {"dim", "dtype"} and len(args) <= 2:
            return x.like(func(x.primal, *args[1:], **kwargs), x.lazy.made.pooled)
    if not isinstance(x, Dual) or dim not in (-1, (-1,), [-1]) or x.axis == x.ndim - 1 or x.ndim < 2:
        return by_forward_mode(func, args, kwargs)
    return x.like(func(x.primal, *args[1:], **kwargs), func(x.tangent, *args[1:], **kwargs), x.axis)


def _plainly(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """A linear operation, such as a change of sign or type: the same for tangents as for primals."""
    x = args[0]
    if not isinstance(x, Dual):
        return by_forward_mode(func, args, kwargs)
    rest = [bare(value) for value in args[1:]]
    primal = func(x.primal, *rest, **kwargs)
    return x.like(primal, func(x.tangent, *rest, **kwargs), x.axis) if primal.is_floating_point() else primal


def _contiguous(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Only the primal changes its memory layout; tangents keep theirs."""
    x: Dual = args[0]
    return x.like(func(x.primal, *args[1:], **kwargs), x.lazy, x.axis)


def _shape(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x: Dual = args[0]
    primal = func(x.primal, *args[1:], **kwargs)
    if primal.ndim == 0 or primal.shape[0] != x.primal.shape[0]:
        return by_forward_mode(func, args, kwargs)
    kept = x.axis is not None and primal.shape[: x.axis + 1] == x.primal.shape[: x.axis + 1]
    x = x if kept else x.spread()
    tangent = x.tangent.reshape(primal.shape[0], x.tangent.shape[1], *primal.shape[1:])
    return x.like(primal, tangent, x.axis)


def _transpose(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    if kwargs or len(args) != 3 or not isinstance(args[0], Dual):
        return by_forward_mode(func, args, kwargs)
    x, (first, second) = args[0], sorted(d % args[0].ndim for d in args[1:])
    if first == 0:
        return by_forward_mode(func, args, kwargs)
    axis = {first: second, second: first}.get(x.axis, x.axis)
    return x.like(x.primal.transpose(first, second), x.tangent.transpose(first + 1, second + 1), axis)


def _pick(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Indexing. `x[..., a:b]`, as rotary positions use it, keeps tangents local."""
    x, index = args
    if isinstance(x, Dual) and x.axis is None and isinstance(index, tuple) and len(index) == 2 and x.ndim > 1:  # noqa: SIM102
        if index[0] == slice(None) and isinstance(index[1], int):  # BERT's pooler, whose result is often unused
            return x.like(x.primal[index], lambda lazy=x.lazy: lazy()[:, :, index[1]])
    simple = isinstance(index, tuple) and len(index) == 2 and index[0] is Ellipsis and isinstance(index[1], slice)
    if not isinstance(x, Dual) or not simple or x.axis == x.ndim - 1 or x.ndim < 2:
        return by_forward_mode(func, args, kwargs)
    return x.like(x.primal[index], x.tangent[index], x.axis)


def _join(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Concatenation along the last axis."""
    parts, dim = args[0], args[1] if len(args) > 1 else kwargs.get("dim", 0)
    alike = all(isinstance(part, Dual) and part.axis == parts[0].axis for part in parts)
    if not alike or dim not in (-1, parts[0].ndim - 1) or parts[0].ndim < 2 or parts[0].axis == parts[0].ndim - 1:
        return by_forward_mode(func, args, kwargs)
    primal, tangent = (torch.cat(tensors, -1) for tensors in ([p.primal for p in parts], [p.tangent for p in parts]))
    return parts[0].like(primal, tangent, parts[0].axis)


def _softmax(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    x = args[0] if args else kwargs.get("input")
    dim = args[1] if len(args) > 1 else kwargs.get("dim")
    if not args or not isinstance(x, Dual) or dim not in (-1, x.ndim - 1):
        return by_forward_mode(func, args, kwargs)
    x = x.spread()
    primal = func(x.primal, *args[1:], **kwargs)
    share = primal[:, None]
    weighed = share * x.tangent
    return x.like(primal, weighed - share * weighed.sum(-1, keepdim=True))


def _unit(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    """Vectors divided by their lengths: the component along the vector is removed from the tangents."""
    given = {**dict(zip(("input", "p", "dim", "eps"), args, strict=False)), **kwargs}
    x = given["input"]
    last = isinstance(x, Dual) and given.get("dim", 1) in (-1, x.ndim - 1) and x.axis != x.ndim - 1
    if not last or given.get("p", 2.0) != 2 or given.get("out") is not None:
        return by_forward_mode(func, args, kwargs)
    length = x.primal.norm(dim=-1, keepdim=True).clamp_min(given.get("eps", 1e-12))
    primal = x.primal / length
    direction = primal[:, None]
    along = (x.tangent * direction).sum(-1, keepdim=True)
    return x.like(primal, torch.addcmul(x.tangent, along, direction, value=-1) / length[:, None], x.axis)


def _matmul(func: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    a, b = args
    duals = [value.spread() for value in args if isinstance(value, Dual)]
    ndim = duals[0].ndim
    if any(value.ndim > ndim or (isinstance(value, Dual) and value.ndim < ndim) for value in args) or ndim < 3:
        return by_forward_mode(func, args, kwargs)
    primal = torch.matmul(bare(a), bare(b))
    parts = []
    if isinstance(a, Dual):
        parts.append(torch.matmul(a.spread().tangent, _broadcast(bare(b), ndim)))
    if isinstance(b, Dual):
        parts.append(torch.matmul(_broadcast(bare(a), ndim), b.spread().tangent))
    return duals[0].like(primal, parts[0] if len(parts) == 1 else parts[0] + parts[1])


POINTWISE = (
    *(F.gelu, F.silu, F.relu, F.tanh, F.sigmoid, F.softplus, F.elu, F.leaky_relu, F.hardswish, F.mish),
    *(getattr(torch, name) for name in ("tanh", "sigmoid", "relu", "erf", "exp", "rsqrt", "sqrt", "pow", "square")),
    *(getattr(Tensor, name) for name in ("tanh", "sigmoid", "relu", "erf", "exp", "rsqrt", "sqrt", "pow", "square")),
    Tensor.__pow__,
)
MINUS = (torch.sub, Tensor.sub, Tensor.__sub__, Tensor.__rsub__)

for functions, rule in (
    ((F.scaled_dot_product_attention,), attention),
    ((F.dropout,), _same),
    ((F.linear,), _linear),
    ((F.layer_norm,), _layer_norm),
    (POINTWISE, _pointwise),
    ((torch.add, Tensor.add, Tensor.__add__, Tensor.__radd__, *MINUS), _sum),
    ((torch.mul, Tensor.mul, Tensor.__mul__, Tensor.__rmul__), _product),
    ((torch.div, Tensor.div, Tensor.__truediv__), _quotient),
    ((torch.mean, Tensor.mean, torch.sum, Tensor.sum), _over_features),
    ((Tensor.to, Tensor.float, Tensor.double, Tensor.type_as), _plainly),
    ((Tensor.contiguous,), _contiguous),
    ((torch.neg, Tensor.neg, Tensor.__neg__), _plainly),
    ((Tensor.view, Tensor.reshape, torch.reshape), _shape),
    ((Tensor.transpose, torch.transpose), _transpose),
    ((Tensor.__getitem__,), _pick),
    ((torch.cat,), _join),
    ((F.softmax, torch.softmax, Tensor.softmax), _softmax),
    ((F.normalize,), _unit),
    ((torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm), _matmul),
    ((Tensor.add_, Tensor.__iadd__), _writing(Tensor.add)),
    ((Tensor.sub_, Tensor.__isub__), _writing(Tensor.sub)),
    ((Tensor.mul_, Tensor.__imul__), _writing(Tensor.mul)),
    ((Tensor.div_, Tensor.__itruediv__), _writing(Tensor.div)),
):
    RULES.update(dict.fromkeys(functions, rule))
