"""What units and levels are called in all outputs."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pairlens.text import Unit, both_levels

SENTENCES = "sentence as a whole: what it does beyond its single words"
"""What the row of an opened sentence is, for legends."""
_NOUNS = {"zoom": "word or sentence"}
_LEVELS = {"zoom": "sentences and words"}


def label(unit: Unit) -> str:
    """The text of a unit; of the row of an opened sentence, its number.

    Example:
        >>> label(Unit("tea", 0, 3)), label(Unit("(sentence 4)", 0, 20, "sentence"))
        ('tea', 'sentence 4 as a whole')
    """
    return f"{unit.text.strip('()')} as a whole" if unit.kind == "sentence" else unit.text


def noun(settings: Mapping[str, Any]) -> str:
    """What a unit of an explanation is called.

    Example:
        >>> noun({"level": "word"}), noun({"level": ["word", "zoom"]})
        ('word', 'word or sentence')
    """
    levels = both_levels(settings.get("level", "token"))
    names = [_NOUNS.get(level, level) if isinstance(level, str) else "span" for level in levels]
    known = dict.fromkeys(" or ".join(names).split(" or "))
    return " or ".join(known)


def by_levels(settings: Mapping[str, Any]) -> str:
    """The levels of both texts in words; empty for spans.

    Example:
        >>> by_levels({"level": "word"}), by_levels({"level": ["word", "zoom"]})
        ('by words', 'a by words, b by sentences and words')
    """
    a, b = (
        f"by {_LEVELS.get(level, f'{level}s')}" if isinstance(level, str) else ""
        for level in both_levels(settings.get("level", ""))
    )
    if a == b:
        return a if settings.get("level") else ""
    return ", ".join(f"{side} {name}" for side, name in (("a", a), ("b", b)) if name)
