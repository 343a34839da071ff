"""Parts of speech, lemmas and dependencies of texts, and a parser's words matched to a model's tokens by characters."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairlens.attribution.contributions import regroup
from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError
from pairlens.shapes import Array, Float
from pairlens.study.language import conllu
from pairlens.study.language.conllu import Sentence, Token, Word
from pairlens.text import Unit

MISMATCHES = {
    "texts_unannotated": "texts that the annotations do not hold",
    "texts_differing": "texts whose annotated words are not their characters",
    "words_sharing": "words that are written as one with others and have no characters of their own",
    "words_without_token": "words in which no token of the model begins",
    "tokens_across": "tokens of the model that begin in one word and end in another",
    "tokens_outside": "tokens of the model that belong to no word",
}


@dataclass(frozen=True)
class AnnotatedWord:
    """A word of the parser, with its characters [start, end) of the text.

    Attributes:
        start: the first character.
        end: the character after the last.
        lemma: the dictionary form, in lower case; the form itself if the parser gives none.
        upos: the universal part of speech, or "".
        deprel: the relation to its head without its subtype, or "".
    """

    start: int
    end: int
    lemma: str
    upos: str
    deprel: str


class Annotations:
    """The words of annotated texts.

    Args:
        documents: the sentences of every text.
        source: the name of their file.
    """

    def __init__(self, documents: Iterable[Sequence[Sentence]], source: str = "") -> None:
        self.source = source
        # A parser may change the white space of a text, and nothing else: texts are found by their other characters.
        self._documents = {_key(document): document for document in documents}
        self._known: dict[str, tuple[list[AnnotatedWord], int] | None] = {}
        if not self._documents:
            raise InputError(f"the annotations {source} hold no sentence.")

    @classmethod
    def load(cls, path: Path) -> Annotations:
        """Annotations from a CoNLL-U file."""
        return cls(conllu.read(path), str(path))

    def words(self, text: str, mismatches: Counter[str]) -> list[AnnotatedWord] | None:
        """The words of a text in order, or None if there are none; mismatches are counted."""
        if text not in self._known:
            document = self._documents.get("".join(text.split()))
            self._known[text] = None if document is None else _place(text, document)
        placed = self._known[text]
        if placed is None:
            mismatches["texts_unannotated"] += 1
            return None
        words, shared = placed
        if not words:
            mismatches["texts_differing"] += 1
            return None
        mismatches["words_sharing"] += shared
        return words


def _key(document: Sequence[Sentence]) -> str:
    parts = [
        sentence.text if sentence.text is not None else "".join(token.form for token in sentence.tokens)
        for sentence in document
    ]
    return "".join("".join(parts).split())


def _place(text: str, document: Sequence[Sentence]) -> tuple[list[AnnotatedWord], int]:
    """The words with their spans, and how many share a span with others; no words if the forms are not the text's."""
    tokens = [token for sentence in document for token in sentence.tokens]
    spans = _given(text, tokens) or _walked(text, tokens)
    if spans is None:
        return [], 0
    words: list[AnnotatedWord] = []
    shared = 0
    for token, (start, end) in zip(tokens, spans, strict=True):
        inner = [word.span for word in token.words] if len(token.words) > 1 else [(start, end)]
        if len(token.words) > 1 and not _split(text, start, end, inner):
            # Without characters of their own, the words are one: the first that depends on no other of them.
            inside = {word.number for word in token.words}
            head = next((word for word in token.words if word.head not in inside), token.words[0])
            words.append(_word(start, end, head))
            shared += len(token.words) - 1
        else:
            words += [_word(*span, word) for span, word in zip(inner, token.words, strict=True) if span is not None]
    return words, shared


def _given(text: str, tokens: Sequence[Token]) -> list[tuple[int, int]] | None:
    """The spans that the file gives, or None if they are not the forms' characters in order."""
    spans: list[tuple[int, int]] = []
    here = 0
    for token in tokens:
        span = token.span
        if span is None and token.words and token.words[0].span is not None and token.words[-1].span is not None:
            span = (token.words[0].span[0], token.words[-1].span[1])
        if span is None or span[0] < here or text[span[0] : span[1]] != token.form:
            return None
        spans.append(span)
        here = span[1]
    return spans


def _walked(text: str, tokens: Sequence[Token]) -> list[tuple[int, int]] | None:
    """The spans of the forms found one after the other, or None if anything but white space is between them."""
    forms = r"\s*".join(f"({re.escape(token.form)})" for token in tokens)
    matched = re.fullmatch(rf"\s*{forms}\s*", text)
    return None if matched is None else [matched.span(number) for number in range(1, len(tokens) + 1)]


def _split(text: str, start: int, end: int, spans: Sequence[tuple[int, int] | None]) -> bool:
    """Whether the words of a multi-word token have spans of their own, in order and inside the token."""
    here = start
    for span in spans:
        if span is None or not here <= span[0] < span[1] <= end:
            return False
        here = span[1]
    return bool(text[start:end])


def _word(start: int, end: int, word: Word) -> AnnotatedWord:
    return AnnotatedWord(start, end, (word.lemma or word.form).lower(), word.upos, word.deprel.split(":")[0].lower())


def match(
    text: str, units: Sequence[Unit], words: Sequence[AnnotatedWord], mismatches: Counter[str]
) -> tuple[list[AnnotatedWord], Float[Array, "words tokens"]]:
    """The words that hold a token, and 1 where a token belongs to a word.

    A token belongs to the word that holds the token's first character.

    Args:
        text: the text.
        units: its tokens.
        words: its words.
        mismatches: a counter of mismatches, which is updated.
    """
    coarse, sums = regroup(text, tuple(units), "token", [(word.start, word.end) for word in words])
    places = [place for place, unit in enumerate(coarse) if unit.kind == "text"]
    rest = [place for place, unit in enumerate(coarse) if unit.kind == "rest"]
    mismatches["tokens_outside"] += int(sums[rest].sum())
    full = [(word, sums[place]) for word, place in zip(words, places, strict=True) if sums[place].any()]
    mismatches["words_without_token"] += len(words) - len(full)
    for word, members in full:
        mismatches["tokens_across"] += sum(units[int(i)].end > word.end for i in np.flatnonzero(members))
    return [word for word, _ in full], np.array([members for _, members in full], dtype=float).reshape(-1, len(units))


def by_word(
    e: Explanation, annotations: Annotations, mismatches: Counter[str], how: str = "sum"
) -> tuple[list[AnnotatedWord], list[AnnotatedWord], Float[Array, "words_a words_b"]] | None:
    """The words of both texts and the matrix of their contributions; None if a text is not annotated.

    Args:
        e: an explanation at the level of tokens.
        annotations: the annotations of both texts.
        mismatches: a counter of mismatches, which is updated.
        how: "sum" the tokens of a word, or take their "mean".
    """
    words_a, words_b = (annotations.words(text, mismatches) for text in (e.text_a, e.text_b))
    if words_a is None or words_b is None:
        return None
    words_a, sums_a = match(e.text_a, e.units_a, words_a, mismatches)
    words_b, sums_b = match(e.text_b, e.units_b, words_b, mismatches)
    if how == "mean":
        sums_a, sums_b = (sums / sums.sum(1, keepdims=True) for sums in (sums_a, sums_b))
    return words_a, words_b, sums_a @ e.matrix @ sums_b.T


def report(mismatches: Counter[str]) -> dict[str, int]:
    """Every kind of mismatch with its count, including zeros."""
    return {name: int(mismatches[name]) for name in MISMATCHES}
