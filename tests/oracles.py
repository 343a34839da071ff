"""The papers' algorithm, slowly and straight from the formula, to test the engine against. It shares no code with src.

For a text and a layer: x and r are the layer's input for the text and for its reference, e the rest of the encoder up
to a final Normalize. With the Jacobian J averaged over points of the straight path from r to x,

    A[(s, i), (t, j)] = Δa[s, i] (J_aᵀ J_b)[(s, i), (t, j)] Δb[t, j],        Δ = x - r

summed over the hidden dimensions i and j is the attribution matrix of two texts.
"""

import copy
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
import torch
from sentence_transformers import SentenceTransformer
from torch import Tensor, nn

# Where each family keeps its layers. ALBERT calls its one layer again and again.
LAYERS = {
    "bert": "encoder.layer",
    "roberta": "encoder.layer",
    "xlm-roberta": "encoder.layer",
    "mpnet": "encoder.layer",
    "electra": "encoder.layer",
    "distilbert": "transformer.layer",
    "deberta-v2": "encoder.layer",
    "albert": "encoder.albert_layer_groups",
    "modernbert": "layers",
    "nomic_bert": "layers",
    "t5": "encoder.block",
    "qwen3": "layers",
    "gemma3": "layers",
    "embeddinggemma": "layers",
}


@dataclass(frozen=True)
class Path:
    """A text's path: the input of a layer for the text, `x`, and for its reference, `r`, (tokens, width), in float64.

    `tail` maps points of the path, (points, tokens, width), to embeddings before a final Normalize, (points, dim).
    """

    x: Tensor
    r: Tensor
    tail: Callable[[Tensor], Tensor]

    def at(self, alphas: np.ndarray) -> Tensor:
        """The points r + α (x - r), (points, tokens, width)."""
        return self.r + torch.as_tensor(alphas)[:, None, None] * (self.x - self.r)

    @property
    def ends(self) -> np.ndarray:
        """e(r) and e(x), (2, dim)."""
        with torch.no_grad():
            return self.tail(self.at(np.array([0.0, 1.0]))).numpy()


def path(model: SentenceTransformer, family: str, text: str, layer: int, filler: str = "pad_token") -> Path:
    """The path of a text at a layer, 0 to L; the model is copied. `filler` stands for the text in the reference."""
    twin = copy.deepcopy(model).double().eval()
    stages: list[Any] = [stage for stage in twin if type(stage).__name__ != "Normalize"]
    assert len(stages) >= len(list(twin)) - 1
    found = stages[0].tokenizer([text], return_tensors="pt", return_special_tokens_mask=True)
    special = found.pop("special_tokens_mask").bool()
    features = dict(found)
    filling = torch.tensor(getattr(stages[0].tokenizer, f"{filler}_id"))
    reference = torch.where(special, features["input_ids"], filling)
    both = {name: torch.cat([value, value]) for name, value in features.items()}
    both |= {"input_ids": torch.cat([features["input_ids"], reference])}
    assert bool(both["attention_mask"].all())

    def finish(ran: dict[str, Any]) -> Tensor:
        return reduce(lambda carried, stage: stage(carried), stages[1:], ran)["sentence_embedding"]

    layers: Any = reduce(getattr, LAYERS[family].split("."), stages[0].auto_model)
    depth = stages[0].auto_model.config.num_hidden_layers
    seen: list[Tensor] = []
    with torch.no_grad():
        if layer == depth:
            seen.append(stages[0](dict(both))["token_embeddings"])
        else:
            with _entering(layers, layer, seen, None):
                stages[0](dict(both))

    def tail(points: Tensor) -> Tensor:
        inputs = {name: value.expand(len(points), *value.shape[1:]) for name, value in features.items()}
        if layer == depth:
            return finish({**inputs, "token_embeddings": points})
        with _entering(layers, layer, [], points):
            return finish(stages[0](inputs))

    x, r = seen[0]
    return Path(x, r, tail)


