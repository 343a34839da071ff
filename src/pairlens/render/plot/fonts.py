"""Fonts for any script: how wide a text is, which installed fonts have its characters, and which have not."""

from __future__ import annotations

import unicodedata
import warnings
from collections.abc import Iterable, Sequence
from functools import cache

import matplotlib as mpl
from fontTools.ttLib import TTFont
from matplotlib.font_manager import FontEntry, FontProperties, findfont, fontManager
from matplotlib.ft2font import FT2Font
from matplotlib.textpath import text_to_path

_BOXES = ("Last Resort High-Efficiency", "Last Resort", "LastResort")  # fonts that have a box for every character
_INVISIBLE = ("Cc", "Cf", "Mn", "Me", "Zs", "Zl", "Zp")


def families(texts: Iterable[str]) -> list[str]:
    """The user's own font families, then as many installed ones as the texts' characters need."""
    chosen = list(mpl.rcParams["font.family"])
    missing = frozenset("".join(texts)) - _characters(findfont(FontProperties(family=chosen)))
    return [*chosen, *_helpers(frozenset(filter(_visible, missing)), len(fontManager.ttflist))]


def unseen(texts: Iterable[str]) -> str:
    """The characters that no installed font has, in the order of the alphabet."""
    texts = list(texts)
    known = [_characters(findfont(FontProperties(family=[name]))) for name in families(texts)]
    return "".join(sorted(char for char in set("".join(texts)).difference(*known) if _visible(char)))


def truetype(texts: Iterable[str]) -> bool:
    """Whether all fonts for the texts have TrueType outlines; matplotlib loses the others' letters in Type 42 fonts."""
    return all(_truetype(findfont(FontProperties(family=[name]))) for name in families(texts))


def width(text: str, size: float, weight: str, family: Sequence[str]) -> float:
    """How wide a text is, in points."""
    if not text:
        return 0.0
    font = FontProperties(family=list(family), size=size, weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # a character without a glyph is told of when it is drawn
        return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]


@cache
def _helpers(missing: frozenset[str], installed: int) -> tuple[str, ...]:
    """Installed fonts that have the characters that are missing: the one that has most, then for what is left.

    `installed`: how many fonts there are; with more, the answer may be another.
    """
    found: list[str] = []
    while missing:
        best: FontEntry | None = None
        most: frozenset[str] = frozenset()
        for entry in sorted((entry for entry in fontManager.ttflist if entry.name not in _BOXES), key=_rank):
            has = missing & _characters(entry.fname)
            if len(has) > len(most):
                best, most = entry, has
            if len(most) == len(missing):
                break
        if best is None:
            break
        found.append(best.name)
        missing -= most
    return tuple(found)


def _rank(entry: FontEntry) -> tuple[bool, bool, bool, str]:
    """Upright sans-serif fonts of usual weight first."""
    plain = entry.style == "normal" and entry.weight in (400, "normal", "regular")
    return not plain, "Sans" not in entry.name, "Mono" in entry.name, entry.name


@cache
def _characters(path: str) -> frozenset[str]:
    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # a font file that has gone, or one that cannot be scaled
        return frozenset()


@cache
def _truetype(path: str) -> bool:
    with TTFont(path, fontNumber=0, lazy=True) as font:
        return "glyf" in font


def _visible(char: str) -> bool:
    return unicodedata.category(char) not in _INVISIBLE
