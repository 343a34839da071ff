"""Which parts of speech make up the score: the relations among the strongest pairs of words, and what they rebuild."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.language.relations import Words, gather, mismatch_sentence
from pairlens.study.materials import Materials
from pairlens.study.result import Result, Row, percent

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["parts-of-speech"]
SHARES = (0.10, 0.25, 0.50, 1.0)
STRONGEST = 0.9
MERGED = {"PROPN": "NOUN"}
SHORT = {"NOUN": "noun", "VERB": "verb", "ADJ": "adjective", "ADV": "adverb", "PRON": "pronoun", "DET": "determiner"}
SHORT |= {"ADP": "adposition", "AUX": "auxiliary", "NUM": "number", "PUNCT": "punctuation", "PART": "particle"}
SHORT |= {"CCONJ": "conjunction", "SCONJ": "subordinator"}


def study(materials: Materials) -> Result:
    """Shares of relations among the highest contributions, and predictions rebuilt from some of them."""
    gathered, views, mismatches = gather(materials, lambda word: MERGED.get(word.upos, word.upos), "parts of speech")
    table: list[Row] = []
    raw: list[Row] = []
    figures: dict[str, Any] = {}
    for view, pairs in gathered.items():
        shares = relation_shares(pairs)
        ten = [relation for relation, _ in shares[SHARES[0]].most_common(10)]
        table += [{"view": view.label, "relation": name, **_row(shares, name)} for name in _order(shares)]
        rebuilt = {row.pair: rebuild(row, ten) for row in pairs if row.total != 0}
        raw += [{"pair": pair, "view": view.label, **own} for pair, own in rebuilt.items()]
        figures[view.label] = {"ten": ten, **describe(list(rebuilt.values()))}
    pairs = max(map(len, gathered.values()))
    settings = materials.describe(views, pairs, words=materials.words, **mismatches)
    return Result(
        ABOUT,
        table,
        raw,
        figures=figures,
        sentences=_sentences(table, figures, materials.words, mismatches),
        settings=settings,
        draw=lambda: draw(table, figures, settings),
    )


def relation_shares(pairs: Sequence[Words]) -> dict[float, Counter[str]]:
    """How often each relation is among the highest contributions of all pairs together, for several shares of them."""
    values = np.concatenate([words.values for words in pairs])
    names = [name for words in pairs for name in words.relations]
    order = np.argsort(-values, kind="stable")
    return {
        share: Counter(names[i] for i in order[: max(1, int(np.ceil(share * len(order) - 1e-9)))]) for share in SHARES
    }


def rebuild(words: Words, ten: Sequence[str]) -> Row:
    """What some pairs of words sum to, as a share of the whole."""
    names = np.array(words.relations)
    strongest = np.argsort(-np.abs(words.values), kind="stable")
    kept = strongest[: int(np.ceil(STRONGEST * len(strongest) - 1e-9))]
    sums = {
        "nouns_and_verbs": words.values[np.isin(names, ["NOUN–NOUN", "NOUN–VERB", "VERB–VERB"])].sum(),
        "ten_relations": words.values[np.isin(names, list(ten))].sum(),
        "strongest": words.values[kept].sum(),
        "all_words": words.values.sum(),
    }
    return {"total": words.total, **{name: float(value / words.total) for name, value in sums.items()}}


def describe(rebuilt: Sequence[Row]) -> Row:
    """Means, standard deviations and medians over pairs of texts."""
    found: Row = {}
    for name in ("nouns_and_verbs", "ten_relations", "strongest", "all_words"):
        values = np.array([row[name] for row in rebuilt])
        found[name] = {"mean": float(values.mean()), "sd": float(values.std()), "median": float(np.median(values))}
    return found


def _order(shares: dict[float, Counter[str]]) -> list[str]:
    """The relations, the most frequent among the highest first."""
    return sorted(shares[1.0], key=lambda name: (*(-shares[share][name] for share in SHARES), name))


def _row(shares: dict[float, Counter[str]], name: str) -> Row:
    return {f"top_{share:.0%}": shares[share][name] / shares[share].total() for share in SHARES} | {
        "word_pairs": shares[1.0][name]
    }


def _sentences(table: Sequence[Row], figures: Row, words: str, mismatches: Row) -> list[str]:
    said = []
    for label, own in figures.items():
        first = next(row for row in table if row["view"] == label)
        rebuilt, middles = [], []
        for name in ("nouns_and_verbs", "ten_relations", "strongest"):
            rebuilt.append(f"{percent(own[name]['mean'])} ± {percent(own[name]['sd'])}")
            middles.append(percent(own[name]["median"]))
        said.append(
            f"{label}: among the highest 10 % of the contributions of pairs of words, {spell(first['relation'])} is "
            f"the most frequent relation with {percent(first['top_10%'])} (of all pairs of words, "
            f"{percent(first['top_100%'])}). Nouns and verbs rebuild {rebuilt[0]} of the whole, the ten most frequent "
            f"relations {rebuilt[1]}, the strongest 90 % of the pairs {rebuilt[2]} (mean ± standard deviation; "
            f"medians {', '.join(middles)})."
        )
    whole = (
        "Special tokens are part of the whole." if words == "sum" else "The whole is what all pairs of words sum to."
    )
    said.append(f"A word is the {words} of its tokens. Proper nouns count as nouns. {whole}")
    return [*said, mismatch_sentence(mismatches)]


def spell(name: str) -> str:
    """A relation of universal parts of speech in words.

    Example:
        >>> spell("NOUN–VERB")
        'noun–verb'
    """
    return "–".join(SHORT.get(part, part.lower() or "unknown") for part in name.split("–"))


def draw(table: Sequence[Row], figures: Row, settings: Any) -> Figure:
    """The picture: a panel for every view, with the ten relations that are most frequent among the highest 10 %."""
    figure, axes = picture.sheet(3.9, 1, len(figures), width=max(5.5, 4.9 * len(figures)))
    colours = ("#08519c", "#4292c6", "#9ecae1", "#bdbdbd")
    for axis, (label, own) in zip(axes[0], figures.items(), strict=True):
        rows = {row["relation"]: row for row in table if row["view"] == label}
        for place, (share, colour) in enumerate(zip(SHARES, colours, strict=True)):
            heights = [-(line + (place - 1.5) * 0.2) for line in range(len(own["ten"]))]
            values = [rows[name][f"top_{share:.0%}"] for name in own["ten"]]
            name = "all" if share == 1 else f"highest {percent(share)}"
            axis.barh(heights, values, height=0.19, color=colour, label=name)
        axis.set_yticks([-line for line in range(len(own["ten"]))], [spell(name) for name in own["ten"]])
        axis.tick_params(axis="y", length=0)
        axis.grid(axis="y", visible=False)
        picture.percent(axis.xaxis)
        axis.locator_params(axis="x", nbins=7, steps=[1, 2, 5, 10])
        picture.label(axis, x="share of the pairs of words", title=label)
        picture.legend(axis, loc="lower right")
    picture.caption(figure, ABOUT.title, settings)
    return figure
