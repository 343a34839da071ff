"""Small changes of wording that leave the embedding almost unchanged, found without a lexicon: tried, and measured."""

from __future__ import annotations

import difflib
import re

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError
from pairlens.model.encoder import Encoder
from pairlens.model.tokenize import Text
from pairlens.study.statistics import score, spearman
from pairlens.text import Unit

CLOSE = 0.98
"""The smallest cosine of the two embeddings."""
CHANGED = 4
"""The most tokens that may differ."""
_SWAPS = (
    ("is not", "isn't"),
    ("are not", "aren't"),
    ("was not", "wasn't"),
    ("were not", "weren't"),
    ("do not", "don't"),
    ("does not", "doesn't"),
    ("did not", "didn't"),
    ("cannot", "can't"),
    ("will not", "won't"),
    ("it is", "it's"),
    ("a", "the"),
    ("an", "the"),
    ("%", " percent"),
)


def edits(text: str) -> list[str]:
    """Other ways to write a text, cheap guesses all of them.

    Example:
        >>> edits("It isn't here.")[:4]
        ['It isn’t here.', "It isn't here", "It isn't here!", "It isn't here..."]
    """
    bare = text.rstrip(" .!?")
    found = [text.replace("'", "’"), text.replace("’", "'"), text.replace('"', "”")]
    found += [bare, f"{bare}." if text == bare else f"{bare}!", f"{bare}..."]
    for pair in _SWAPS:
        for old, new in (pair, pair[::-1]):
            edge = r"\b" if old[0].isalpha() and old[-1].isalpha() else ""
            found.append(re.sub(f"{edge}{re.escape(old)}{edge}", new, text, count=1))
    found += [re.sub(r"(?<=\w) (and|but|or|while) ", r", \1 ", text, count=1), text.replace(",", "", 1)]
    found += [text.lower(), text.upper(), text[:1].swapcase() + text[1:]]
    return [edited for edited in dict.fromkeys(found) if edited != text]


def reword(encoder: Encoder, text: Text) -> str | None:
    """The change that the embedding notices least, of those that the tokenizer notices; None where none is small."""
    ids = text.features["input_ids"].flatten().tolist()
    tried: list[Text] = []
    for edited in edits(text.text):
        try:
            read = encoder.read(edited, text.role)
        except InputError:  # nothing was left
            continue
        other = read.features["input_ids"].flatten().tolist()
        if other != ids and not read.truncated and _changed(ids, other) <= CHANGED:
            tried.append(read)
    if not tried:
        return None
    everything = [text, *tried]
    whole = [np.ones(len(read.tokens), dtype=bool) for read in everything]
    embeddings = encoder.encode(everything, range(len(everything)), whole, encoder.space(text.role, "unit"))
    close = score(embeddings[:1], embeddings[1:], "cosine")
    best = int(np.argmax(close))
    return tried[best].text if close[best] >= CLOSE else None


def _changed(ids: list[int], other: list[int]) -> int:
    blocks = difflib.SequenceMatcher(None, ids, other, autojunk=False).get_matching_blocks()
    same = sum(block.size for block in blocks)
    return max(len(ids), len(other)) - same


def compare(before: Explanation, after: Explanation) -> float | None:
    """Spearman of two explanations over the pairs of words that both have."""
    one, other = before.at("word"), after.at("word")
    rows = _common(one.units_a, other.units_a)
    columns = _common(one.units_b, other.units_b)
    return spearman(one.matrix[np.ix_(rows[0], columns[0])], other.matrix[np.ix_(rows[1], columns[1])])


def _common(one: tuple[Unit, ...], other: tuple[Unit, ...]) -> tuple[list[int], list[int]]:
    """Where the words stand that both texts have, in order."""
    places = [[i for i, unit in enumerate(units) if unit.kind == "text"] for units in (one, other)]
    words = [[units[i].text.casefold() for i in own] for units, own in zip((one, other), places, strict=True)]
    blocks = difflib.SequenceMatcher(None, *words, autojunk=False).get_matching_blocks()
    found: tuple[list[int], list[int]] = [], []
    for block in blocks:
        for side, start in enumerate((block.a, block.b)):
            found[side].extend(places[side][start : start + block.size])
    return found
