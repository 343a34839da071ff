"""Which parts of speech the strongest pairs of words have, and how much of the score they rebuild."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.language.relations import Words, gather, mismatch_sentence
from pairlens.study.materials import Materials
from pairlens.study.result import Result, percent
from pairlens.study.statistics import Record, spread, where

ABOUT = CATALOGUE["parts-of-speech"]
SHARES = (0.10, 0.25, 0.50, 1.0)
STRONGEST = 0.9
MERGED = {"PROPN": "NOUN"}
SHORT = {"NOUN": "noun", "VERB": "verb", "ADJ": "adjective", "ADV": "adverb", "PRON": "pronoun", "DET": "determiner"}
SHORT |= {"ADP": "adposition", "AUX": "auxiliary", "NUM": "number", "PUNCT": "punctuation", "PART": "particle"}
SHORT |= {"CCONJ": "conjunction", "SCONJ": "subordinator"}


def study(materials: Materials) -> Result:
    """Shares of relations among the highest contributions, and predictions rebuilt from some of them."""
    gathered, settings = gather(materials, lambda word: MERGED.get(word.upos, word.upos), "parts of speech")
    table: list[Record] = []
    raw: list[Record] = []
    figures: dict[str, Any] = {}
    for view, pairs in gathered.items():
        shares = relation_shares(pairs)
        ten = [relation for relation, _ in shares[SHARES[0]].most_common(10)]
        table += [{"view": view.label, **row} for row in _rows(shares)]
        rebuilt = {words.pair: rebuild(words, ten) for words in pairs if words.total != 0}
        raw += [{"pair": pair, "view": view.label, **row} for pair, row in rebuilt.items()]
        figures[view.label] = {"ten": ten, **describe(list(rebuilt.values()))}
    sentences = _sentences(table, figures, settings)
    return Result(ABOUT, settings, table, raw, figures, sentences, partial(draw, table, figures))


def relation_shares(pairs: Sequence[Words]) -> dict[float, Counter[str]]:
    """How often each relation is among the highest contributions of all pairs together, for several shares of them."""
    values = np.concatenate([words.values for words in pairs])
    names = [name for words in pairs for name in words.relations]
    order = np.argsort(-values, kind="stable")
    return {share: Counter(names[i] for i in order[: max(1, _count(share, len(order)))]) for share in SHARES}


def _count(share: float, size: int) -> int:
    """The number of values that are a share of all, rounded up; rounding errors add none."""
    return int(np.ceil(share * size - 1e-9))


def rebuild(words: Words, ten: Sequence[str]) -> Record:
    """The sums of some pairs of words, as shares of the whole."""
    names = np.array(words.relations)
    strongest = np.argsort(-np.abs(words.values), kind="stable")
    sums = {
        "nouns_and_verbs": words.values[np.isin(names, ["NOUN–NOUN", "NOUN–VERB", "VERB–VERB"])].sum(),
        "ten_relations": words.values[np.isin(names, list(ten))].sum(),
        "strongest": words.values[strongest[: _count(STRONGEST, len(strongest))]].sum(),
        "all_words": words.values.sum(),
    }
    return {"total": words.total, **{name: float(value / words.total) for name, value in sums.items()}}


def describe(rebuilt: Sequence[Record]) -> Record:
    """Means, standard deviations and medians over pairs of texts."""
    names = ("nouns_and_verbs", "ten_relations", "strongest", "all_words")
    return {name: spread(row[name] for row in rebuilt) for name in names}


def _rows(shares: dict[float, Counter[str]]) -> list[Record]:
    """One row a relation, the most frequent among the highest contributions first."""
    order = sorted(shares[1.0], key=lambda name: (*(-shares[share][name] for share in SHARES), name))
    return [
        {
            "relation": name,
            **{f"top_{share:.0%}": counts[name] / counts.total() for share, counts in shares.items()},
            "word_pairs": shares[1.0][name],
        }
        for name in order
    ]


def _sentences(table: Sequence[Record], figures: Record, settings: Record) -> list[str]:
    sentences = []
    for label, numbers in figures.items():
        first = where(table, view=label)[0]
        parts = [numbers[name] for name in ("nouns_and_verbs", "ten_relations", "strongest")]
        rebuilt = [f"{percent(part['mean'])} ± {percent(part['sd'])}" for part in parts]
        medians = ", ".join(percent(part["median"]) for part in parts)
        sentences.append(
            f"{label}: among the highest 10 % of the contributions of pairs of words, {spell(first['relation'])} is "
            f"the most frequent relation with {percent(first['top_10%'])} (of all pairs of words, "
            f"{percent(first['top_100%'])}). Nouns and verbs rebuild {rebuilt[0]} of the whole, the ten most frequent "
            f"relations {rebuilt[1]}, the strongest 90 % of the pairs {rebuilt[2]} (mean ± standard deviation; "
            f"medians {medians})."
        )
    words = settings["words"]
    whole = (
        "Special tokens are part of the whole." if words == "sum" else "The whole is what all pairs of words sum to."
    )
    sentences.append(f"A word is the {words} of its tokens. Proper nouns count as nouns. {whole}")
    return [*sentences, mismatch_sentence(settings)]


def spell(name: str) -> str:
    """A relation of universal parts of speech in words.

    Example:
        >>> spell("NOUN–VERB")
        'noun–verb'
    """
    return "–".join(SHORT.get(part, part.lower() or "unknown") for part in name.split("–"))


def draw(table: Sequence[Record], figures: Record, settings: Any) -> picture.Figure:
    """The picture: a panel for every view, with the ten relations that are most frequent among the highest 10 %."""
    figure, axes = picture.sheet(3.9, 1, len(figures), width=max(5.5, 4.9 * len(figures)))
    colours = ("#08519c", "#4292c6", "#9ecae1", "#bdbdbd")
    for axis, (label, numbers) in zip(axes[0], figures.items(), strict=True):
        rows = {row["relation"]: row for row in where(table, view=label)}
        for place, (share, colour) in enumerate(zip(SHARES, colours, strict=True)):
            values = [rows[name][f"top_{share:.0%}"] for name in numbers["ten"]]
            name = "all" if share == 1 else f"highest {percent(share)}"
            picture.bars(axis, place, values, 0.19, color=colour, label=name)
        picture.bar_names(axis, [spell(name) for name in numbers["ten"]])
        axis.locator_params(axis="x", nbins=7, steps=[1, 2, 5, 10])
        picture.label(axis, x="share of the pairs of words", title=label)
        picture.legend(axis, loc="lower right")
    picture.caption(figure, ABOUT.title, settings)
    return figure
