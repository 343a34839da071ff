"""The score of two texts and its explanation: the measure (cosine or dot), and the treatment of the references.

With embeddings V = R + Σ_s U[s], the score V_a · V_b expands into four terms. The treatments differ in what they do
with the terms that hold a reference R. In all of them

    score = base + Σ effects_a + Σ effects_b + Σ matrix + gap
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from pairlens import linalg
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.explanation import Explanation
from pairlens.attribution.forecast import cross_validate, measured_scores
from pairlens.attribution.products import ScoredText, entry_error, product
from pairlens.errors import InputError, ReferenceWarning, choose, warn
from pairlens.methods import Trials
from pairlens.shapes import Matrix

TREATMENTS = ("project", "shift", "keep", "ignore")
MEASURES = ("cosine", "dot")
LARGE_BASES = (
    "the references' share of some scores, the explanations' base, is more than half of them: their matrix says little "
    "about such pairs. Look at reference_terms='keep'."
)


def space_for(reference_terms: str, measure: str) -> str:
    """The embedding that a treatment decomposes: before a final Normalize, of length one, or the model's output."""
    if reference_terms in ("shift", "ignore"):
        return "raw"
    return "unit" if measure == "cosine" else "output"


def explain(
    a: Contributions, b: Contributions, *, reference_terms: str, measure: str, many: bool = False
) -> Explanation:
    """The explanation of two texts from their contributions.

    Args:
        a: one text's contributions.
        b: the other's, of the same model.
        reference_terms: "project", "shift", "keep" or "ignore".
        measure: "cosine" or "dot".
        many: warn of large bases in the same words for all pairs, which Python shows once.
    """
    _check_same_model(a, b)
    text_a, text_b = _scored(a, reference_terms, measure), _scored(b, reference_terms, measure)
    matrix, base = product(text_a, text_b)
    score = float(text_a.embedding.dot(text_b.embedding))
    effects_a, effects_b = np.zeros(len(matrix)), np.zeros(matrix.shape[1])
    if reference_terms == "project":
        _warn_of_large_base(base, score, many)
    elif reference_terms == "keep":
        scale = text_a.scale * text_b.scale
        base = scale * float(text_a.reference @ text_b.reference)
        effects_a = scale * (text_a.values @ text_b.reference)
        effects_b = scale * (text_b.values @ text_a.reference)
    elif reference_terms == "ignore":
        reference_a, reference_b = text_a.scale * text_a.reference, text_b.scale * text_b.reference
        base = float(text_a.embedding @ reference_b + reference_a @ text_b.embedding - reference_a @ reference_b)
    return Explanation(
        text_a=a.text,
        text_b=b.text,
        score=score,
        matrix=matrix,
        units_a=a.units,
        units_b=b.units,
        tokens_a=a.tokens,
        tokens_b=b.tokens,
        base=base,
        effects_a=effects_a,
        effects_b=effects_b,
        gap=score - base - float(effects_a.sum()) - float(effects_b.sum()) - float(matrix.sum()),
        gap_a=a.gap,
        gap_b=b.gap,
        entry_error=entry_error(text_a, text_b),
        **measured_scores(text_a, text_b),
        forecast=cross_validate(text_a, text_b) if reference_terms == "keep" else None,
        truncated_a=a.truncated,
        truncated_b=b.truncated,
        unknown_a=a.unknown,
        unknown_b=b.unknown,
        settings=_settings(text_a, text_b, reference_terms, measure),
    )


def explain_all(
    firsts: Sequence[Contributions],
    seconds: Sequence[Contributions],
    *,
    reference_terms: str,
    measure: str,
    many: bool = True,
) -> Iterator[Explanation]:
    """The explanations of many pairs, given by their first and their second texts, in order; see `explain`."""
    for a, b in zip(firsts, seconds, strict=True):
        yield explain(a, b, reference_terms=reference_terms, measure=measure, many=many)


def matrix_alone(a: Contributions, b: Contributions, *, reference_terms: str, measure: str) -> Matrix:
    """The matrix of contributions that need not add up to the embedding, (rows of a, rows of b)."""
    _check_same_model(a, b)
    return product(_scored(a, reference_terms, measure), _scored(b, reference_terms, measure))[0]


_cache: WeakKeyDictionary[Contributions, dict[tuple[str, str], ScoredText]] = WeakKeyDictionary()


