"""Fade: integrate along the path on which a text's tokens fade in together, from its special tokens alone."""

from __future__ import annotations

import zlib
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor

from pairlens.autodiff import differentiable
from pairlens.errors import InputError, ModelError, NotConverged, choose, whole
from pairlens.methods.base import Batch, Decomposition, Method
from pairlens.model import Encoder, Text
from pairlens.model.gates import OTHERS, POWERS, Gates, Positions, find_positions
from pairlens.model.loaded import PROBE
from pairlens.model.pooling import check_pooling
from pairlens.model.reference import reference_ids, reference_token
from pairlens.quadrature import Integral, Problems, Rule, integrate
from pairlens.shapes import Array, Embeddings, Points, Rows


@dataclass(frozen=True)
class Fade(Method):
    """Aumann-Shapley values of soft deletion.

    Every token of the text has a gate g in [0, 1]: log g is added to all attention scores that the token gets, in every
    layer, and g is its weight in pooling. Gates of 0 leave the special tokens (and the prompt), gates of 1 the text
    itself. A token's contribution is the integral of the embedding's derivative by its gate while all gates open
    together, U[s] = ∫₀¹ ∂e/∂g_s dt at g = t. No token is ever replaced by another, so every point of the path is made
    of the text's own words.

    Attributes:
        positions: "close": the remaining tokens close up as others fade, as they do when text is really deleted;
            "keep": every token keeps its position. Closing up moves learned and rotary positions. Biases of the
            distance between two tokens (T5, MPNet, DeBERTa) and sliding windows keep the distances of the whole text.
        paths: 1, or an even number: the average over so many paths on which the tokens fade in at different times,
            token s as t to the power of k_s, in opposite pairs. Nearer to real deletions, at `paths` times the cost:
            0.85 instead of 0.82 agreement with 4 paths, 0.87 with 8.
        seed: selects the paths.
    """

    positions: str = "close"
    paths: int = 1
    seed: int = 0
    name = "fade"

    def __post_init__(self) -> None:
        choose("positions", self.positions, POWERS)
        if whole("Fade's paths", self.paths, 1) > 1 and self.paths % 2:
            raise InputError(f"Fade's paths come in opposite pairs: 1 or an even number, not {self.paths}.")
        whole("Fade's seed", self.seed, 0)

    def describe(self, encoder: Encoder, role: str | None) -> dict[str, Any]:
        """The method's own entries of a result's settings."""
        several = {"paths": self.paths, "seed": self.seed} if self.paths > 1 else {}
        return {"layer": None, "reference": "special tokens", "positions": self.positions, **several}

    def decompose(self, encoder: Encoder, batch: Batch, rule: Rule) -> list[Decomposition]:
        """One decomposition per text of the batch."""
        role = batch.role
        route = encoder.route(role)
        if route.static:
            raise ModelError("static embeddings are their own decomposition: use method='integrated-jacobian'.")
        check_pooling(encoder.pooling(role), route.modules, batch.texts)
        space = batch.space
        # Every path is a problem of its own, so each text is repeated once per path.
        texts = [text for text in batch.texts for _ in range(self.paths)]
        labels = [row for row in batch.labels for _ in range(self.paths)]
        with encoder.running():
            function = self.function(encoder, texts, space)
            states = encoder.states(texts, 0, "padding", space)
            x = torch.ones(states.x.shape[:2], dtype=encoder.dtype, device=encoder.device)
            r = torch.tensor([text.kept for text in texts], device=x.device).to(x)
            # Tokens that do not fade contribute nothing: no tangent there.
            active = [
                sorted({label for label, kept in zip(row, text.kept, strict=True) if not kept})
                for row, text in zip(labels, texts, strict=True)
            ]
            compact = [
                [players.index(label) if label in players else -1 for label in row]
                for row, players in zip(labels, active, strict=True)
            ]
            groups = tuple(map(len, active))
            cost, budget = encoder.cost(x.shape[1], role), encoder.budget(x.shape[1], role)
            problems = Problems(function, x, r, torch.tensor(compact, device=x.device), groups, cost, budget)
            _, plain, output = encoder.arrived(states.pending)
            integrals = _integrate(problems, texts, plain, rule)
            if encoder.adjusted:
                integrals = [_from_zero(integral) for integral in integrals]
        means = [_mean(integrals[start : start + self.paths]) for start in range(0, len(texts), self.paths)]
        columns = zip(means, output[:: self.paths], active[:: self.paths], batch.counts, strict=True)
        return [
            Decomposition.from_integral(integral, row).expand(players, count)
            for integral, row, players, count in columns
        ]

    def function(self, encoder: Encoder, texts: Sequence[Text], space: str) -> Callable[[Points, Rows], Embeddings]:
        """Return the embedding as a function of the path's variable u of every token; gates are a power of u.

        For an adjusted model, the embedding of the reference with the same gates is subtracted.
        """
        with encoder.running(), differentiable():
            moving = _positions(encoder, texts[0].role)
        positions = moving if self.positions == "close" else {}
        ids = None
        if encoder.adjusted:
            token, _ = reference_token("padding", encoder.route(texts[0].role).reader)
            ids = torch.stack([reference_ids(text, token) for text in texts])

        # On several paths some tokens fade in early; a higher power keeps their gates from jumping open.
        power = POWERS[self.positions if self.paths == 1 else "keep"]
        exponents = power * self._exponents(texts).to(encoder.device, encoder.dtype)

        def function(path: Points, rows: Rows) -> Embeddings:
            gates = Gates.along(path, exponents[rows])
            embedding = encoder.faded(texts, rows, gates, positions, space)
            return embedding if ids is None else embedding - encoder.faded(texts, rows, gates, positions, space, ids)

        return function

    def _exponents(self, texts: Sequence[Text]) -> Tensor:
        """Return when each token fades in on its text's path, (texts, tokens); paths come in opposite pairs."""
        exponents = np.ones((len(texts), len(texts[0].tokens)))
        for i in range(0, len(texts), 2) if self.paths > 1 else ():
            random = np.random.default_rng([self.seed, i % self.paths, zlib.crc32(texts[i].text.encode())])
            times = (random.permutation(exponents.shape[1]) + 0.5) / exponents.shape[1] * 2 - 1
            exponents[i], exponents[i + 1] = np.exp(times), np.exp(-times)
        return torch.as_tensor(exponents)


