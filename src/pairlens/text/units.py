"""Units of a text (tokens, words, sentences, spans) and how the units of a fine level add up to a coarser one."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, field
from difflib import get_close_matches
from itertools import pairwise
from operator import index
from typing import Any, Literal, SupportsIndex, cast, get_args

from pairlens.errors import InputError, choose, whole
from pairlens.text.segmentation import RUN, Span, sentences, trim, words

Kind = Literal["text", "special", "prompt", "rest", "compound", "sentence"]
Level = str | Sequence[Span]
"""One of LEVELS, or spans of characters."""
LEVELS = ("token", "word", "sentence")
_LISTED = 12  # units in a message


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch of text that receives a contribution.

    Args:
        text: the characters themselves; a special token's name.
        start, end: characters [start, end) of the caller's text.
        kind: "text", "special", "prompt", "rest" (the tokens outside all given spans), "compound" (units that act
            together; they have rows of their own too), or "sentence" (what a sentence does beyond its single words).
        parts: the spans of a compound's units, or of a sentence's words.

    Example:
        >>> Unit("coffee", 4, 10)
        Unit(text='coffee', start=4, end=10, kind='text')
    """

    text: str
    start: int
    end: int
    kind: Kind = "text"
    parts: tuple[Span, ...] = field(default=(), repr=False)

    @classmethod
    def compound(cls, text: str, units: Sequence[Unit]) -> Unit:
        """Return the compound of some units of a text, in order.

        Example:
            >>> Unit.compound("This is not good.", [Unit("not", 8, 11), Unit("good", 12, 16)]).text
            'not good'
            >>> Unit.compound("Not so good", [Unit("Not", 0, 3), Unit("good", 7, 11)]).text
            'Not … good'
        """
        shown = units[0].text
        for before, unit in pairwise(units):
            between = text[before.end : unit.start] if unit.kind == before.kind == "text" else " … "
            shown += (between if not between.strip() else " … ") + unit.text
        places = [unit for unit in units if unit.kind == "text"]
        return cls(shown, places[0].start, places[-1].end, "compound", tuple((unit.start, unit.end) for unit in units))

    @classmethod
    def sentence(cls, number: int, sentence: Unit, words: Sequence[Unit]) -> Unit:
        """Return what a sentence does beyond its single words; it goes once all of them are deleted.

        Example:
            >>> Unit.sentence(2, Unit("We left.", 11, 19), [Unit("We", 11, 13), Unit("left", 14, 18)]).text
            '(sentence 2)'
        """
        spans = tuple((word.start, word.end) for word in words)
        return cls(f"(sentence {number})", sentence.start, sentence.end, "sentence", spans)

    def stored(self) -> tuple[str, int, int, str]:
        """Return the unit as files store it: the kind of a compound or a sentence names its parts.

        Example:
            >>> Unit("a … c", 0, 5, "compound", ((0, 1), (4, 5))).stored()
            ('a … c', 0, 5, 'compound 0-1 4-5')
        """
        return self.text, self.start, self.end, " ".join([self.kind, *(f"{start}-{end}" for start, end in self.parts)])

    @classmethod
    def from_stored(cls, text: Any, start: Any, end: Any, stored_kind: Any) -> Unit:
        """Return the unit that `stored` wrote; raises ValueError for anything else."""
        kind, *spans = stored_kind.split(" ") if isinstance(stored_kind, str) else [stored_kind]
        if not isinstance(text, str) or kind not in get_args(Kind):
            raise ValueError(f"{text!r:.40}, {stored_kind!r:.40} is not a unit")
        edges = [tuple(map(int, span.split("-"))) for span in spans]
        return cls(text, int(start), int(end), cast(Kind, kind), tuple((first, last) for first, last in edges))


def find_unit(units: Sequence[Unit], given: str | SupportsIndex, name: str) -> int:
    """Return the index of a unit that a user names by its text or its index; raises where no or several units match.

    Args:
        units: the units of a text.
        given: a unit's text, or its index.
        name: what to call the text, for messages.

    Example:
        >>> find_unit([Unit("A", 0, 1), Unit("guitar", 2, 8)], "guitar", "text a")
        1
    """
    if not isinstance(given, str):
        return whole(f"a unit of {name}", given, 0, len(units) - 1)
    places = [i for i, unit in enumerate(units) if unit.text == given]
    if not places:
        texts = list(dict.fromkeys(unit.text for unit in units if unit.kind != "special"))
        near = [t for t in texts if t.lower() == given.lower()] or get_close_matches(given, texts, n=1)
        more = ", …" if len(texts) > _LISTED else ""
        listed = f"Its units: {', '.join(map(repr, texts[:_LISTED]))}{more}"
        raise InputError(f"{name} has no unit {given!r}. {f'Did you mean {near[0]!r}?' if near else listed}")
    if len(places) > 1:
        indices = ", ".join(map(str, places))
        raise InputError(f"{name} has {given!r} {len(places)} times. Say which by its index: {indices}.")
    return places[0]