def _scored(c: Contributions, reference_terms: str, measure: str) -> ScoredText:
    """A text under a treatment and a measure, cached for as long as its contributions live."""
    treated = _cache.get(c)
    if treated is None:
        treated = _cache[c] = {}
    text = treated.get((reference_terms, measure))
    if text is None:
        choose("reference_terms", reference_terms, TREATMENTS)
        choose("measure", measure, MEASURES)
        text = treated[reference_terms, measure] = _treat(c, reference_terms, measure)
    return text


def _treat(c: Contributions, reference_terms: str, measure: str) -> ScoredText:
    _check_space(c, reference_terms, measure)
    shifted = reference_terms == "shift"
    embedding = c.embedding - c.reference if shifted else c.embedding
    size = linalg.length(embedding)
    if size == 0:
        raise InputError(f"the embedding of {c.text!r:.60} is zero, so its similarity to anything means nothing.")
    if measure == "cosine":
        scale = 1 / size
    elif shifted and c.reference.any():
        scale = 1.0
    else:
        # Contributions from before a final Normalize: the model's own output is a multiple of the embedding.
        scale = linalg.length(c.output) / size
    noise = None
    if c.noise_weights is not None and c.noise_residuals is not None:
        noise = (c.noise_weights * scale, c.noise_residuals)
    return ScoredText(
        values=c.values,
        scale=scale,
        reference=np.zeros_like(c.reference) if shifted else c.reference,
        embedding=embedding * scale,
        error=c.bounds * scale,
        noise=noise,
        projects=reference_terms == "project",
        trials=_scaled_trials(c, scale) if reference_terms in ("keep", "project") else None,
        settings={name: value for name, value in c.settings.items() if name not in ("nodes", "role", "space")},
        roles_and_nodes=(c.settings.get("role"), c.settings.get("nodes")),
    )


def _scaled_trials(c: Contributions, scale: float) -> Trials | None:
    """The deletions that were tried on a text, times a factor; compounds and sentences are no units to delete."""
    if c.tried is None or c.tried_embeddings is None:
        return None
    plain = [unit.kind not in ("compound", "sentence") for unit in c.units]
    factor = np.float32(scale)
    predictions, richer = (None if a is None else a * factor for a in (c.tried_predictions, c.tried_with_compounds))
    return Trials(c.tried[:, plain], c.tried_embeddings * factor, predictions, richer, c.tried_weights)


def _check_space(c: Contributions, reference_terms: str, measure: str) -> None:
    """Raise where contributions belong to another embedding than the treatment's, unless the reference is zero."""
    space, wanted = c.settings.get("space"), space_for(reference_terms, measure)
    if space == wanted or not c.reference.any():
        return
    # "output" is another name: for "raw" where the model has no final Normalize, for "unit" where it has one.
    same = np.allclose(c.embedding, c.output, rtol=1e-4, atol=1e-6 * np.abs(c.output).max())
    if not (wanted == "output" and same):
        raise InputError(
            f"reference_terms={reference_terms!r} with measure={measure!r} needs contributions to the {wanted} "
            f"embedding, and these are to the {space} one. Decompose with the same reference_terms and measure."
        )


def _check_same_model(a: Contributions, b: Contributions) -> None:
    for name in ("model", "fingerprint"):
        one, other = a.settings.get(name), b.settings.get(name)
        if one != other:
            raise InputError(f"two models share no space: the contributions' {name} is {one!r} and {other!r}.")
    if a.embedding.size != b.embedding.size:
        raise InputError(f"the two embeddings have {a.embedding.size} and {b.embedding.size} dimensions.")


def _warn_of_large_base(base: float, score: float, many: bool) -> None:
    if abs(base) > abs(score) / 2:
        message = (
            f"the references' share, base = {base:.3f}, is more than half of the score, {score:.3f}: the "
            "matrix says little about this pair. Look at reference_terms='keep'."
        )
        warn(LARGE_BASES if many else message, ReferenceWarning)


def _settings(a: ScoredText, b: ScoredText, reference_terms: str, measure: str) -> dict[str, Any]:
    """What made an explanation; where the two texts' settings differ, a list of both."""
    one, other = a.settings, b.settings
    shared = one
    if one != other:
        names = dict.fromkeys([*one, *other])
        shared = {n: one.get(n) if one.get(n) == other.get(n) else [one.get(n), other.get(n)] for n in names}
    (role_a, nodes_a), (role_b, nodes_b) = a.roles_and_nodes, b.roles_and_nodes
    return {
        **shared,
        "measure": measure,
        "reference_terms": reference_terms,
        "roles": [role_a, role_b],
        "nodes": [nodes_a, nodes_b],
    }
