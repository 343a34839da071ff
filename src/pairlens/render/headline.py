"""What a person would say about an explanation: the strongest pairs and the word that matters most."""

from __future__ import annotations

from typing import NamedTuple

from pairlens.attribution.explanation import Explanation, Pair
from pairlens.render.deletion import Without, without_each
from pairlens.render.names import label
from pairlens.render.text import clean, number, points, shorten, signed
from pairlens.text import Unit

LEAST = 0.05
"""The least share of the largest possible score that a pair or a deletion must change to be worth a sentence."""
FLOOR = 0.25
"""The least share of the largest possible score that has the strongest colour: weak pairs look weak."""
_LISTED = 6  # unknown words
_ROOM = 28  # columns of a unit's text


class _Loss(NamedTuple):
    """The unit whose deletion changes the score most, and the score without it."""

    unit: Unit
    side: str
    known: Without


def lead(e: Explanation) -> str:
    """The score and what it is, such as "0.8392 cosine similarity"."""
    name = "dot product" if e.settings.get("measure") == "dot" else "cosine similarity"
    return f"{number(e.score)} {name}"


def headline(e: Explanation) -> str:
    """The strongest pairs of an explanation, and the score without the unit that matters most, as one sentence.

    Example:
        >>> from pairlens import Lens
        >>> headline(Lens().explain("A man is playing a guitar.", "A man is playing a flute.", layer=5))[:23]
        'Mostly man–man (+0.14),'
    """
    least = LEAST * largest_score(e)
    # What a sentence does beyond its words has a row of its own, which is no word that a reader could point at.
    worded = [pair for pair in standing_out(e, e.matrix.size) if "sentence" not in (pair.a.kind, pair.b.kind)]
    pairs = [pair for pair in worded[:2] if abs(pair.value) >= least]
    loss = _loss(e)
    changes = loss is not None and abs(loss.known.score - e.score) >= least
    parts = [_pairs(pairs, e.score) or "No pair of words stands out"]
    if loss is not None and changes:
        parts.append(f"without {_word(loss, e)} it would be {points(loss.known, e.score).replace('~', 'about ')}")
    elif loss is not None and not pairs:
        parts.append("no single word changes much")
    return "; ".join(parts) + "."


def unknown(e: Explanation) -> str:
    """The words that the tokenizer does not know, as a remark; empty where it knows all.

    Example:
        >>> from pairlens import Lens
        >>> unknown(Lens().explain("A 🎸 and a ☕.", "A guitar."))
        'The model does not know: 🎸, ☕. To it they are all the same word.'
    """
    words = [shorten(clean(word), _ROOM) for word in dict.fromkeys((*e.unknown_a, *e.unknown_b))]
    if not words:
        return ""
    more = f" and {len(words) - _LISTED} more" if len(words) > _LISTED else ""
    same = " To it they are all the same word." if len(words) > 1 else ""
    return f"The model does not know: {', '.join(words[:_LISTED])}{more}.{same}"


def standing_out(e: Explanation, k: int, *, special: bool = False) -> list[Pair]:
    """The k strongest pairs, without those that may be noise; of special tokens only if there is nothing else."""
    pairs = e.top(k, special=special) or e.top(k, special=True)
    return [pair for pair in pairs if not pair.noise]


def largest_score(e: Explanation) -> float:
    """How large a score of this measure can be: 1 for cosines; for dot products the largest number at hand."""
    return 1.0 if e.settings.get("measure") == "cosine" else max(abs(e.score), abs(e.base))


def colour_floor(e: Explanation) -> float:
    """The least value that has the strongest colour."""
    return FLOOR * largest_score(e)


def _pairs(pairs: list[Pair], score: float) -> str:
    """Return "Mostly coffee–coffee (+0.58), then good–bad (+0.12)", or "Many pairs, ..." if each is a small part."""
    if not pairs:
        return ""
    names = [f"{_name(pair.a)}–{_name(pair.b)} ({signed(pair.value, 2)})" for pair in pairs]
    many = abs(pairs[0].value) < abs(score) / 4
    together = "Many pairs, most of all" if many else "Mostly"
    first = f"{together} {names[0]}" if pairs[0].value > 0 else f"Pushed apart most by {names[0]}"
    if len(pairs) == 1:
        return first
    same = (pairs[0].value > 0) == (pairs[1].value > 0)
    return f"{first}, {'then' if same else 'against it' if pairs[0].value > 0 else 'in spite of'} {names[1]}"


def _loss(e: Explanation) -> _Loss | None:
    """The unit whose deletion changes the score most; None where no deletion is known."""
    known = [
        _Loss(unit, side, without)
        for side, units, sides in zip("ab", (e.units_a, e.units_b), without_each(e), strict=True)
        for unit, without in zip(units, sides, strict=True)
        if without is not None and unit.kind != "compound"
    ]
    return max(known, key=lambda loss: abs(loss.known.score - e.score), default=None)


def _word(loss: _Loss, e: Explanation) -> str:
    """The unit's text, with the text that it belongs to if both texts have it; of an opened sentence its number."""
    if loss.unit.kind == "sentence":
        return f"{loss.unit.text.strip('()')} of {loss.side}"
    other = e.units_b if loss.side == "a" else e.units_a
    both = any(unit.text.lower() == loss.unit.text.lower() for unit in other)
    return f"“{shorten(clean(loss.unit.text), _ROOM)}”" + (f" in {loss.side}" if both else "")


def _name(unit: Unit) -> str:
    text = shorten(clean(label(unit)), _ROOM)
    return f"“{text}”" if " " in text and unit.kind != "sentence" else text
