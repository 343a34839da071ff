"""CoNLL-U files by hand, and the words that annotations find in them."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

from pairlens.study.language.annotations import Annotations


def line(number: object, form: str, lemma="_", upos="_", head: object = "_", deprel="_", misc="_") -> str:
    """A line of CoNLL-U."""
    return "\t".join([str(number), form, lemma, upos, "_", "_", str(head), deprel, "_", misc])


def write(path: Path, *lines: str) -> Path:
    """Write lines to a file and return its path."""
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def words_of(path: Path, text: str) -> tuple[list[tuple[str, str, str]], dict[str, int]]:
    """The form, lemma and part of speech of the words of a text, and the counts of mismatches."""
    mismatches: Counter[str] = Counter()
    words = Annotations.load(path).words(text, mismatches)
    shown = [] if words is None else [(text[word.start : word.end], word.lemma, word.upos) for word in words]
    return shown, {name: count for name, count in mismatches.items() if count}
