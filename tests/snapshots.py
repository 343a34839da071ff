"""Snapshots of everything that a lens must not change in a model, and the papers' adjusted models on disk."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import nn

import zoo


def snapshot(model: Any) -> dict[str, Any]:
    """Return the visible state of a model and of PyTorch, for comparison."""
    named = dict(model.named_modules())
    tensors = {**dict(model.named_parameters()), **dict(model.named_buffers())}
    tokenizer, config = model.tokenizer, getattr(getattr(model[0], "auto_model", None), "config", None)
    backend = getattr(tokenizer, "backend_tokenizer", tokenizer)
    return {
        "training": {name: module.training for name, module in named.items()},
        "attributes": {name: sorted(vars(module)) for name, module in named.items()},
        "classes": {name: type(module) for name, module in named.items()},
        "hooks": {name: [id(hook) for hook in hooks_of(module)] for name, module in named.items()},
        "tensors": {n: (id(t), t.data_ptr(), t.device, t.dtype, t.requires_grad) for n, t in tensors.items()},
        "values": {name: hash(t.detach().float().numpy().tobytes()) for name, t in tensors.items()},
        "gradients": {name: t.grad for name, t in tensors.items()},
        "config": repr(config),
        "attention": getattr(config, "_attn_implementation", None),
        "tokenizer": (id(tokenizer), repr(backend.truncation), repr(backend.padding), tokenizer.__repr__()),
        "similarity": model._similarity_fn_name,
        "prompts": (dict(model.prompts), model.default_prompt_name),
        # Not Python's own random state: beartype draws from it.
        "random": (torch.get_rng_state().tolist(), repr(np.random.get_state())),  # noqa: NPY002
        "kernels": (
            torch.backends.cuda.flash_sdp_enabled(),
            torch.backends.cuda.mem_efficient_sdp_enabled(),
            torch.backends.cuda.math_sdp_enabled(),
        ),
        "modes": (torch.is_grad_enabled(), torch.is_inference_mode_enabled(), torch.get_default_dtype()),
    }


def save_adjusted(family: str, folder: Path, **options: Any) -> SentenceTransformer:
    """Write a folder like the papers' released models; return the model without the shift."""
    options = {"normalize": False, **options}
    model = zoo.encoder(family, **options)
    model.save_pretrained(str(folder), create_model_card=False)
    modules = json.loads((folder / "modules.json").read_text())
    modules[0]["type"] = "xsbert.models.ShiftingReferenceTransformer"
    (folder / "modules.json").write_text(json.dumps(modules))
    return model


def hooks_of(module: nn.Module) -> list[Any]:
    """Return all hooks of a module."""
    kinds = (module._forward_hooks, module._forward_pre_hooks, module._backward_hooks, module._backward_pre_hooks)
    return [hook for hooks in kinds for hook in hooks.values()]
