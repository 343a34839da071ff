"""Explanations as plain text of at most 80 columns, as `repr` shows them; and the number formats of all outputs."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from pairlens.attribution.contrast import Contrast
    from pairlens.attribution.explanation import Explanation

WIDTH = 80
STRONGEST = 5
# Characters that move a terminal's cursor, change its colours or change the direction of writing.
_UNSAFE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)


def summary(e: Explanation) -> str:
    """Both texts, the equation of the score, the strongest pairs and the settings."""
    pairs = e.top(STRONGEST, special=False) or e.top(STRONGEST)
    room = (WIDTH - 20) // 2
    labels = [(shorten(clean(pair.a.text), room), shorten(clean(pair.b.text), room)) for pair in pairs]
    listed = _aligned([(f"{a} · {b}", signed(pair.value)) for (a, b), pair in zip(labels, pairs, strict=True)])
    texts = _line("a", e.text_a), _line("b", e.text_b)
    return "\n".join([*texts, equation(e), *listed, *textwrap.wrap(provenance(e), WIDTH)])


def contrast_summary(c: Contrast) -> str:
    """The query and both texts, the equation of the difference, and the query's units that contribute most to it."""
    order = np.argsort(-np.abs(c.effects), kind="stable")[:STRONGEST]
    listed = [(shorten(clean(c.units[i].text), WIDTH - 20), signed(float(c.effects[i]))) for i in order]
    closer = "a" if c.difference >= 0 else "b"
    parts = [("units", number(float(c.effects.sum()))), ("base", number(c.base)), ("gap", tiny(c.gap))]
    lines = [
        _line("query", c.a.text_a),
        _line("a", c.a.text_b),
        _line("b", c.b.text_b),
        f"{closer} is closer: score {number(c.a.score)} with a, {number(c.b.score)} with b",
        f"difference {number(c.difference)} = {_sum(parts)}",
        *_aligned(listed),
        *textwrap.wrap(provenance(c.a), WIDTH),
    ]
    return "\n".join(lines)


def equation(e: Explanation) -> str:
    """The identity of every explanation with its numbers: score = base + effects + pairs + gap."""
    parts = [("base", number(e.base))]
    if e.effects_a.any() or e.effects_b.any():
        parts += [("effects a", number(float(e.effects_a.sum()))), ("effects b", number(float(e.effects_b.sum())))]
    parts += [("pairs", number(float(e.matrix.sum()))), ("gap", tiny(e.gap))]
    return f"score {number(e.score)} = {_sum(parts)}"


def provenance(e: Explanation) -> str:
    """The settings of an explanation on one line."""
    known = {name: value for name, value in e.settings.items() if value is not None}
    level = known.get("level")
    words = [
        str(known.get("model", "")).rstrip("/").rsplit("/", 1)[-1],
        str(known.get("method", "")),
        f"near {known['near']:g}" if "near" in known else "",
        f"layer {known['layer']}" if "layer" in known else "",
        f"level {level}" if isinstance(level, str) else "",
        str(known.get("measure", "")),
        f"reference {known['reference']}" if known.get("reference", "empty") != "empty" else "",
        str(known.get("reference_terms", "")),
        str(known.get("sums", "")),
    ]
    return clean(", ".join(word for word in words if word))


def number(value: float) -> str:
    """The value with four decimals; what rounds to zero has no sign.

    Example:
        >>> number(0.71234), number(-1e-9)
        ('0.7123', '0.0000')
    """
    return f"{value:.4f}".replace("-0.0000", "0.0000")


def signed(value: float, decimals: int = 4) -> str:
    """The value with its sign; what rounds to zero has none.

    Example:
        >>> signed(0.25), signed(-0.00001)
        ('+0.2500', '0.0000')
    """
    text = f"{value:+.{decimals}f}"
    return text[1:] if float(text) == 0 else text


def tiny(value: float) -> str:
    """The value with one digit and an exponent, for gaps.

    Example:
        >>> tiny(2.34e-7), tiny(0.0)
        ('2e-07', '0')
    """
    return f"{value:.0e}" if value else "0"


def clean(text: str) -> str:
    """The text on one line, with � for unsafe characters; a space if nothing is left."""
    return safe(re.sub(r"\s+", " ", text)).strip() or " "


def safe(text: str) -> str:
    """The text with � for control characters and for those that change the direction of writing."""
    return _UNSAFE.sub("\ufffd", text)


def shorten(text: str, width: int) -> str:
    """The text in at most `width` columns, with an ellipsis if it was cut.

    Example:
        >>> shorten("東京は大きい都市です", 9)
        '東京は大…'
    """
    if columns(text) <= width:
        return text
    kept = 0
    while columns(text[: kept + 1]) < width:
        kept += 1
    return text[:kept] + "…"


def columns(text: str) -> int:
    """How many columns of a terminal a text takes: two for a wide character, none for a combining accent.

    Example:
        >>> columns("né"), columns("東京")
        (2, 4)
    """
    visible = (char for char in text if unicodedata.category(char) not in ("Mn", "Me", "Cf"))
    return sum(2 if is_wide(char) else 1 for char in visible)


def is_wide(char: str) -> bool:
    """Whether a terminal gives the character two columns, as it does for Chinese and Japanese ones."""
    return unicodedata.east_asian_width(char) in "WF"


def _line(name: str, text: str) -> str:
    return shorten(f"{name}: {clean(text)}", WIDTH)


def _sum(parts: Sequence[tuple[str, str]]) -> str:
    return " + ".join(f"{name} {value}" for name, value in parts)


def _aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    """One line for every row, with the labels aligned on the left and the numbers on the right."""
    widest = max((columns(label) for label, _ in rows), default=0)
    longest = max((len(value) for _, value in rows), default=0)
    return [f"  {label}{' ' * (widest - columns(label))}  {value:>{longest}}" for label, value in rows]
