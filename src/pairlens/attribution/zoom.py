"""From sentences to words: a long text is explained by its sentences, and by the words of those that matter most.

Both levels are deletions. A sentence's vector comes from deleting whole sentences. The words of a sentence come from
deletions inside it, while the rest of the text stays. What the sentence does beyond its single words has a row of its
own, so that the words and that row sum to the sentence, and the sentences to the text.

A sentence's words depend on its text alone, as everything that is decomposed. Only the choice of the sentences depends
on the other text.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np

from pairlens.attribution.contributions import Contributions
from pairlens.attribution.explanation import Explanation
from pairlens.attribution.forecast import trial_weights
from pairlens.methods import Decomposition, Trials
from pairlens.methods.banzhaf import KEEP
from pairlens.model import FIXED
from pairlens.shapes import Array
from pairlens.subsets import squared_errors
from pairlens.text import Unit, group, sentences, words

LONGEST = 48
"""Texts of up to this many words are explained by words if no level is asked for."""
OPENED = 24
"""Sentences are opened, the strongest first, while they have up to this many words together; one always is."""


class Inside(NamedTuple):
    """The words of one sentence, and what deleting them does to the text's embedding while the rest stays."""

    words: tuple[Unit, ...]
    decomposition: Decomposition


def is_long(text: str) -> bool:
    """Whether a text is zoomed into if no level is asked for: it has many words, and several sentences.

    Example:
        >>> is_long("A cat."), is_long(60 * "A cat. ")
        (False, True)
    """
    return len(words(text)) > LONGEST and has_sentences(text)


def has_sentences(text: str) -> bool:
    """Whether a text has several sentences."""
    return len(sentences(text)) > 1


def strongest_sentences(e: Explanation, side: str) -> list[Unit]:
    """The sentences of one text of an explanation whose deletion changes the score most, up to `OPENED` words.

    By the model's own scores without each sentence where these are known, else by those that the explanation predicts.
    """
    units: Sequence[Unit] = getattr(e, f"units_{side}")
    measured = getattr(e, f"measured_{side}")
    places = [i for i, unit in enumerate(units) if unit.kind == "text"]
    losses = {i: abs(e.score - (e.without(**{side: [i]}) if measured is None else measured[i])) for i in places}
    chosen: list[Unit] = []
    left = OPENED
    for place in sorted(places, key=lambda i: -losses[i]):
        count = len(words(units[place].text))
        if chosen and count > left:
            break
        chosen.append(units[place])
        left -= count
    return chosen


def words_of(text: str, tokens: Sequence[Unit], sentence: Unit) -> tuple[tuple[Unit, ...], list[int]]:
    """The words of a sentence that have tokens, and for every token of the text its word, `FIXED` outside the sentence.

    Args:
        text: the text.
        tokens: its tokens, as the model reads them.
        sentence: one of its sentences.
    """
    units, homes = group(text, tokens, "word", finest=True)
    inside = [sentence.start <= unit.start < sentence.end and unit.kind == "text" for unit in units]
    places = np.cumsum(inside) - 1
    labels = [int(places[home]) if inside[home] else FIXED for home in homes]
    return tuple(unit for unit, is_inside in zip(units, inside, strict=True) if is_inside), labels


