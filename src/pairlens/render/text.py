"""Explanations as plain text of at most 80 columns, as `repr` shows them; and the number formats of all outputs."""

from __future__ import annotations

import re
import textwrap
import unicodedata
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from pairlens.attribution.contributions import deletes, predicts
from pairlens.render.names import SENTENCES, by_levels, label

if TYPE_CHECKING:
    from pairlens.attribution.contrast import Contrast
    from pairlens.attribution.explanation import Explanation
    from pairlens.render.deletion import Without
    from pairlens.text import Unit

WIDTH = 80
STRONGEST = 5
MEANINGS = {
    "base": "what the texts share whatever the words",
    "effects a": "what the words of a do by themselves",
    "effects b": "what the words of b do by themselves",
    "pairs": "what two words do together",
    "gap": "what the sum misses",
}
"""The terms of a score in words."""
SAMPLED = {
    "banzhaf": "fitted to {} (weighted Banzhaf values)",
    "shapley": "averaged over {} (Shapley values)",
}
"""Methods that draw deletions at random, and what they compute. Their errors are standard errors."""
UNCHECKED = "how well this predicts deletions is not known"
INTEGRATED = {"integrated-jacobian": "integrated Jacobians", "fade": "Fade"}
_MEASURES = {"cosine": "cosine similarity", "dot": "dot product"}
_STARTS = {"padding": "a text of padding", "mask": "a text of masks", "zero": "a text of zeros"}
_TREATMENTS = {
    "project": "whose direction is projected out",
    "shift": "which is subtracted",
    "keep": "whose share is kept",
    "ignore": "whose share is left in the base",
}
"""What is done with the reference, the text that an integral starts from."""
_PROMPT = 40  # columns of a prompt
_FLOATING_POINT = 1e-12  # a smaller gap is the rounding error of the sum
# Characters that move a terminal's cursor, change its colours or change the direction of writing.
_UNSAFE = re.compile(
    "[\x00-\x08\x0e-\x1b\x7f-\x84\x86-\x9f\u200e\u200f\u202a-\u202e\u2066-\u2069\ufeff\ud800-\udfff\ufffe\uffff]"
)


def summary(e: Explanation) -> str:
    """The score and a sentence about it, both texts, the equation, the strongest pairs, the forecast, the settings."""
    from pairlens.render.deletion import without_each
    from pairlens.render.headline import headline, lead, standing_out, unknown

    pairs = standing_out(e, STRONGEST)
    room = (WIDTH - 20) // 2
    labels = [(shorten(clean(label(pair.a)), room), shorten(clean(label(pair.b)), room)) for pair in pairs]
    listed = aligned([(f"{a} · {b}", signed(pair.value)) for (a, b), pair in zip(labels, pairs, strict=True)])
    texts = [
        line
        for name, text, units, known in zip(
            "ab", (e.text_a, e.text_b), (e.units_a, e.units_b), without_each(e), strict=True
        )
        for line in (named(name, text), *_without(e.score, units, known))
    ]
    footer = [line for text in (forecast(e), provenance(e)) for line in textwrap.wrap(text, WIDTH)]
    said = [lead(e), *textwrap.wrap(headline(e), WIDTH), *textwrap.wrap(unknown(e), WIDTH)]
    return "\n".join([*said, *texts, *broken(equation(e), WIDTH), *listed, *footer])


def equation(e: Explanation) -> str:
    """The identity of every explanation with its numbers: score = base + effects + pairs + gap."""
    return f"score {number(e.score)} = {added([(name, value) for name, value, _ in terms(e)])}"


def terms(e: Explanation) -> list[tuple[str, str, float]]:
    """The terms of the score: their names, their numbers as shown, which add up, and their values.

    Effects are left out where there are none, and the gap where it is an error of floating-point numbers.
    """
    values = {"base": e.base, "pairs": float(e.matrix.sum())}
    if e.effects_a.any() or e.effects_b.any():
        effects = {"effects a": float(e.effects_a.sum()), "effects b": float(e.effects_b.sum())}
        values = {"base": e.base, **effects, "pairs": values["pairs"]}
    shown = map(number, add_up(list(values.values()), e.score - float(tiny(e.gap))))
    rows = [(name, text, value) for (name, value), text in zip(values.items(), shown, strict=True)]
    return [*rows, ("gap", tiny(e.gap), e.gap)] if has_gap(e) else rows