def _mean(integrals: Sequence[Integral]) -> Integral:
    """Return the average of one text's integrals over several paths between the same ends."""
    if len(integrals) == 1:
        return integrals[0]
    values = np.mean([integral.values for integral in integrals], axis=0)
    total = integrals[0].embedding - integrals[0].reference
    gap = float(np.linalg.norm(values.sum(0) - total) / np.linalg.norm(total)) if total.any() else 0.0
    error = np.mean([integral.error for integral in integrals], axis=0)
    return replace(integrals[0], values=values, error=error, gap=gap, nodes=sum(i.nodes for i in integrals))


def _integrate(problems: Problems, texts: Sequence[Text], embeddings: Array, rule: Rule) -> list[Integral]:
    """Solve the problems, and check that they end at the model's own embeddings, (texts, dim)."""
    try:
        integrals = integrate(problems, rule)
    except NotConverged as error:
        text = texts[error.index].text
        raise NotConverged(f"in {text!r:.60} {error}", gap=error.gap, tol=error.tol) from None
    for integral, plain in zip(integrals, embeddings, strict=True):
        miss = np.linalg.norm(integral.embedding - plain)
        if not miss <= 1e-3 * np.linalg.norm(plain):
            raise ModelError(
                f"this model with open gates does not reproduce its own embedding (off by {miss:.1e}), so it would "
                "explain another function. Please report the model's family."
            )
    return integrals


def _from_zero(integral: Integral) -> Integral:
    """Return an adjusted model's integral with a reference of zero; raise unless it is zero but for rounding."""
    if np.linalg.norm(integral.reference) > 1e-5 * np.linalg.norm(integral.embedding):
        raise ModelError(
            "in this adjusted model the reference's positions are not the text's, so that special tokens alone are not "
            "its zero; use positions='close'."
        )
    return replace(integral, reference=np.zeros_like(integral.reference))


def _positions(encoder: Encoder, role: str | None) -> Positions:
    """Return the modules whose positions close up; the first time, check on a probe that shut gates hide their tokens.

    There are none where attention does nothing: such a model is a mean of one vector per token, and fading only weights
    these.
    """
    route = encoder.route(role)
    if route.positions is not None:
        return route.positions
    probe = route.reader.read(PROBE, "")
    kept = torch.tensor([probe.kept], device=encoder.device)
    ids = probe.features["input_ids"].to(encoder.device)
    shut = Gates.along(kept.to(encoder.dtype), 1)
    wide = Gates.along(torch.ones_like(shut.values), 1)

    def embed(gates: Gates, ids: Tensor = ids) -> Tensor:
        return encoder.faded([probe], torch.zeros_like(ids[:, 0]), gates, {}, "raw", ids)

    def differ(a: Tensor, b: Tensor) -> bool:
        return bool((a - b).norm() > 1e-5 * b.norm())

    other = ids.clone()
    other[~kept] = ids[~kept].roll(1)
    if differ(embed(shut, other), embed(shut)):
        raise ModelError(
            "a token whose gate is shut still changes this model's embedding: something besides attention and mean "
            f"pooling moves tokens' states about; {OTHERS}."
        )
    moving = find_positions(route.modules[0], lambda: embed(wide), ids.shape[1])
    mixes = differ(embed(Gates(wide.values, shut.logs)), embed(wide))
    route.positions = moving if mixes else {}
    return route.positions
