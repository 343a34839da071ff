"""CoNLL-U, the interchange format of annotated text (universaldependencies.org/format.html): reading and writing.

A text is a document (`# newdoc`), or a sentence in a file without documents. `TokenRange=start:end` or
`start_char=…|end_char=…` in the MISC column give the characters of a word in the whole text; without them,
`annotations` finds the words one after the other in the text.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from pairlens.errors import InputError

COLUMNS = 10
_RANGE = re.compile(r"(?:^|\|)TokenRange=(\d+):(\d+)(?:\||$)")
_CHARS = re.compile(r"(?:^|\|)start_char=(\d+)\|(?:.*\|)?end_char=(\d+)(?:\||$)")


@dataclass
class Token:
    """A surface token: a word, or several that are written as one ("isn't" for "is" and "n't").

    Attributes:
        form: the token as written.
        words: its words; those of a multi-word token may have spans of their own.
        span: its characters of the text, if the file gives them.
    """

    form: str
    words: list[Word]
    span: tuple[int, int] | None = None


@dataclass
class Word:
    """A syntactic word: one line of the file."""

    number: int
    form: str
    lemma: str
    upos: str
    head: int | None
    deprel: str
    span: tuple[int, int] | None = None


@dataclass
class Sentence:
    """A sentence: its text, if the file gives it, and its tokens."""

    text: str | None = None
    tokens: list[Token] = field(default_factory=list)


def read(path: Path) -> Iterator[list[Sentence]]:
    """The documents of a file, each a list of sentences."""
    try:
        lines = path.read_text(encoding="utf-8-sig").splitlines()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read as CoNLL-U: {error}.") from error
    documents = any(line.startswith("# newdoc") for line in lines)
    document: list[Sentence] = []
    for begins, sentence in _sentences(lines, path):
        if document and (begins or not documents):
            yield document
            document = []
        document.append(sentence)
    if document:
        yield document


def _sentences(lines: Iterable[str], path: Path) -> Iterator[tuple[bool, Sentence]]:
    """Every sentence, and whether it is the first of a document."""
    sentence, begins = Sentence(), False
    covered = 0  # number of the last word of the current multi-word token
    for number, line in enumerate([*lines, ""], 1):
        if not line.strip():
            if sentence.tokens:
                yield begins, sentence
                begins = False
            sentence, covered = Sentence(), 0
        elif line.startswith("#"):
            name, _, value = line[1:].partition("=")
            begins = begins or name.split()[:1] == ["newdoc"]
            if name.strip() == "text":
                sentence.text = value.strip()
        else:
            cells = line.split("\t")
            if len(cells) != COLUMNS:
                raise InputError(f"{path}, line {number}: CoNLL-U has {COLUMNS} columns, and this has {len(cells)}.")
            covered = _add(sentence, cells, covered, f"{path}, line {number}")


def _add(sentence: Sentence, cells: list[str], covered: int, where: str) -> int:
    """Add a line to a sentence; returns the number of the last word of the current multi-word token."""
    if "." in cells[0]:  # an empty node, which has no characters in the text
        return covered
    first, _, last = cells[0].partition("-")
    if not first.isdigit() or (last and not last.isdigit()):
        raise InputError(f"{where}: {cells[0]!r} is not the number of a word.")
    if last:
        sentence.tokens.append(Token(cells[1], [], _span(cells[9])))
        return int(last)
    span = _span(cells[9])
    head = int(cells[6]) if cells[6].isdigit() else None
    values = ["" if cell == "_" else cell for cell in cells]
    word = Word(int(first), cells[1], values[2], values[3], head, values[7], span)
    if word.number <= covered:
        sentence.tokens[-1].words.append(word)
    else:
        sentence.tokens.append(Token(cells[1], [word], span))
    return covered


def _span(misc: str) -> tuple[int, int] | None:
    match = _RANGE.search(misc) or _CHARS.search(misc)
    return None if match is None else (int(match[1]), int(match[2]))


def write(sentences: Iterable[Sentence], identity: str) -> Iterator[str]:
    """The lines of one text as a document.

    Args:
        sentences: sentences whose words have spans.
        identity: the document's name.
    """
    yield f"# newdoc id = {identity}"
    for number, sentence in enumerate(sentences, 1):
        yield f"# sent_id = {identity}-{number}"
        yield f"# text = {' '.join((sentence.text or '').split())}"
        tokens = sentence.tokens
        for place, token in enumerate(tokens):
            following = tokens[place + 1].span if place + 1 < len(tokens) else None
            for word in token.words:
                start, end = word.span or (0, 0)
                glued = "SpaceAfter=No|" if following is not None and following[0] == end else ""
                head = "_" if word.head is None else str(word.head)
                cells = [str(word.number), word.form, word.lemma, word.upos, "", "", head, word.deprel, ""]
                yield "\t".join([*(cell or "_" for cell in cells), f"{glued}TokenRange={start}:{end}"])
        yield ""