@contextmanager
def _entering(layers: nn.ModuleList, layer: int, seen: list[Tensor], states: Tensor | None) -> Iterator[None]:
    """Note what enters a layer, and put other states in its place where there are some."""
    calls = 0

    def hook(_: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        nonlocal calls
        calls += 1
        if calls - 1 != (layer if len(layers) == 1 else 0):
            return None
        seen.append(args[0] if args else kwargs["hidden_states"])
        if states is None:
            return None
        return ((states, *args[1:]), kwargs) if args else (args, {**kwargs, "hidden_states": states})

    handle = layers[0 if len(layers) == 1 else layer].register_forward_pre_hook(hook, with_kwargs=True)
    try:
        yield
    finally:
        handle.remove()


def jacobian(path: Path, alphas: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """The weighted sum of e's Jacobian at points of the path, one backward pass a dimension, (dim, tokens, width)."""
    points = path.at(alphas).requires_grad_()
    embeddings = path.tail(points)
    rows = []
    for dimension in range(embeddings.shape[1]):
        (gradient,) = torch.autograd.grad(embeddings[:, dimension].sum(), points, retain_graph=True)
        rows.append(torch.einsum("p,psi->si", torch.as_tensor(weights), gradient))
    return torch.stack(rows).numpy()


def riemann(path: Path, steps: int) -> np.ndarray:
    """The papers' integrated Jacobian: `steps` equal steps, right end points, (dim, tokens, width)."""
    return jacobian(path, np.arange(1, steps + 1) / steps, np.full(steps, 1 / steps))


def features(
    a: Path, b: Path, jacobian_a: np.ndarray, jacobian_b: np.ndarray, *, terms: str, measure: str
) -> np.ndarray:
    """The papers' attributions, between hidden dimensions, (tokens of a, width, tokens of b, width).

    `terms` is "shift", the first paper's e(x) - e(r), or "ignore", the second paper's plain e(x): they differ in the
    norms that cosine divides by.
    """
    flat_a, flat_b = (j.reshape(len(j), -1) for j in (jacobian_a, jacobian_b))
    delta_a, delta_b = ((side.x - side.r).numpy().ravel() for side in (a, b))
    full = delta_a[:, None] * (flat_a.T @ flat_b) * delta_b[None, :]
    norms = [np.linalg.norm(e - r if terms == "shift" else e) for r, e in (a.ends, b.ends)]
    return full.reshape(*a.x.shape, *b.x.shape) / (np.prod(norms) if measure == "cosine" else 1)


def attributions(
    a: Path, b: Path, jacobian_a: np.ndarray, jacobian_b: np.ndarray, *, terms: str, measure: str
) -> np.ndarray:
    """The papers' matrix: the same, summed over the hidden dimensions, (tokens of a, tokens of b)."""
    return features(a, b, jacobian_a, jacobian_b, terms=terms, measure=measure).sum((1, 3))


def truth(path: Path, nodes: int = 160) -> np.ndarray:
    """The contributions of the tokens to e(x) - e(r) by a rule far longer than any test needs, (tokens, dim)."""
    x, w = np.polynomial.legendre.leggauss(nodes)
    return np.einsum("ksi,si->sk", jacobian(path, (x + 1) / 2, w / 2), (path.x - path.r).numpy())


def differences(path: Path, alpha: float, step: float) -> np.ndarray:
    """Central finite differences of e at one point of the path, in the direction of each token's Δ, (tokens, dim)."""
    point = path.at(np.array([alpha]))
    directions = torch.diag_embed(torch.ones(len(path.x)))[..., None].double() * (path.x - path.r)
    with torch.no_grad():
        ahead, behind = (path.tail(point + sign * step * directions) for sign in (1, -1))
    return ((ahead - behind) / (2 * step)).numpy()


# Paths whose derivatives are known, for rules and plans.


def arctan(centre, width):
    """A bump of poles at centre ± i width, in two dimensions, and its slope."""

    def e(a):
        return np.stack([np.arctan((a - centre) / width), a], axis=1)

    def slope(a):
        return np.stack([width / ((a - centre) ** 2 + width**2), np.ones_like(a)], axis=1)

    return e, slope


def miss_of(table, e, slope):
    """The relative gap of a rule for a function e with this slope."""
    target = e(np.array([1.0]))[0] - e(np.array([0.0]))[0]
    return np.linalg.norm(table.weights @ slope(table.nodes) - target) / np.linalg.norm(target)