def meanings(e: Explanation) -> list[str]:
    """What the terms of a score are, in words."""
    effects = ["effects: what a word does by itself"] if e.effects_a.any() or e.effects_b.any() else []
    kinds = {unit.kind for unit in (*e.units_a, *e.units_b)}
    more = ["compounds: words that act together, in a row that goes with any of them"] * ("compound" in kinds)
    more += [SENTENCES] * ("sentence" in kinds)
    return [f"base: {MEANINGS['base']}", *effects, f"pairs: {MEANINGS['pairs']}", *more]


def broken(total: str, width: int) -> list[str]:
    """An equation on lines of at most `width` columns, each of which begins with a sign."""
    lines = [""]
    for part in total.replace(" = ", "\n= ").replace(" + ", "\n+ ").split("\n"):
        if lines[-1] and len(lines[-1]) + 1 + len(part) > width:
            lines.append("  ")
        lines[-1] += part if not lines[-1].strip() else f" {part}"
    return lines


def has_gap(e: Explanation | Contrast) -> bool:
    """Whether the terms miss the score by more than errors of floating-point numbers."""
    return abs(e.gap) > _FLOATING_POINT


def add_up(values: Sequence[float], total: float, decimals: int = 4) -> list[float]:
    """The values rounded so that they add up to the rounded total: those nearest to the other number give way.

    Example:
        >>> add_up([0.33333, 0.33333, 0.33334], 1.0)
        [0.3333, 0.3333, 0.3334]
    """
    scaled = [value * 10**decimals for value in values]
    rounded = [round(value) for value in scaled]
    missing = round(total * 10**decimals) - sum(rounded)
    if abs(missing) <= len(values):  # else the values do not make up the total
        sign = 1 if missing > 0 else -1
        order = sorted(range(len(values)), key=lambda i: sign * (rounded[i] - scaled[i]))
        for i in order[: abs(missing)]:
            rounded[i] += sign
    return [value / 10**decimals for value in rounded]


def forecast(e: Explanation) -> str:
    """How well the explanation predicts deletions; empty where it says nothing about them.

    Example:
        >>> from pairlens import Lens
        >>> forecast(Lens().explain("The coffee is good.", "The tea is bad.", level="word"))[:22]
        'predicts deletions to '
    """
    known = e.forecast
    if known is None:
        return UNCHECKED if predicts(e.settings) else ""
    error, r2 = f"±{_two_places(known.error)}", f"R² {known.r2:.2f}"
    text = f"a poor forecast of deletions: {r2}, {error}" if known.is_low else f"predicts deletions to {error} ({r2})"
    better = known.with_compounds
    # Worth saying if compounds explain a third of what is left unexplained, and that is seen.
    if better is None or 1 - better > 2 / 3 * (1 - known.r2) or round(better, 2) == round(known.r2, 2):
        return text
    return f"{text}; with rows for words that act together (compounds) R² {better:.2f}"


def provenance(e: Explanation) -> str:
    """What was computed, in words on one line.

    Example:
        >>> from pairlens import Lens
        >>> provenance(Lens().explain("A cat.", "A dog."))
        'all-MiniLM-L6-v2, fitted to 8 and 8 shortened texts (weighted Banzhaf values), by words, cosine similarity'
    """
    known = {name: value for name, value in e.settings.items() if value is not None}
    measure = str(known.get("measure", ""))
    words = [
        str(known.get("model", "")).rstrip("/").rsplit("/", 1)[-1],
        *_method(e, known),
        *_prompts(known),
        by_levels(known),
        str(known.get("sums", "")),
        _MEASURES.get(measure, measure),
        _start(known),
    ]
    return clean(", ".join(word for word in words if word))


