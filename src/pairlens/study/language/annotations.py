"""Parts of speech, lemmas and dependencies of texts, and how a parser's words meet a model's tokens: by characters."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from pairlens.attribution.contributions import regroup
from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError
from pairlens.shapes import Array
from pairlens.study.language import conllu
from pairlens.study.language.conllu import Sentence, Token
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
class Word:
    """A word of the parser, with its characters [start, end) of the text.

    Attributes:
        start: the first character. `end`: the one after the last.
        lemma: the dictionary form, in lower case; the form itself where the parser gives none.
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
        source: where they come from.
    """

    def __init__(self, documents: Iterable[Sequence[Sentence]], source: str = "") -> None:
        self.source = source
        # Texts differ from what a parser saw in white space at most, so the rest is what finds them.
        self._documents = {_key(document): document for document in documents}
        self._known: dict[str, tuple[list[Word], int] | None] = {}
        if not self._documents:
            raise InputError(f"the annotations {source} hold no sentence.")

    @classmethod
    def load(cls, path: Path) -> Annotations:
        """Annotations from a CoNLL-U file."""
        return cls(conllu.read(path), str(path))

    def words(self, text: str, mismatches: Counter[str]) -> list[Word] | None:
        """The words of a text in order, or None where there are none; what does not fit is counted."""
        if text not in self._known:
            document = self._documents.get("".join(text.split()))
            self._known[text] = None if document is None else _place(text, document)
        found = self._known[text]
        if found is None:
            mismatches["texts_unannotated"] += 1
            return None
        words, shared = found
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


def _place(text: str, document: Sequence[Sentence]) -> tuple[list[Word], int]:
    """The words with their characters, and how many share them with others; no words where text and words differ."""
    tokens = [token for sentence in document for token in sentence.tokens]
    spans = _given(text, tokens) or _walked(text, tokens)
    if spans is None:
        return [], 0
    words: list[Word] = []
    shared = 0
    for token, (start, end) in zip(tokens, spans, strict=True):
        own = [word.span for word in token.words]
        if len(token.words) > 1 and not _split(text, start, end, own):
            # Written as one: the first word that does not depend on another of them stands for all.
            inside = {word.number for word in token.words}
            speaker = next((word for word in token.words if word.head not in inside), token.words[0])
            words.append(_word(start, end, speaker))
            shared += len(token.words) - 1
        else:
            spread = own if len(token.words) > 1 else [(start, end)]
            words += [_word(*span, word) for span, word in zip(spread, token.words, strict=True) if span is not None]
    return words, shared


def _given(text: str, tokens: Sequence[Token]) -> list[tuple[int, int]] | None:
    """The characters that the file names, if they are those of the text, one after the other."""
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
    """The characters that the forms take when they are laid along the text, with nothing but white space between."""
    spans: list[tuple[int, int]] = []
    here = 0
    for token in tokens:
        while here < len(text) and text[here].isspace():
            here += 1
        if not text.startswith(token.form, here):
            return None
        spans.append((here, here + len(token.form)))
        here = spans[-1][1]
    return spans if not text[here:].strip() else None


def _split(text: str, start: int, end: int, spans: Sequence[tuple[int, int] | None]) -> bool:
    """Whether the words of a multi-word token have ranges of their own, one after the other inside of it."""
    here = start
    for span in spans:
        if span is None or not here <= span[0] < span[1] <= end:
            return False
        here = span[1]
    return bool(text[start:end])


def _word(start: int, end: int, word: conllu.Word) -> Word:
    return Word(start, end, (word.lemma or word.form).lower(), word.upos, word.deprel.split(":")[0].lower())


@dataclass(frozen=True)
class Side:
    """One text's words as rows (or columns) of a matrix of tokens.

    Attributes:
        words: the parser's words that hold a token.
        sums: (words, tokens), 1 where a token belongs to a word.
    """

    words: tuple[Word, ...]
    sums: Array

    def means(self) -> Array:
        """Like `sums`, with every word's tokens averaged."""
        return self.sums / self.sums.sum(1, keepdims=True)


def match(text: str, units: Sequence[Unit], words: Sequence[Word], mismatches: Counter[str]) -> Side:
    """Which tokens belong to which word: a token belongs to the word that holds its first character.

    Args:
        text: the text.
        units: its tokens.
        words: its words.
        mismatches: what does not fit is counted here.
    """
    spans = [(word.start, word.end) for word in words]
    coarse, sums = regroup(text, tuple(units), "token", spans)
    own = [place for place, unit in enumerate(coarse) if unit.kind == "text"]
    rest = [place for place, unit in enumerate(coarse) if unit.kind == "rest"]
    mismatches["tokens_outside"] += int(sums[rest].sum())
    full = [(word, sums[place]) for word, place in zip(words, own, strict=True) if sums[place].any()]
    mismatches["words_without_token"] += len(words) - len(full)
    for word, members in full:
        mismatches["tokens_across"] += sum(units[int(i)].end > word.end for i in np.flatnonzero(members))
    return Side(tuple(word for word, _ in full), np.array([members for _, members in full]).reshape(-1, len(units)))


def by_word(
    e: Explanation, annotations: Annotations, mismatches: Counter[str], how: str = "sum"
) -> tuple[Side, Side, Array] | None:
    """The words of both texts and the matrix of their contributions, (words of a, words of b).

    Args:
        e: an explanation at the level of tokens.
        annotations: of both texts; None is returned where one is missing.
        mismatches: what does not fit is counted here.
        how: "sum" the tokens of a word, or "mean".
    """
    found = [annotations.words(text, mismatches) for text in (e.text_a, e.text_b)]
    if found[0] is None or found[1] is None:
        return None
    a = match(e.text_a, e.units_a, found[0], mismatches)
    b = match(e.text_b, e.units_b, found[1], mismatches)
    if how == "mean":
        return a, b, a.means() @ e.matrix @ b.means().T
    return a, b, a.sums @ e.matrix @ b.sums.T


def report(mismatches: Counter[str]) -> dict[str, int]:
    """Every kind of mismatch with its count, zeros among them."""
    return {name: int(mismatches[name]) for name in MISMATCHES}
