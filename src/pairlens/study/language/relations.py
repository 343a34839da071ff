"""The relations of the words of pairs of texts, with what they contribute: what two studies of linguistics share."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from pairlens.shapes import Array
from pairlens.study.language.annotations import MISMATCHES, Side, Word, by_word, report
from pairlens.study.materials import Materials
from pairlens.study.result import Lacking, Row
from pairlens.study.views import View


@dataclass(frozen=True)
class Words:
    """The words of one pair of texts.

    Attributes:
        pair: its number.
        relations: of every pair of words, (pairs of words,).
        values: their contributions, (pairs of words,).
        total: what all tokens contribute, special ones among them.
    """

    pair: int
    relations: list[str]
    values: Array
    total: float


def gather(
    materials: Materials, tag: Callable[[Word], str], what: str
) -> tuple[dict[View, list[Words]], list[View], dict[str, Any]]:
    """The words of every pair with their relations, in every view, and what did not match.

    Args:
        materials: with annotations.
        tag: what is related, from a word: its part of speech or its role.
        what: the name of that.
    """
    if materials.annotations is None:
        raise Lacking(f"this study needs {what}. Give --annotations F.conllu, or --spacy with a pipeline's name.")
    views = materials.choice.standard(materials.lens)
    gathered: dict[View, list[Words]] = {}
    mismatches: Counter[str] = Counter()
    tokens = 0
    for view in views:
        mismatches.clear()  # the same in every view
        tokens = 0
        gathered[view] = []
        for row, e in materials.explain(view):
            tokens += len(e.units_a) + len(e.units_b)
            found = by_word(e, materials.annotations, mismatches, materials.words)
            if found is None:
                continue
            a, b, matrix = found
            relations = _relations(a, b, tag)
            total = float(matrix.sum()) if materials.words == "mean" else float(e.matrix.sum())
            gathered[view].append(Words(row.number, relations, matrix.ravel(), total))
    if not any(gathered.values()):
        raise Lacking(f"the annotations {materials.annotations.source} hold none of the pairs' texts.")
    if not any(name.strip("– ") for pairs in gathered.values() for words in pairs for name in words.relations):
        raise Lacking(f"the annotations {materials.annotations.source} hold no {what}.")
    matching = {"annotations": materials.annotations.source, "mismatches": report(mismatches), "tokens": tokens}
    return gathered, views, matching


def _relations(a: Side, b: Side, tag: Callable[[Word], str]) -> list[str]:
    tags = [[tag(word) for word in side.words] for side in (a, b)]
    return [relation(one, other) for one in tags[0] for other in tags[1]]


def relation(one: str, other: str) -> str:
    """The relation of two tags, whichever comes first.

    Example:
        >>> relation("VERB", "NOUN")
        'NOUN–VERB'
    """
    return "–".join(sorted((one, other)))


def mismatch_sentence(mismatches: Row) -> str:
    """What did not match, in words."""
    parts = [f"{count} {MISMATCHES[name]}" for name, count in mismatches["mismatches"].items() if count]
    return f"Of {mismatches['tokens']:,} tokens, mismatches: {'; '.join(parts) or 'none'}."