def _prompts(known: Mapping[str, Any]) -> list[str]:
    """The roles of the texts and the prompts before them, where there are any."""
    roles, prompts = (
        value if isinstance(value, list) else [value, value] for value in (known.get("roles"), known.get("prompt"))
    )
    named = [f"{side} as {role}" for side, role in zip("ab", roles, strict=True) if role]
    said = [f"with the prompt “{shorten(prompt.strip(), _PROMPT)}”" if prompt else "" for prompt in prompts]
    if said[0] == said[1]:
        return [*named, said[0]]
    return [*named, *(f"{side} {words}" for side, words in zip("ab", said, strict=True) if words)]


def _start(known: Mapping[str, Any]) -> str:
    """The reference and what is done with it; empty for methods that delete and keep it, as they do by default."""
    terms, reference = known.get("reference_terms"), known.get("reference")
    if "reference" not in known or (deletes(known) and terms == "keep"):
        return ""
    start = "the empty text" if deletes(known) else _STARTS.get(str(reference), f"the {reference}")
    return f"compared with {start}, {_TREATMENTS[terms]}" if terms in _TREATMENTS else f"compared with {start}"


def _method(e: Explanation, known: dict[str, Any]) -> list[str]:
    """The method in words, with what it cost or how exact it is."""
    method = str(known.get("method", ""))
    nodes = known.get("nodes")
    tried = [nodes] if isinstance(nodes, int) else nodes if isinstance(nodes, list) else []
    counts = " and ".join(str(count) for count in tried)
    if method in SAMPLED:
        return [SAMPLED[method].format(f"{counts} shortened texts".strip())]
    layer = f"layer {known['layer']}" if "layer" in known else ""
    gaps = f"gap of the texts {tiny(e.gap_a)} and {tiny(e.gap_b)}" if method in INTEGRATED else ""
    return [INTEGRATED.get(method, method), layer, gaps]


def number(value: float, decimals: int = 4) -> str:
    """The value with four decimals; what rounds to zero has no sign.

    Example:
        >>> number(0.71234), number(-1e-9)
        ('0.7123', '0.0000')
    """
    text = f"{value:.{decimals}f}"
    return text if float(text) else text.lstrip("-")


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


def points(w: Without, score: float) -> str:
    """The score without a unit, with two decimals; ~ marks a forecast."""
    return f"{'' if w.measured else '~'}{number(w.score, 2 if abs(score) < 100 else 0)}"


def without_note(known: Sequence[Sequence[Without | None]], name: str, noun: str) -> str:
    """What the scores without a unit are, and whether they are measured; empty where there are none."""
    listed = [w for side in known for w in side if w]
    forecasts = sum(not w.measured for w in listed)
    how = "measured" if not forecasts else "~ if that is a forecast" if forecasts < len(listed) else "a forecast"
    return f"{name}: the score without that {noun}, {how}" if listed else ""


def _without(score: float, units: Sequence[Unit], known: Sequence[Without | None]) -> list[str]:
    """One line with the score without the words that matter most; none where it is not known."""
    words = [(unit, w) for unit, w in zip(units, known, strict=True) if w and unit.kind != "compound"]
    listed = [(abs(w.score - score), clean(label(unit)), w) for unit, w in words]
    listed.sort(key=lambda each: -each[0])
    line = "   without"
    for n, (_, name, w) in enumerate(listed):
        more = f"{',' * bool(n)} {shorten(name, 24)} {points(w, score)}"
        if columns(line + more) > WIDTH - 2:
            return [f"{line}, …"]
        line += more
    return [line] if listed else []


def _two_places(value: float) -> str:
    """A positive number with two decimals; small ones have three."""
    return f"{value:.2f}" if value >= 0.0095 else f"{value:.3f}"


def named(name: str, text: str) -> str:
    """A text on one line, after its name."""
    return shorten(f"{name}: {clean(text)}", WIDTH)


def added(parts: Sequence[tuple[str, str]]) -> str:
    """The terms of a sum: their names and their numbers."""
    return " + ".join(f"{name} {value}" for name, value in parts)


def aligned(rows: Sequence[tuple[str, str]]) -> list[str]:
    """One line for every row, with the labels aligned on the left and the numbers on the right."""
    widest = max((columns(label) for label, _ in rows), default=0)
    longest = max((len(value) for _, value in rows), default=0)
    return [f"  {label}{' ' * (widest - columns(label))}  {value:>{longest}}" for label, value in rows]
