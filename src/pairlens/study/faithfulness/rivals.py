"""Explanations by other methods than pairlens's, for comparison. Each function returns an `Explanation` of tokens.

`gradient_input` and `bilrp` have a vector for every token, and multiply the vectors of two texts as pairlens does:
A[s, t] = U_a[s] · U_b[t]. `integrated_gradients` and `rollout` have one number for every token and do not explain
pairs; their matrix is the outer product of the two texts' numbers, scaled to the score. No rival has reference terms:
base and effects are zero, and the gap is the score less the sum of the matrix. Cosines and noise are no parts of a
score; they are scaled like outer products, so that their absolute sum is that of the score. `word_cosine` compares
units embedded alone, so it depends on the level; the others add their tokens up.
"""

from __future__ import annotations

import zlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pairlens.attribution import Explanation
from pairlens.autodiff import differentiable
from pairlens.errors import ModelError
from pairlens.io import require
from pairlens.lens import Lens
from pairlens.shapes import Array, Matrix, PerUnit, Vector
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.study.faithfulness.relevance import LocallyLinear
from pairlens.study.faithfulness.text_at_layer import TextAtLayer, differentiable_model, layered_encoder

STEPS = 32
"""Gauss–Legendre nodes of the first-order integrated gradients."""


def bertscore(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """Scaled cosines of the output states of every two tokens, as in BERTScore (arXiv 1904.09675)."""
    text_a, text_b = (TextAtLayer.read(lens, text, measure, layer=lens.layers) for text in (a, b))
    states = [text.states.x[0].double().cpu().numpy() for text in (text_a, text_b)]
    unit_a, unit_b = (rows / np.linalg.norm(rows, axis=1, keepdims=True) for rows in states)
    return _scaled("bertscore", measure, text_a, text_b, unit_a @ unit_b.T)


def gradient_input(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """Gradient × input for pairs: the mixed second derivative of the score, times both tokens' embeddings.

    The score is e_a · e_b, so x_s · ∂²score/∂x_s∂y_t · y_t = (J_s x_s) · (J_t y_t): one Jacobian–vector product per
    token, at the text itself; integrated Jacobians take the mean along a path instead.
    """
    with differentiable_model(lens):
        text_a, text_b = (TextAtLayer.read(lens, text, measure) for text in (a, b))
        matrix = text_a.products() @ text_b.products().T
    return _explanation("gradient-input", measure, text_a, text_b, matrix)


def bilrp(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """BiLRP (arXiv 2003.05431): products of the relevance of two tokens, summed over the embedding's dimensions.

    With the AH and LN rules, relevance is gradient × input of a locally linear model, so forward mode gives all
    dimensions at once. The embedding is taken before a final normalisation, whose scale is a constant. The relevance
    is exact except for biases, whose relevance belongs to no token, and for gated layers (SwiGLU), where the gate
    counts as an input.
    """
    with differentiable_model(lens):
        text_a, text_b = (TextAtLayer.read(lens, text, measure, space="raw") for text in (a, b))
        with LocallyLinear():
            matrix = text_a.products() @ text_b.products().T
    return _explanation("bilrp", measure, text_a, text_b, matrix)


def integrated_gradients(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """First-order integrated gradients (Captum) of the score, for each text with the other's embedding fixed.

    The path is that of the papers: from the padding reference to the text, at the embedding layer's output. The matrix
    is the outer product of the two texts' attributions, times the positive factor that makes its absolute sum equal
    to that of the score: two tokens that both raise the score have a positive entry.
    """
    with differentiable_model(lens):
        text_a, text_b = (TextAtLayer.read(lens, text, measure) for text in (a, b))
        values_a, values_b = attribute(text_a, text_b.vector), attribute(text_b, text_a.vector)
    total = abs(values_a.sum() * values_b.sum())
    factor = abs(_score(text_a, text_b)) / total if total else 1.0
    return _explanation("integrated-gradients", measure, text_a, text_b, np.outer(values_a, values_b) * factor)


def attribute(text: TextAtLayer, other: Vector) -> PerUnit:
    """Captum's integrated gradients of the score for one text, summed over the width, (tokens,)."""
    captum: Any = require("captum.attr", "study")
    x, reference = text.states.x, text.states.r
    vector = torch.as_tensor(other, dtype=x.dtype, device=x.device)
    method = captum.IntegratedGradients(lambda states: text.tail(states) @ vector * text.scale)
    values = method.attribute(x, reference, n_steps=STEPS, method="gausslegendre", internal_batch_size=8)
    return values[0].detach().sum(-1).double().cpu().numpy()


def rollout(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """Attention rollout (arXiv 2005.00928): the attention of the pooled positions to every token, through all layers.

    The matrix is the outer product of the two texts' shares, times the score: it sums to the score, and all its
    entries have the score's sign.
    """
    text_a, text_b = (TextAtLayer.read(lens, text, measure) for text in (a, b))
    shares = np.outer(attention_shares(text_a), attention_shares(text_b))
    return _explanation("rollout", measure, text_a, text_b, shares * _score(text_a, text_b))


def attention_shares(text: TextAtLayer) -> PerUnit:
    """The share of every token in the pooled positions, (tokens,): in each layer half attention, half itself."""
    layers: list[Tensor] = []
    encoder = text.encoder
    with encoder.running(), differentiable(), LocallyLinear(layers):
        text.tail(text.states.x)
    if len(layers) != encoder.layers():
        raise ModelError(f"rollout needs the attention of {encoder.layers()} layers, and saw it in {len(layers)}.")
    pooling = encoder.pooling()
    rows = {"mean": slice(None), "cls": slice(0, 1), "lasttoken": slice(-1, None)}.get(pooling)
    if rows is None:
        raise ModelError(f"rollout has no rule for {pooling} pooling; it knows mean, cls and lasttoken.")
    through = np.eye(len(text.text.units))
    for weights in layers:
        mean = weights[0].double().mean(0).cpu().numpy()
        through = (mean / mean.sum(1, keepdims=True) + np.eye(len(mean))) / 2 @ through
    return through[rows].mean(0)


def word_cosine(lens: Lens, a: str, b: str, measure: str, level: str = "token") -> Explanation:
    """Scaled cosines of every two units embedded alone: one forward pass per unit, which sees none of the others."""
    texts = [TextAtLayer.read(lens, text, measure) for text in (a, b)]
    units = [DeletableText(text.encoder, text.text, "cosine", level) for text in texts]
    alone = [np.zeros((len(text.units), len(text.whole()))) for text in units]
    for rows, text in zip(alone, units, strict=True):
        rows[text.players] = text.embed(np.eye(text.count, dtype=bool))
        rows /= np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-12)
    e = _scaled("word-cosine", measure, texts[0], texts[1], alone[0] @ alone[1].T)
    return replace(e, units_a=units[0].units, units_b=units[1].units, settings={**e.settings, "level": level})


def random(lens: Lens, a: str, b: str, measure: str) -> Explanation:
    """Noise that depends on the pair and the model, and is the same in every run."""
    seed = zlib.crc32(f"{a}\0{b}\0{layered_encoder(lens).fingerprint}".encode())
    text_a, text_b = (TextAtLayer.read(lens, text, measure) for text in (a, b))
    matrix = np.random.default_rng(seed).standard_normal((len(text_a.text.units), len(text_b.text.units)))
    return _scaled("random", measure, text_a, text_b, matrix)


Rival = Callable[[Lens, str, str, str], Explanation]
RIVALS: dict[str, Rival] = {
    "word-cosine": word_cosine,
    "bertscore": bertscore,
    "gradient-input": gradient_input,
    "integrated-gradients": integrated_gradients,
    "rollout": rollout,
    "bilrp": bilrp,
    "random": random,
}


def explain_by_rival(name: str, lens: Lens, a: str, b: str, measure: str, level: str) -> Explanation:
    """A rival's explanation of a pair at a level, "token" or "word"."""
    if name == "word-cosine":
        return word_cosine(lens, a, b, measure, level)
    return RIVALS[name](lens, a, b, measure).at(level)


def _score(a: TextAtLayer, b: TextAtLayer) -> float:
    return float(a.vector @ b.vector)


def _scaled(name: str, measure: str, a: TextAtLayer, b: TextAtLayer, matrix: Array) -> Explanation:
    """The explanation whose matrix is a multiple of this one, with the absolute sum of the score."""
    total = float(np.abs(matrix).sum())
    return _explanation(name, measure, a, b, matrix * (abs(_score(a, b)) / total if total else 1.0))


def _explanation(name: str, measure: str, a: TextAtLayer, b: TextAtLayer, matrix: Array) -> Explanation:
    score = _score(a, b)
    missing = score - float(matrix.sum())
    entries: Matrix = matrix.astype(np.float64)
    return Explanation(
        text_a=a.text.text,
        text_b=b.text.text,
        score=score,
        matrix=entries,
        units_a=a.text.units,
        units_b=b.text.units,
        tokens_a=a.text.tokens,
        tokens_b=b.text.tokens,
        base=0.0,
        effects_a=np.zeros(len(entries)),
        effects_b=np.zeros(entries.shape[1]),
        gap=missing,
        gap_a=abs(missing / score),
        gap_b=abs(missing / score),
        entry_error=np.zeros_like(entries),
        truncated_a=a.text.truncated,
        truncated_b=b.text.truncated,
        settings={"model": a.encoder.name, "method": name, "measure": measure, "level": "token"},
    )
