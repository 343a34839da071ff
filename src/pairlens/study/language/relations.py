"""The relations of the words of pairs of texts, with the words' contributions, for two studies of linguistics."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass

from pairlens.shapes import Array
from pairlens.study.language.annotations import MISMATCHES, AnnotatedWord, by_word, report
from pairlens.study.materials import Materials
from pairlens.study.result import Lacking
from pairlens.study.statistics import Record
from pairlens.study.views import View


@dataclass(frozen=True)
class Words:
    """The words of one pair of texts.

    Attributes:
        pair: the pair's number.
        relations: the relation of every pair of words.
        values: the contribution of every pair of words, (pairs of words,).
        total: the sum of the contributions of all tokens, special ones included.
    """

    pair: int
    relations: list[str]
    values: Array
    total: float


def gather(
    materials: Materials, tag: Callable[[AnnotatedWord], str], what: str
) -> tuple[dict[View, list[Words]], Record]:
    """The words of every pair with their relations, in every view, and the settings of a result.

    Args:
        materials: materials with annotations.
        tag: the tag of a word: its part of speech or its role.
        what: the name of the tags, for errors.
    """
    annotations = materials.annotations
    if annotations is None:
        raise Lacking(f"this study needs {what}. Give --annotations F.conllu, or --spacy with a pipeline's name.")
    gathered: dict[View, list[Words]] = {}
    mismatches: Counter[str] = Counter()
    tokens = 0
    for view in materials.choice.standard(materials.lens):
        mismatches.clear()  # the same in every view
        tokens = 0
        gathered[view] = []
        for row, e in materials.explain(view):
            tokens += len(e.units_a) + len(e.units_b)
            matched = by_word(e, annotations, mismatches, materials.words)
            if matched is None:
                continue
            words_a, words_b, matrix = matched
            relations = [relation(tag(one), tag(other)) for one in words_a for other in words_b]
            total = float(matrix.sum()) if materials.words == "mean" else float(e.matrix.sum())
            gathered[view].append(Words(row.number, relations, matrix.ravel(), total))
    if not any(gathered.values()):
        raise Lacking(f"the annotations {annotations.source} hold none of the pairs' texts.")
    if not any(name.strip("– ") for pairs in gathered.values() for words in pairs for name in words.relations):
        raise Lacking(f"the annotations {annotations.source} hold no {what}.")
    matching = {"annotations": annotations.source, "mismatches": report(mismatches), "tokens": tokens}
    pairs = max(map(len, gathered.values()))
    return gathered, materials.describe(list(gathered), pairs, words=materials.words, **matching)


def relation(one: str, other: str) -> str:
    """The relation of two tags, in either order.

    Example:
        >>> relation("VERB", "NOUN")
        'NOUN–VERB'
    """
    return "–".join(sorted((one, other)))


def mismatch_sentence(settings: Record) -> str:
    """The mismatches between words and tokens, in a sentence."""
    parts = [f"{count} {MISMATCHES[name]}" for name, count in settings["mismatches"].items() if count]
    return f"Of {settings['tokens']:,} tokens, mismatches: {'; '.join(parts) or 'none'}."
