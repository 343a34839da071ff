"""Small changes of wording that leave the embedding almost unchanged, found by trying simple edits."""

from __future__ import annotations

import difflib
import re

import numpy as np

from pairlens.attribution import Explanation
from pairlens.errors import InputError
from pairlens.model import Encoder, Text
from pairlens.study.statistics import score, spearman
from pairlens.text import Unit

CLOSE = 0.98
"""The smallest cosine of the two embeddings."""
CHANGED = 4
"""The most tokens that may differ."""
_SWAPS = (
    *((f"{verb} not", f"{verb}n't") for verb in "is are was were do does did".split()),
    ("cannot", "can't"),
    ("will not", "won't"),
    ("it is", "it's"),
    ("a", "the"),
    ("an", "the"),
    ("%", " percent"),
)


def edits(text: str) -> list[str]:
    """Simple edits of a text that may leave its meaning unchanged.

    Example:
        >>> edits("It isn't here.")[:4]
        ['It isn’t here.', "It isn't here", "It isn't here!", "It isn't here..."]
    """
    bare = text.rstrip(" .!?")
    edited = [text.replace("'", "’"), text.replace("’", "'"), text.replace('"', "”")]
    edited += [bare, f"{bare}." if text == bare else f"{bare}!", f"{bare}..."]
    for pair in _SWAPS:
        for old, new in (pair, pair[::-1]):
            edge = r"\b" if old[0].isalpha() and old[-1].isalpha() else ""
            edited.append(re.sub(f"{edge}{re.escape(old)}{edge}", new, text, count=1))
    edited += [re.sub(r"(?<=\w) (and|but|or|while) ", r", \1 ", text, count=1), text.replace(",", "", 1)]
    edited += [text.lower(), text.upper(), text[:1].swapcase() + text[1:]]
    return [other for other in dict.fromkeys(edited) if other != text]


def reword(encoder: Encoder, text: Text) -> str | None:
    """The edit that changes the embedding least, of those that change the tokens; None if none is close enough."""
    ids = text.features["input_ids"].flatten().tolist()
    texts = [text]
    for edited in edits(text.text):
        try:
            other = encoder.read(edited, text.role)
        except InputError:  # the edit left nothing of the text
            continue
        other_ids = other.features["input_ids"].flatten().tolist()
        if other_ids != ids and not other.truncated and _changed(ids, other_ids) <= CHANGED:
            texts.append(other)
    if len(texts) == 1:
        return None
    keep_all = [np.ones(len(other.tokens), dtype=bool) for other in texts]
    embeddings = encoder.encode(texts, range(len(texts)), keep_all, encoder.space(text.role, "unit"))
    cosines = score(embeddings[:1], embeddings[1:], "cosine")
    best = int(np.argmax(cosines))
    return texts[1 + best].text if cosines[best] >= CLOSE else None


def _changed(ids: list[int], other: list[int]) -> int:
    """The number of token ids that differ between two lists."""
    blocks = difflib.SequenceMatcher(None, ids, other, autojunk=False).get_matching_blocks()
    same = sum(block.size for block in blocks)
    return max(len(ids), len(other)) - same


def compare(before: Explanation, after: Explanation) -> float | None:
    """The Spearman correlation of two explanations over the pairs of words that both have."""
    one, other = before.at("word"), after.at("word")
    rows = _common(one.units_a, other.units_a)
    columns = _common(one.units_b, other.units_b)
    return spearman(one.matrix[np.ix_(rows[0], columns[0])], other.matrix[np.ix_(rows[1], columns[1])])


def _common(one: tuple[Unit, ...], other: tuple[Unit, ...]) -> tuple[list[int], list[int]]:
    """The indices of the words that both texts have in the same order, in the one and in the other."""
    places = [[i for i, unit in enumerate(units) if unit.kind == "text"] for units in (one, other)]
    words = [[units[i].text.casefold() for i in row] for units, row in zip((one, other), places, strict=True)]
    blocks = difflib.SequenceMatcher(None, *words, autojunk=False).get_matching_blocks()
    common: tuple[list[int], list[int]] = [], []
    for block in blocks:
        for text, start in enumerate((block.a, block.b)):
            common[text].extend(places[text][start : start + block.size])
    return common
