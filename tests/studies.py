"""Pairs, materials and explanations for the tests of studies."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from sentence_transformers import SentenceTransformer

from pairlens import Lens
from pairlens.adjusted.module import Adjusted
from pairlens.attribution.explanation import Explanation
from pairlens.study.language.annotations import Annotations
from pairlens.study.language.conllu import Sentence, Token, Word
from pairlens.study.materials import Materials
from pairlens.study.views import View
from pairlens.text import Unit, words

VIEW = View("integrated-jacobian", 3, "ignore")
PAIRS = [
    ("The coffee here is not good.", "This coffee is bad.", 4.0),
    ("A man is playing the guitar.", "Nobody plays a guitar.", 2.0),
    ("The tea was cold.", "The tea wasn't hot.", 4.5),
    ("I don't think so, do you?", "The trains are late.", 0.0),
]
TEXTS = [text for a, b, _ in PAIRS for text in (a, b)]


def materials(lens: Lens, **options) -> Materials:
    """Small materials of `PAIRS`, with any options of `Materials`."""
    defaults = {"sweep": 2, "points": 4, "progress": False, "pairs": PAIRS}
    return Materials(lens, **(defaults | options))  # pyright: ignore[reportArgumentType]


def annotate_pairs() -> Annotations:
    """Every word of `TEXTS`, with parts of speech and roles in rotation."""
    documents = []
    for text in TEXTS:
        tokens = []
        for number, (start, end) in enumerate(words(text), 1):
            tag, role = ("NOUN", "obj") if number % 3 == 1 else ("VERB", "root") if number % 3 == 2 else ("DET", "det")
            word = Word(number, text[start:end], "", tag, 0, role, (start, end))
            tokens.append(Token(word.form, [word], word.span))
        documents.append([Sentence(text, tokens)])
    return Annotations(documents)


def adjust(model: SentenceTransformer) -> SentenceTransformer:
    """The model, shifted by its reference without any training."""
    *body, normalize = model
    return SentenceTransformer(modules=[Adjusted(body), normalize], device="cpu")


def explanation(matrix, a: str = "good tea", b: str = "bad tea") -> Explanation:
    """An explanation of single-space texts, one token a word, with a special token at either end."""
    matrix = np.asarray(matrix, dtype=float)

    def units(text):
        found, here = [Unit("[CLS]", 0, 0, "special")], 0
        for word in text.split():
            start = text.index(word, here)
            found.append(Unit(word, start, start + len(word)))
            here = start + len(word)
        return (*found, Unit("[SEP]", len(text), len(text), "special"))

    ua, ub = units(a), units(b)
    zeros = np.zeros(len(ua)), np.zeros(len(ub))
    tokens = tuple(u.text for u in ua), tuple(u.text for u in ub)
    error = np.zeros_like(matrix)
    return Explanation(a, b, float(matrix.sum()), matrix, ua, ub, *tokens, 0.0, *zeros, 0.0, 0.0, 0.0, error)


def tree(folder: Path) -> dict[str, bytes]:
    """The content of every file under a folder, by path."""
    return {str(path.relative_to(folder)): path.read_bytes() for path in sorted(folder.rglob("*")) if path.is_file()}
