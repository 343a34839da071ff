"""Explanations of other kinds, for comparison only. Each takes a pair and gives an `Explanation` of tokens.

Those that have a vector for every token (`gradient_input`, `bilrp`) multiply the vectors of two texts, as pairlens
does: A[s, t] = U_a[s] · U_b[t]. Those that have a number for every token (`integrated_gradients`, `rollout`) say
nothing of pairs; their matrix is the outer product of the two texts' numbers, scaled to the score. Nothing is left
for the references: base and effects are zero, and what the matrix misses of the score is the gap.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import numpy as np
import torch
from torch import Tensor
from torch.func import jvp, vmap

from pairlens.attribution.explanation import Explanation
from pairlens.attribution.treatments import space_for
from pairlens.autodiff.modes import differentiable
from pairlens.errors import MissingExtra, ModelError
from pairlens.lens import Lens
from pairlens.model.encoder import Encoder
from pairlens.model.states import Heads
from pairlens.model.tokenize import Text
from pairlens.shapes import Array
from pairlens.study.faithfulness.relevance import LocallyLinear

STEPS = 32
"""Gauss–Legendre nodes of the first-order integrated gradients."""


@dataclass(frozen=True)
class Side:
    """One text, entered at the embedding layer's output.

    `vector` is the text's part in the score: score = vector_a · vector_b.
    """

    encoder: Encoder
    text: Text
    heads: Heads
    vector: Array

    @classmethod
    def of(cls, lens: Lens, text: str, measure: str, layer: int = 0, space: str | None = None) -> Side:
        """Read a text and run it up to a layer."""
        encoder = transformer(lens)
        read = encoder.read(text)
        heads = encoder.heads([read], layer, "padding", encoder.space(None, space or space_for("project", measure)))
        _, embedding, output, _ = encoder.arrived(heads.pending)
        vector = (output if measure == "dot" else embedding)[0]
        if measure == "cosine":
            vector = vector / np.linalg.norm(vector)
        return cls(encoder, read, heads, vector)

    def tail(self, states: Tensor) -> Tensor:
        """Hidden states, (points, tokens, width), to embeddings, (points, dim)."""
        rows = torch.zeros(len(states), dtype=torch.long, device=states.device)
        return self.encoder.tail(self.heads)(states, rows)

    def products(self) -> Array:
        """U[s] = J_s · x_s: what the embedding does as token s's own states grow, (tokens, dim).

        As a part of the vector in the score: where the embedding is not of length one, its length is a constant.
        """
        states = self.heads.x

        def push(token: Tensor) -> Tensor:
            own = torch.arange(states.shape[1], device=states.device) == token
            return jvp(self.tail, (states,), (torch.where(own[:, None], states, 0),))[1][0]

        found = vmap(push)(torch.arange(states.shape[1], device=states.device)).double().cpu().numpy()
        return found * self.length

    @property
    def length(self) -> float:
        """What the tail's embedding is multiplied with to make the vector in the score."""
        return float(np.linalg.norm(self.vector)) / float(
            np.linalg.norm(self.encoder.arrived(self.heads.pending)[1][0])
        )


