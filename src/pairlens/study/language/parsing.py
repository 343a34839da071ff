"""Annotation of texts with a spaCy pipeline."""

from __future__ import annotations

import importlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from pairlens.errors import InputError
from pairlens.io import require, whole_file
from pairlens.study.language import conllu
from pairlens.study.language.conllu import Sentence, Token, Word


def load(pipeline: str) -> Any:
    """A spaCy pipeline by its package's name or its folder.

    Raises:
        MissingExtra: spaCy is not installed.
        InputError: the pipeline is not installed.
    """
    spacy = require("spacy", "study")
    try:
        return spacy.load(pipeline)
    except OSError as error:
        try:
            return importlib.import_module(pipeline.replace("-", "_")).load()  # a package under another name
        except (ImportError, AttributeError, ValueError):
            raise InputError(
                f"spaCy has no pipeline {pipeline!r} here. Install one, for example with: "
                "python -m spacy download en_core_web_sm"
            ) from error


def parse(pipeline: Any, texts: Iterable[str]) -> Iterator[list[Sentence]]:
    """The sentences of every text.

    Args:
        pipeline: a loaded spaCy pipeline; columns for which it has no component stay empty.
        texts: the texts.
    """
    for document in pipeline.pipe(texts):
        yield [_sentence(document.text, span) for span in _spans(document)]


def write(path: Path, texts: Sequence[str], pipeline: Any) -> Path:
    """Annotate texts, write them as CoNLL-U, one document each, and return the path."""
    with whole_file(path) as file:
        for number, sentences in enumerate(parse(pipeline, texts), 1):
            for line in conllu.write(sentences, str(number)):
                file.write(f"{line}\n".encode())
    return path


def _spans(document: Any) -> list[list[Any]]:
    """The tokens of each sentence; one sentence if the pipeline does not find sentences."""
    try:
        sentences = [list(span) for span in document.sents]
    except ValueError:
        sentences = [list(document)]
    kept = ([token for token in sentence if not token.is_space] for sentence in sentences)
    return [sentence for sentence in kept if sentence]


def _sentence(text: str, tokens: Sequence[Any]) -> Sentence:
    numbers = {token.i: number for number, token in enumerate(tokens, 1)}
    words = []
    for token in tokens:
        span = (token.idx, token.idx + len(token.text))
        head = None
        if token.dep_:
            head = 0 if token.head.i == token.i else numbers.get(token.head.i, 0)
        lemma = "" if token.lemma_ == "-PRON-" else token.lemma_  # spaCy 2's lemma of every pronoun
        word = Word(numbers[token.i], token.text, lemma, token.pos_, head, token.dep_.lower(), span)
        words.append(Token(token.text, [word], span))
    start, end = words[0].span[0], words[-1].span[1]
    return Sentence(text[start:end], words)