def group(
    text: str, units: Sequence[Unit], level: Level, *, finest: bool = False
) -> tuple[tuple[Unit, ...], tuple[int, ...]]:
    """Return the units of a coarser level and, for each given unit, the index of the one holding its first character.

    Special tokens stay single; the prompt becomes one unit; words and sentences without a token are left out. Given
    spans all stay, and the tokens outside them form one last unit "rest". Whitespace belongs to the text after it.

    Args:
        text: the caller's text, without the prompt.
        units: units of that text, in order.
        level: "token" (the units themselves), "word", "sentence", or spans of characters.
        finest: whether the units are model tokens, which may cross a word's end; other units that do so raise.

    Example:
        >>> units, members = group("It isn't", (Unit("It", 0, 2), Unit("isn", 3, 6), Unit("'t", 6, 8)), "word")
        >>> [unit.text for unit in units], members
        (['It', "isn't"], (0, 1, 1))
    """
    if isinstance(level, str) and choose("level", level, LEVELS) == "token":
        return tuple(units), tuple(range(len(units)))
    spans = level_spans(text, level)
    if not finest:
        _refuse_coarser(text, units, spans, level)
    coarse = [Unit(text[start:end], start, end) for start, end in spans]
    homes = [_home(text, i, unit, coarse) for i, unit in enumerate(units)]
    for i in range(len(units)):
        # A compound of units that stay apart is one of theirs.
        inside = list(dict.fromkeys(homes[part] for part in parts(units, i)))
        if inside:
            homes[i] = inside[0] if len(inside) == 1 else (-1, Unit.compound(text, [home for _, home in inside]))
    first = {home: len(units) + 1.0 if home[1].kind == "rest" else i for i, home in reversed([*enumerate(homes)])}
    if not isinstance(level, str):
        # A span without tokens stands before the next span that has some, or else after the last text token.
        place = max((i for i, unit in enumerate(units) if unit.kind == "text"), default=len(units)) + 0.5
        for home in [(-1, unit) for unit in reversed(coarse)]:
            first[home] = place = min(place, first.get(home, place))
    order = {home: n for n, home in enumerate(sorted(first, key=lambda home: (first[home], home[1].start)))}
    return tuple(unit for _, unit in order), tuple(order[home] for home in homes)


def parts(units: Sequence[Unit], index: int) -> list[int]:
    """Return the units that a compound or a sentence consists of; none for other units."""
    spans = set(units[index].parts)
    if not spans:
        return []
    return [i for i, unit in enumerate(units) if unit.kind in ("text", "rest") and (unit.start, unit.end) in spans]


def level_spans(text: str, level: Any) -> list[Span]:
    """Return disjoint spans in order of position; words and sentences cover every character but whitespace.

    Example:
        >>> level_spans("A cat.", "word"), level_spans("A cat.", [(2, 5), (0, 1)])
        ([(0, 1), (2, 5), (5, 6)], [(0, 1), (2, 5)])
    """
    if isinstance(level, str):
        # A text of whitespace has no words, but its tokens need a unit.
        return (words if level == "word" else sentences)(text) or [(0, len(text))]
    try:
        spans = sorted((index(start), index(end)) for start, end in level)
    except (TypeError, ValueError):
        spans = []
    if not spans:
        raise InputError(f"unknown level {level!r}. Valid: {', '.join(LEVELS)}, or spans [(start, end), …].")
    for (_, taken), (start, end) in pairwise([(0, 0), *spans]):
        if not 0 <= start < end <= len(text):
            raise InputError(f"bad span ({start}, {end}): expected 0 <= start < end <= {len(text)}, the text's length.")
        if start < taken:
            raise InputError(f"bad span ({start}, {end}): it overlaps the one before, which ends at {taken}.")
    return spans


def both_levels(level: Level | tuple[Level, Level]) -> tuple[Level, Level]:
    """Return the levels of text a and of text b: a single level is used for both.

    Example:
        >>> both_levels("word")
        ('word', 'word')
        >>> both_levels(("word", [(0, 5)]))
        ('word', [(0, 5)])
        >>> both_levels([(0, 5), (6, 20)])
        ([(0, 5), (6, 20)], [(0, 5), (6, 20)])
    """
    if not isinstance(level, str) and isinstance(level, Sequence) and len(level) == 2:
        spans = [isinstance(side, Sequence) and len(side) > 0 and isinstance(side[0], Sequence) for side in level]
        if all(isinstance(side, str) or is_spans for side, is_spans in zip(level, spans, strict=True)):
            return level[0], level[1]  # pyright: ignore[reportReturnType]
    return level, level  # pyright: ignore[reportReturnType]


def plain_level(level: Level) -> str | list[list[int]]:
    """Return a level as it is written into settings: a name, or a list of spans.

    Example:
        >>> plain_level([(0, 5)])
        [[0, 5]]
    """
    return level if isinstance(level, str) else [[int(start), int(end)] for start, end in level]


def _refuse_coarser(text: str, units: Sequence[Unit], spans: list[Span], level: Level) -> None:
    """Raise if a unit crosses an edge of the spans."""
    edges = sorted({edge for span in spans for edge in span})
    # "rest" may hold characters of any span, unless it is the rest of these very spans.
    mixed = not set(spans) <= {(unit.start, unit.end) for unit in units if unit.kind == "text"}
    for unit in units:
        start, end = trim(text, unit.start, unit.end)
        cut = bisect_right(edges, start) < bisect_left(edges, end)
        if (unit.kind == "text" and cut) or (unit.kind == "rest" and mixed):
            raise InputError(f"{unit} is coarser than {level!r}: explain with level='token', or with this level.")


def _home(text: str, i: int, unit: Unit, coarse: list[Unit]) -> tuple[int, Unit]:
    """Return the coarse unit of the i-th unit, with a number that keeps equal special tokens apart."""
    if unit.kind == "special":
        return i, unit
    if unit.kind == "text":
        first = trim(text, unit.start, unit.end)[0]
        visible = RUN.search(text, first)
        for char in (first, visible.start() if visible else max(0, len(text.rstrip()) - 1)):
            j = bisect_right(coarse, char, key=lambda holder: holder.end)
            if j < len(coarse) and coarse[j].start <= char:
                return -1, coarse[j]
    kind = "prompt" if unit.kind == "prompt" else "rest"
    return -1, Unit(f"({kind})", 0, 0, kind)