def open_sentences(c: Contributions, inside: Mapping[Unit, Inside]) -> Contributions:
    """Contributions with some sentences replaced by their words, and rows for what these sentences do beyond them.

    Args:
        c: the contributions of a text's sentences.
        inside: the words of some of these sentences.
    """
    if not inside:
        return c
    opened = {unit: inside[unit] for unit in c.units if unit in inside and len(inside[unit].words) > 1}
    texts = [unit for unit in c.units if unit.kind == "text"]
    rests = [Unit.sentence(texts.index(unit) + 1, unit, opened[unit].words) for unit in opened]
    units = [one for unit in c.units for one in (opened[unit].words if unit in opened else (unit,))] + rests
    rows = {unit: i for i, unit in enumerate(units)}
    values = np.zeros((len(units), c.values.shape[1]))
    weights = [np.zeros((0 if c.noise_weights is None else len(c.noise_weights), len(units)))]
    residuals = [np.zeros((0, values.shape[1])) if c.noise_residuals is None else c.noise_residuals]
    home = [rows[rests[list(opened).index(unit)] if unit in opened else unit] for unit in c.units]
    values[home] = c.values
    if c.noise_weights is not None:
        weights[0][:, home] = c.noise_weights
    for rest, part in zip(rests, opened.values(), strict=True):
        at, known = [rows[word] for word in part.words], part.decomposition
        values[at] = known.values
        values[rows[rest]] -= known.values.sum(0)
        if known.noise is not None:
            draws = np.zeros((len(known.noise[0]), len(units)))
            draws[:, at], draws[:, rows[rest]] = known.noise[0], -known.noise[0].sum(1)
            weights.append(draws)
            residuals.append(known.noise[1])
    noise_weights, noise_residuals = np.concatenate(weights), np.concatenate(residuals).astype(np.float32)
    error = np.sqrt(squared_errors(noise_weights, noise_residuals))
    if c.noise_weights is None:
        # An index stores how large the errors of sentences are, and not the draws they are made of.
        error[home] = np.hypot(error[home], c.error)
    trials = _trials(c, opened, rows, home)
    return replace(
        c,
        units=tuple(units),
        values=values,
        error=error,
        noise_weights=noise_weights if len(noise_weights) else None,
        noise_residuals=noise_residuals if len(noise_weights) else None,
        tried=trials and trials.kept,
        tried_embeddings=trials and trials.embeddings,
        tried_predictions=trials and trials.predictions,
        tried_with_compounds=None,
        tried_weights=trials and trials.weights,
        settings={
            **c.settings,
            "level": "zoom",
            "nodes": c.settings["nodes"] + sum(part.decomposition.nodes for part in opened.values()),
        },
    )


def _trials(
    c: Contributions, opened: Mapping[Unit, Inside], rows: Mapping[Unit, int], home: Sequence[int]
) -> Trials | None:
    """The deletions of sentences and of words, with a column for every row.

    In a forecast, deletions of sentences weigh one half, and those of words the other half.
    """
    parts = [part.decomposition.trials for part in opened.values()]
    if c.tried is None or c.tried_embeddings is None or None in parts:
        return None
    kept = np.ones((len(c.tried), len(rows)), dtype=bool)
    kept[:, home] = c.tried
    for unit, part in opened.items():
        kept[:, [rows[word] for word in part.words]] = c.tried[:, [c.units.index(unit)]]
    whole = Trials(kept, c.tried_embeddings, c.tried_predictions, None, c.tried_weights)
    keep = float(c.settings.get("keep", KEEP))
    every, weights = [whole], [trial_weights(whole._replace(kept=c.tried), keep)]
    for part, trials in zip(opened.values(), parts, strict=True):
        assert trials is not None
        kept = np.ones((len(trials.kept), len(rows)), dtype=bool)
        kept[:, [rows[word] for word in part.words]] = trials.kept
        every.append(trials._replace(kept=kept))
        weights.append(trial_weights(trials, keep))
    shares = [0.5] + [0.5 / len(parts)] * len(parts) if parts else [1.0]
    return Trials(
        kept=np.concatenate([trials.kept for trials in every]),
        embeddings=np.concatenate([trials.embeddings for trials in every]),
        predictions=_joined([None if w is None else t.predictions for t, w in zip(every, weights, strict=True)]),
        weights=_joined([w if w is None else w * share for w, share in zip(weights, shares, strict=True)]),
    )


def _joined(arrays: Sequence[Array | None]) -> Array | None:
    """Arrays as one, or None where one of them is missing."""
    known = [array for array in arrays if array is not None]
    return np.concatenate(known) if len(known) == len(arrays) else None
