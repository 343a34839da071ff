"""Find the layers of a transformer of any family, record what enters them, and start a forward pass at layer ℓ.

This is the only file that knows how model families are built. A transformer runs as a twin: a copy of its structure
around the same weights, so that the caller's model is never changed. Every layer of the twin is wrapped and calls the
tap, which can record the hidden states that enter the layers, or replace those that enter layer ℓ and skip the layers
before it. No class is named: layers are found by watching which list of modules the hidden states pass through.
"""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from typing import Any, TypeVar

import torch
from torch import Tensor, nn

from pairlens.autodiff import capturing
from pairlens.errors import ModelError

M = TypeVar("M", bound=nn.Module)


def twin(model: M, *, dtype: torch.dtype, device: torch.device) -> M:
    """Return a copy of the model's structure around the same weights, in evaluation mode.

    Weights that already have the dtype and the device are shared; others are converted. Forward hooks are shared too,
    as they are part of what the model computes, except those of training.
    """

    def convert(tensor: Tensor) -> Tensor:
        target = dtype if tensor.is_floating_point() else tensor.dtype
        return tensor.detach().to(device=device, dtype=target)

    # deepcopy looks into the memo first: objects in it are shared, not copied.
    memo: dict[int, Any] = {}
    for module in model.modules():
        for value in vars(module).values():
            # A fast tokenizer is copied: it stores the settings of its last call, so two threads cannot share it.
            if _is_tokenizer(value) and not getattr(value, "is_fast", False):
                memo[id(value)] = value
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
"""Names of the hooks that gradient checkpointing adds to the embedding layer, in transformers and in peft."""


def _is_tokenizer(value: object) -> bool:
    names = ("convert_ids_to_tokens", "encode_batch")
    return not isinstance(value, nn.Module) and any(hasattr(value, name) for name in names)


class Tap:
    """Runs the layers of one twin, records the hidden states that enter them, or replaces them.

    Attributes:
        handed: the layers' outputs besides hidden states when they were last recorded, in order.
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
        """Return the result of `run`, a forward pass, and the hidden states that entered each layer, in order."""
        self._calls, self._inputs, self.handed = 0, [], []
        try:
            return run(), self._inputs
        finally:
            self._inputs = None

    def enter(self, layer: int, states: Tensor, handing: Sequence[Any], run: Callable[[], Any]) -> Any:
        """Return the result of `run` with `states` entering `layer`; earlier layers return their recorded outputs."""
        self._calls, self._states, self._enter, self._handing = 0, states, layer, handing
        try:
            return run()
        finally:
            self._states = None

    @property
    def carries(self) -> bool:
        """Whether layers pass on tensors besides hidden states, as T5's position bias."""
        return any(isinstance(part, Tensor) for output in self.handed for part in output or ())

    def visit(self, layer: nn.Module, hidden: Tensor, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Run one layer, or stand in for it, with the arguments that the model calls it with."""
        call, self._calls = self._calls, self._calls + 1
        if self._states is not None:
            if call < self._enter:
                return _with_states(self._handing[call], self._states)
            if call == self._enter:
                hidden = self._states
        # While a CUDA graph is captured, transformers makes masks of ones, with which attention takes eight kernels
        # instead of one: an argument that was None outside of capture is set to None again.
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
    """Return a layer's output without the hidden states, for one text: T5's position bias, for example."""
    if isinstance(output, tuple):
        return (None, *(part[:1] if isinstance(part, Tensor) else part for part in output[1:]))
    return None


def _with_states(recorded: Any, states: Tensor) -> Any:
    """Return a recorded output with these hidden states."""
    return (states, *recorded[1:]) if isinstance(recorded, tuple) else states


class Tapped(nn.Module):
    """A layer of a twin that runs through a tap; all other attributes are those of the layer."""

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
        """Run the layer through the tap."""
        if args:
            return self.tap.visit(self.layer, args[0], args[1:], kwargs)
        rest = {name: value for name, value in kwargs.items() if name != "hidden_states"}
        return self.tap.visit(self.layer, kwargs["hidden_states"], (), rest)


def tap_layers(model: nn.Module, run: Callable[[], Any]) -> tuple[Tap, int]:
    """Wrap the layers of a twin; return their tap and number (ALBERT calls one layer several times: calls count).

    The layers are the outermost list of modules that hidden states of shape (batch, tokens, width) pass through.

    Args:
        model: the twin.
        run: a forward pass on any input.
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
    """Return the twin with its layers unwrapped."""
    for modules in model.modules():
        if isinstance(modules, nn.ModuleList):
            for index, layer in enumerate(modules):
                if isinstance(layer, Tapped):
                    modules[index] = layer.layer
    return model


def widths(model: nn.Module) -> tuple[int, int]:
    """Return the width of the widest projection in a layer and the number of attention heads, to estimate memory."""
    transformer = getattr(model, "auto_model", model)
    config = getattr(transformer, "config", None)
    config = getattr(config, "text_config", None) or config
    hidden = getattr(config, "hidden_size", None) or getattr(config, "d_model", None) or 1024
    names = ("intermediate_size", "n_inner", "hidden_dim", "d_ff", "ffn_dim")
    inner = max([int(getattr(config, name, None) or 0) for name in names] + [4 * hidden])
    heads = getattr(config, "num_attention_heads", None) or getattr(config, "num_heads", None) or 12
    return inner, heads
