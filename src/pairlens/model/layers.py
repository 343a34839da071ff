"""The only file that knows how model families are built: where their layers are and how to enter between them.

A transformer is used through a `Tapped` view of a twin of it: the same weights in a structure of our own, so the
caller's model is never touched. Every layer of the twin reports to the tap, which can record what enters the layers
and can put other hidden states in front of layer ℓ, leaving the layers before it out. Nothing here names a class:
layers are found by watching which list of modules the hidden states pass through.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pairlens.autodiff.modes import capturing
from pairlens.errors import ModelError

M = TypeVar("M", bound=nn.Module)


def twin(model: M, *, dtype: torch.dtype, device: torch.device) -> M:
    """A copy of the model's structure around the same weights, in evaluation mode, free to be changed.

    Weights already of that dtype and on that device are shared, not copied; the others are converted. Forward hooks
    are shared too, as they are part of what the model computes; those of training are left out.
    """

    def convert(tensor: Tensor) -> Tensor:
        target = dtype if tensor.is_floating_point() else tensor.dtype
        return tensor.detach().to(device=device, dtype=target)

    # deepcopy asks the memo first, so whatever stands in it is taken over instead of copied.
    memo: dict[int, Any] = {}
    for module in model.modules():
        for thing in vars(module).values():
            # A fast tokenizer is copied: it keeps the settings of its last call, and two threads may not set them.
            if _tokenizes(thing) and not getattr(thing, "is_fast", False):
                memo[id(thing)] = thing
        for parameter in module._parameters.values():
            if parameter is not None and id(parameter) not in memo:
                memo[id(parameter)] = nn.Parameter(convert(parameter), requires_grad=False)
        for buffer in module._buffers.values():
            if buffer is not None and id(buffer) not in memo:
                memo[id(buffer)] = convert(buffer)
        for hooks in (module._forward_hooks, module._forward_pre_hooks):
            memo.update({id(hook): hook for hook in hooks.values()})
    copied = copy.deepcopy(model, memo)
    copied.eval()
    for module in copied.modules():
        module._backward_hooks.clear()
        module._backward_pre_hooks.clear()
        for key, hook in list(module._forward_hooks.items()):
            if getattr(hook, "__name__", "") in TRAINING_HOOKS:
                del module._forward_hooks[key]
        config: Any = getattr(module, "config", None)
        if getattr(config, "_attn_implementation", "sdpa") not in ("sdpa", "eager"):
            config._attn_implementation = "sdpa"
    return copied


TRAINING_HOOKS = ("make_inputs_require_grads", "make_inputs_require_grad")
"""What gradient checkpointing hangs on the embedding layer, in transformers and in peft."""


def _tokenizes(thing: object) -> bool:
    names = ("convert_ids_to_tokens", "encode_batch")
    return not isinstance(thing, nn.Module) and any(hasattr(thing, name) for name in names)


class Tap:
    """What the layers of one twin report to: it lets them run, notes what enters them, or puts other states in.

    Attributes:
        handed: what the layers handed on besides hidden states when they were last recorded, in order.
    """

    def __init__(self) -> None:
        self._calls = 0
        self._inputs: list[Tensor] | None = None
        self.handed: list[Any] = []
        self._handing: Sequence[Any] = ()
        self._states: Tensor | None = None
        self._enter = 0
        self._absent: dict[int, set[Any]] = {}

    def record(self, run: Callable[[], Any]) -> tuple[Any, list[Tensor]]:
        """Run the model once; also the hidden states that entered each layer, in order."""
        self._calls, self._inputs, self.handed = 0, [], []
        try:
            return run(), self._inputs
        finally:
            self._inputs = None

    def enter(self, layer: int, states: Tensor, handing: Sequence[Any], run: Callable[[], Any]) -> Any:
        """Run the model with `states` entering `layer`; those before it do not run, but hand on what was recorded."""
        self._calls, self._states, self._enter, self._handing = 0, states, layer, handing
        try:
            return run()
        finally:
            self._states = None

    @property
    def carries(self) -> bool:
        """Whether layers hand on more than hidden states to one another, as T5's do."""
        return any(isinstance(part, Tensor) for output in self.handed for part in output or ())

    def visit(self, layer: nn.Module, hidden: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Called in place of one layer, with what the model hands to it."""
        call, self._calls = self._calls, self._calls + 1
        if self._states is not None:
            if call < self._enter:
                return _with_states(self._handing[call], self._states)
            if call == self._enter:
                hidden = self._states
        # transformers makes masks of ones while a graph is captured, with which attention takes eight kernels for one:
        # what was None before, when the same was run without, is None again.
        given: dict[Any, Any] = {**dict(enumerate(args)), **kwargs}
        if capturing(hidden.device):
            given |= dict.fromkeys(self._absent.get(call, set()) & given.keys())
        elif self._inputs is not None or self._states is not None:
            self._absent[call] = {place for place, value in given.items() if value is None}
        output = layer(hidden, *(given.pop(place) for place in range(len(args))), **given)
        if self._inputs is not None:
            self._inputs.append(hidden)
            self.handed.append(_first_row(output))
        return output


def _first_row(output: Any) -> Any:
    """What a layer hands on besides the hidden states, for one text: T5's position bias, for example."""
    if isinstance(output, tuple):
        return (None, *(part[:1] if isinstance(part, Tensor) else part for part in output[1:]))
    return None


def _with_states(recorded: Any, states: Tensor) -> Any:
    return (states, *recorded[1:]) if isinstance(recorded, tuple) else states


class Tapped(nn.Module):
    """A layer of a twin that reports to a tap; in all else it looks like the layer itself."""

    def __init__(self, layer: nn.Module, tap: Tap) -> None:
        super().__init__()
        self.layer = layer
        self.tap = tap

    def __getattr__(self, name: str) -> Any:
        try:
            return super().__getattr__(name)
        except AttributeError:
            return getattr(super().__getattr__("layer"), name)

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The layer's own forward pass, by way of the tap."""
        if args:
            return self.tap.visit(self.layer, args[0], args[1:], kwargs)
        rest = {name: value for name, value in kwargs.items() if name != "hidden_states"}
        return self.tap.visit(self.layer, kwargs["hidden_states"], (), rest)


def tap_layers(model: nn.Module, run: Callable[[], Any]) -> tuple[Tap, int]:
    """Put a tap on the layers of a twin, and count them (ALBERT calls one layer several times: calls count).

    The layers are the outermost list of modules that hidden states of shape (batch, tokens, width) pass through.

    Args:
        model: the twin.
        run: runs the model once, on any input.
    """
    lists = {name: module for name, module in model.named_modules() if isinstance(module, nn.ModuleList)}
    calls = dict.fromkeys(lists, 0)
    handles = []
    for name, modules in lists.items():

        def count(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], name: str = name) -> None:
            hidden = args[0] if args else kwargs.get("hidden_states")
            if isinstance(hidden, Tensor) and hidden.is_floating_point() and hidden.ndim == 3:
                calls[name] += 1

        handles += [module.register_forward_pre_hook(count, with_kwargs=True) for module in modules]
    try:
        run()
    finally:
        for handle in handles:
            handle.remove()
    used = [name for name in lists if calls[name]]
    outermost = [name for name in used if not any(name.startswith(f"{other}.") for other in used if other != name)]
    if not outermost:
        raise ModelError(
            f"no list of layers was found in {type(model).__name__}: pairlens explains transformers and static "
            "embeddings. If this is a sentence encoder of another kind, please report it."
        )
    chosen = lists[max(outermost, key=lambda name: calls[name])]
    tap = Tap()
    for index, layer in enumerate(chosen):
        chosen[index] = Tapped(layer, tap)
    return tap, max(calls[name] for name in outermost)


def untap(model: M) -> M:
    """The twin with its layers as they were before they were tapped."""
    for modules in model.modules():
        if isinstance(modules, nn.ModuleList):
            for index, layer in enumerate(modules):
                if isinstance(layer, Tapped):
                    modules[index] = layer.layer
    return model


def widths(model: nn.Module) -> tuple[int, int]:
    """The width of the widest projection in a layer, and the number of attention heads, to plan memory by."""
    transformer = getattr(model, "auto_model", model)
    config = getattr(transformer, "config", None)
    config = getattr(config, "text_config", None) or config
    hidden = getattr(config, "hidden_size", None) or getattr(config, "d_model", None) or 1024
    names = ("intermediate_size", "n_inner", "hidden_dim", "d_ff", "ffn_dim")
    inner = max([int(getattr(config, name, None) or 0) for name in names] + [4 * hidden])
    heads = getattr(config, "num_attention_heads", None) or getattr(config, "num_heads", None) or 12
    return inner, heads
