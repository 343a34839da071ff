"""Fonts for any script: the width of a text, the installed fonts that have its characters, and missing characters."""

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

_BOXES = ("Last Resort High-Efficiency", "Last Resort", "LastResort")  # fonts with a box for every character
_INVISIBLE = ("Cc", "Cf", "Mn", "Me", "Zs", "Zl", "Zp")


def families(texts: Iterable[str]) -> list[str]:
    """The user's font families, then further installed ones for characters that the first font lacks."""
    chosen = list(mpl.rcParams["font.family"])
    missing = frozenset("".join(texts)) - _characters(findfont(FontProperties(family=chosen)))
    return [*chosen, *_helpers(frozenset(filter(_visible, missing)), len(fontManager.ttflist))]


def unseen(texts: Iterable[str]) -> str:
    """The visible characters that no installed font has, sorted."""
    texts = list(texts)
    known = [_characters(findfont(FontProperties(family=[name]))) for name in families(texts)]
    return "".join(sorted(char for char in set("".join(texts)).difference(*known) if _visible(char)))


def truetype(texts: Iterable[str]) -> bool:
    """Whether all fonts for the texts have TrueType outlines: matplotlib loses letters of others in Type 42 fonts."""
    return all(_truetype(findfont(FontProperties(family=[name]))) for name in families(texts))


def width(text: str, size: float, weight: str, family: Sequence[str]) -> float:
    """The width of a text in points."""
    if not text:
        return 0.0
    font = FontProperties(family=list(family), size=size, weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # `figure.save` warns about characters without a glyph
        return text_to_path.get_text_width_height_descent(text, font, ismath=False)[0]


@cache
def _helpers(missing: frozenset[str], installed: int) -> tuple[str, ...]:
    """Installed fonts for the missing characters: the font that has most of them, then one for the remaining ones.

    `installed`, the number of installed fonts, is only part of the cache key: new fonts may change the answer.
    """
    names: list[str] = []
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
        names.append(best.name)
        missing -= most
    return tuple(names)


def _rank(entry: FontEntry) -> tuple[bool, bool, bool, str]:
    """A sort key: upright sans-serif fonts of regular weight first."""
    plain = entry.style == "normal" and entry.weight in (400, "normal", "regular")
    return not plain, "Sans" not in entry.name, "Mono" in entry.name, entry.name


@cache
def _characters(path: str) -> frozenset[str]:
    try:
        return frozenset(map(chr, FT2Font(path).get_charmap()))
    except (OSError, RuntimeError):  # the file was removed, or is a bitmap font
        return frozenset()


@cache
def _truetype(path: str) -> bool:
    with TTFont(path, fontNumber=0, lazy=True) as font:
        return "glyf" in font


def _visible(char: str) -> bool:
    return unicodedata.category(char) not in _INVISIBLE