def bertscore(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """Cosines of the output states of every two tokens, the matrix that BERTScore starts from (arXiv 1904.09675)."""
    sides = [Side.of(lens, text, measure, layer=lens.layers) for text in (a, b)]
    states = [side.heads.x[0].double().cpu().numpy() for side in sides]
    one, other = (own / np.linalg.norm(own, axis=1, keepdims=True) for own in states)
    return _explanation("bertscore", measure, sides, one @ other.T)


def gradient_input(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """Gradient × input for pairs: the mixed second derivative of the score, times both tokens' embeddings.

    The score is e_a · e_b, so x_s · ∂²score/∂x_s∂y_t · y_t = (J_s x_s) · (J_t y_t): one Jacobian product a token, at
    the text itself, where integrated Jacobians take the mean along a path.
    """
    with _running(lens):
        sides = [Side.of(lens, text, measure) for text in (a, b)]
        one, other = (side.products() for side in sides)
    return _explanation("gradient-input", measure, sides, one @ other.T)


def bilrp(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """BiLRP (arXiv 2003.05431): the relevance of every token for every dimension of the embedding, multiplied.

    With the AH and LN rules relevance is gradient × input of a locally linear model, so forward mode gives all
    dimensions at once. The embedding is the one before a final normalisation; its length is a constant. Exact but
    for biases, whose relevance is no token's, and for gated layers (SwiGLU), whose gate counts like its input.
    """
    with _running(lens):
        sides = [Side.of(lens, text, measure, space="raw") for text in (a, b)]
        with LocallyLinear():
            one, other = (side.products() for side in sides)
    return _explanation("bilrp", measure, sides, one @ other.T)


def integrated_gradients(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """First-order integrated gradients (Captum) of the score, for each text with the other's embedding fixed.

    The path is the papers': from the padding reference to the text, at the embedding layer's output. The matrix is
    the outer product of the two texts' attributions, times the positive number that makes its sum as large as the
    score: a token that raises the score together with one that raises it gets a positive entry.
    """
    with _running(lens):
        sides = [Side.of(lens, text, measure) for text in (a, b)]
        one, other = (attribute(own, rest.vector) for own, rest in (sides, sides[::-1]))
    total = abs(one.sum() * other.sum())
    score = float(sides[0].vector @ sides[1].vector)
    matrix = np.outer(one, other) * (abs(score) / total if total else 1.0)
    return _explanation("integrated-gradients", measure, sides, matrix)


def attribute(side: Side, other: Array) -> Array:
    """Captum's integrated gradients of the score for one text, summed over the width, (tokens,)."""
    try:
        from captum.attr import IntegratedGradients
    except ImportError as error:
        raise MissingExtra("captum", "study") from error
    vector = torch.as_tensor(other, dtype=side.heads.x.dtype, device=side.heads.x.device)
    method = IntegratedGradients(lambda states: side.tail(states) @ vector * side.length)
    found = method.attribute(side.heads.x, side.heads.r, n_steps=STEPS, method="gausslegendre", internal_batch_size=8)
    return found[0].detach().sum(-1).double().cpu().numpy()


def rollout(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """Attention rollout (arXiv 2005.00928): which tokens the pooled positions look at, through all layers.

    The matrix is the outer product of the two texts' shares, times the score: it sums to the score, and its entries
    all have the score's sign.
    """
    sides = [Side.of(lens, text, measure) for text in (a, b)]
    one, other = (looks(side) for side in sides)
    return _explanation("rollout", measure, sides, np.outer(one, other) * float(sides[0].vector @ sides[1].vector))


def looks(side: Side) -> Array:
    """The share of every token in what the model pools: attention, half of it skipped by each layer, (tokens,)."""
    seen: list[Tensor] = []
    with side.encoder.running(), differentiable(), LocallyLinear(seen):
        side.tail(side.heads.x)
    if len(seen) != side.encoder.layers():
        raise ModelError(f"rollout needs the attention of {side.encoder.layers()} layers, and saw it in {len(seen)}.")
    pooling = side.encoder.pooling()
    rows = {"mean": slice(None), "cls": slice(0, 1), "lasttoken": slice(-1, None)}.get(pooling)
    if rows is None:
        raise ModelError(f"rollout has no rule for {pooling} pooling; it knows mean, cls and lasttoken.")
    through = np.eye(len(side.text.units))
    for weights in seen:
        mean = weights[0].double().mean(0).cpu().numpy()
        through = (mean / mean.sum(1, keepdims=True) + np.eye(len(mean))) / 2 @ through
    return through[rows].mean(0)


def random(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """Noise: another matrix for every pair and model, and always the same one."""
    key = zlib.crc32(f"{a}\0{b}\0{transformer(lens).fingerprint}".encode())
    sides = [Side.of(lens, text, measure) for text in (a, b)]
    shape = [len(side.text.units) for side in sides]
    return _explanation("random", measure, sides, np.random.default_rng(key).standard_normal(shape))


Rival = Callable[[Lens, str, str, str], Explanation]
RIVALS: dict[str, Rival] = {
    "bertscore": bertscore,
    "gradient-input": gradient_input,
    "integrated-gradients": integrated_gradients,
    "rollout": rollout,
    "bilrp": bilrp,
    "random": random,
}


# Inside.


def transformer(lens: Lens) -> Encoder:
    """The lens's model, if it has layers to look into."""
    encoder = lens.encoder
    if not isinstance(encoder, Encoder):
        raise ModelError("a black box has no layers to look into.")
    if encoder.route().static:
        raise ModelError("static embeddings have no layers to look into.")
    return encoder


@contextmanager
def _running(lens: Lens) -> Iterator[None]:
    """The model, ours alone and ready to be differentiated."""
    with transformer(lens).running(), differentiable():
        yield


def _explanation(name: str, measure: str, sides: Sequence[Side], matrix: Array) -> Explanation:
    a, b = sides
    score = float(a.vector @ b.vector)
    missing = score - float(matrix.sum())
    units_a, units_b = a.text.units, b.text.units
    return Explanation(
        text_a=a.text.text,
        text_b=b.text.text,
        score=score,
        matrix=matrix.astype(np.float64),
        units_a=units_a,
        units_b=units_b,
        tokens_a=a.text.tokens,
        tokens_b=b.text.tokens,
        base=0.0,
        effects_a=np.zeros(len(units_a)),
        effects_b=np.zeros(len(units_b)),
        gap=missing,
        gap_a=abs(missing / score),
        gap_b=abs(missing / score),
        entry_error=np.zeros_like(matrix, dtype=np.float64),
        truncated_a=a.text.truncated,
        truncated_b=b.text.truncated,
        settings={"model": a.encoder.name, "method": name, "measure": measure, "level": "token"},
    )
