"""Where the tokens of a text stand, and the words, sentences and spans that they add up to. Text only: no model."""

import re
import unicodedata
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from operator import index
from typing import Any, Literal

from pairlens.errors import InputError, choose

Kind = Literal["text", "special", "prompt", "rest"]
Span = tuple[int, int]  # characters [start, end) of a text
Level = str | Sequence[Span]  # one of LEVELS, or spans of characters
LEVELS = ("token", "word", "sentence")

_RUN = re.compile(r"\S+")
_LINE_BREAK = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
_CLOSERS = "\"'”’)]}»›」』）】》〉］｝*_\ufe0e\ufe0f"
_OPENERS = "\"'“‘„([{«‹「『（【《〈［｛*_¿¡"
_TERMINATORS = ".!?…؟।"
_CJK_END = re.compile(f"[。！？｡][。！？｡{re.escape(_TERMINATORS)}]*[{re.escape(_CLOSERS)}]*")
_LIST_ITEM = re.compile(r"[-*•‣◦–—+]|\(?\d{1,3}[.)]")
_ENUMERATOR = re.compile(r"\(?(\d{1,3}|[^\W\d_])")
_NEVER_ENDS = re.compile(  # of a word and the next one; "No." alone is a sentence
    r"(mrs?|m[sx]|dr|prof|gen|sen|rep|gov|lt|col|capt|sgt|rev|mme|e\.?g|i\.?e|cf|vs|viz|figs?|eqs?) "
    r"|(nos?|pp?|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec) \d"
)
_MAY_END = re.compile(r"([^\W\d_]\.)*[^\W\d_]|al|ave|blvd|bros|ca|co|corp|dept|eds?|etc|inc|jr|ltd|sec|sr|st|univ|vol")
_STARTER = re.compile("The|An?|He|She|It|We|They|I|You|This|That|These|There|In|On|At|If|When|But|And|So|What|How|Why")
_CJK = re.compile("[\u2e80-\u2fdf\u3005-\u30ff\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]")
_JOINED = re.compile("\u200d|[🇦-🇿]{2}|.[\u200c\u200d\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
# Read from one letter per character: (w)ord, (c)jk, (p)unctuation, (f)ullwidth punctuation, (j)oined to the one before.
_WORD = re.compile("(?:[pf]j*)+|cj*|w(?:[wpj]*w)?j*")
_MARKER = re.compile(r"^##(?=.)|(?<=.)@@$|</w>$|[▁Ġ\s]")
_CONTROL = re.compile(r"[\[<]\|?/?(?!unk)\w+\|?[\]>]", re.IGNORECASE)
_WINDOW = 64  # how many characters a tokenizer may drop before `align` takes a token for unknown


@dataclass(frozen=True, slots=True)
class Unit:
    """A stretch of text that receives a contribution.

    Args:
        text: the characters themselves; a special token's name.
        start, end: characters [start, end) of the caller's text.
        kind: "text", "special", "prompt", or "rest" (the tokens that no given span holds).

    Example:
        >>> Unit("coffee", 4, 10)
        Unit(text='coffee', start=4, end=10, kind='text')
    """

    text: str
    start: int
    end: int
    kind: Kind = "text"


def token_units(
    text: str, tokens: Sequence[str], offsets: Sequence[Span], special: Sequence[bool], prompt: int = 0
) -> tuple[Unit, ...]:
    """One unit for every model token, with its characters in the caller's text.

    Args:
        text: what the tokenizer read: the prompt and the caller's text, together.
        tokens: the tokens' strings.
        offsets: each token's characters of `text`, as the tokenizer gave them.
        special: which tokens the tokenizer added.
        prompt: how many leading characters of `text` are the prompt; the units' offsets do not count them.

    Example:
        >>> token_units("q: isn't", ["q:", "Ġisn", "'t"], [(0, 2), (2, 6), (6, 8)], [False] * 3, prompt=3)[:2]
        (Unit(text='q:', start=0, end=0, kind='prompt'), Unit(text='isn', start=0, end=3, kind='text'))
    """
    if prompt and any(end > len(text) for _, end in offsets):
        raise InputError(f"an offset beyond the text's {len(text)} characters: pass the prompt and the text joined.")
    last = max((i for i, added in enumerate(special) if not added), default=len(special))
    units: list[Unit] = []
    here = 0  # where the tokens so far end in the caller's text
    for i, (token, offset, added) in enumerate(zip(tokens, offsets, special, strict=True)):
        start, end = _trim(text, *offset)
        if added:
            here = len(text) - prompt if i > last else here
            units.append(Unit(token, here, here, "special"))
        elif start < prompt:
            units.append(Unit(text[start : min(end, prompt)] or token, 0, 0, "prompt"))
        else:
            here = end - prompt
            units.append(Unit(text[start:end] or token, start - prompt, here))
    return tuple(units)


def words(text: str) -> list[Span]:
    """The words of a text, which never cross a sentence.

    A word is a whitespace-separated run without the punctuation at its two ends; a run of punctuation is a unit of its
    own. Punctuation is Unicode category P: % # @ & split off, $ + = do not. Han and kana go by character, fullwidth
    punctuation always separates, and a grapheme (accents, emoji sequences) is never cut.

    Example:
        >>> [text[i:j] for text in ["It isn't 3.14, e.g. 東京!?"] for i, j in words(text)]
        ['It', "isn't", '3.14', ',', 'e.g', '.', '東', '京', '!?']
    """
    spans: list[Span] = []
    for begin, end in sentences(text):
        for run in _RUN.finditer(text, begin, end):
            kinds = "".join(map(_kind, " " + run.group(), run.group()))
            spans += [(run.start() + m.start(), run.start() + m.end()) for m in _WORD.finditer(kinds)]
    return spans


def sentences(text: str) -> list[Span]:
    """The sentences of a text, by rule: after . ! ? … 。！？, not after abbreviations, initials or before lower case.

    A blank line always ends a sentence; a single line break where the line ends in a terminator or a list item follows.

    Example:
        >>> [text[i:j] for text in ["Dr. No paid $3.50. Why? 好。的"] for i, j in sentences(text)]
        ['Dr. No paid $3.50.', 'Why?', '好。', '的']
    """
    spans: list[Span] = []
    runs = [run.span() for run in _RUN.finditer(text)]
    begin = runs[0][0] if runs else 0
    for (start, end), (after, stop) in pairwise([*runs, (len(text), len(text))]):
        for match in _CJK_END.finditer(text, start, end):
            cut = match.end()
            while cut < end and _kind(text[cut - 1], text[cut]) == "j":
                cut += 1
            if cut > begin:
                spans.append((begin, cut))
                begin = cut
        if begin < end:
            if after < stop and not _ends(text[start:end], text[end:after], text[after:stop], begin == start):
                continue
            spans.append((begin, end))
        begin = after
    return spans


def group(
    text: str, units: Sequence[Unit], level: Level, *, finest: bool = False
) -> tuple[tuple[Unit, ...], tuple[int, ...]]:
    """The units of a coarser level and, for each given unit, the index of the one that holds its first character.

    Special tokens stay single; the prompt becomes one unit; words and sentences without a token are left out. Given
    spans all stay, and what none of them holds is one last unit "rest". Whitespace goes with what follows it.

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
    first = {home: len(units) + 1.0 if home[1].kind == "rest" else i for i, home in reversed([*enumerate(homes)])}
    if not isinstance(level, str):
        # A span without tokens stands before the next span that has some, or else after the last text.
        place = max((i for i, unit in enumerate(units) if unit.kind == "text"), default=len(units)) + 0.5
        for home in [(-1, unit) for unit in reversed(coarse)]:
            first[home] = place = min(place, first.get(home, place))
    order = {home: n for n, home in enumerate(sorted(first, key=lambda home: (first[home], home[1].start)))}
    return tuple(unit for _, unit in order), tuple(order[home] for home in homes)


def align(text: str, tokens: Sequence[str]) -> list[Span]:
    """Character offsets for a tokenizer that gives none, as well as the tokens' strings allow; never raises.

    Case, accents and subword markers (## ▁ Ġ @@ </w>) are ignored; unknown tokens take the next words, up to the next
    token that is found, and share the last of them; control tokens such as [CLS] take no character.

    Example:
        >>> align("Où est ☃?", ["[CLS]", "ou", "es", "##t", "[UNK]", "?", "[SEP]"])
        [(0, 0), (0, 2), (3, 5), (5, 6), (7, 8), (8, 9), (9, 9)]
    """
    folded = _fold(text)
    origin = [*(i for i, char in enumerate(text) for _ in _fold(char)), len(text)]  # of each folded character
    found = words(text)
    spans: list[Span] = []
    unknown: list[int] = []
    here = 0  # in `folded`: what comes before is taken
    for token in (*tokens, None):
        piece = _MARKER.sub("", token or "")
        key = _fold(piece)
        near = here + len(key) + _WINDOW * (1 + 2 * len(unknown))
        at = len(folded) if token is None else folded.find(key, here, near) if key else -1
        low, high = origin[here], origin[at]
        if unknown and at >= 0:
            free = [(max(i, low), min(j, high)) for i, j in found if i < high and j > low] or [(low, low)]
            for n, i in enumerate(unknown):
                spans[i] = free[min(n, len(free) - 1)]
            unknown.clear()
        if key and at >= 0:
            here = at + len(key)
            spans.append(_trim(text, high, max(origin[here], origin[here - 1] + 1)))
        elif token is not None:
            spans.append(spans[-1] if piece and not key and spans else (low, low))  # a mark goes with its letter
            if key and not _CONTROL.fullmatch(piece):
                unknown.append(len(spans) - 1)
    return spans


def _trim(text: str, start: int, end: int) -> Span:
    """The span inside the text, without whitespace at its ends; a span of whitespace alone stays."""
    start = min(max(start, 0), len(text))
    piece = text[start : max(start, end)]
    left = len(piece) - len(piece.lstrip())
    return (start + left, start + len(piece.rstrip())) if left < len(piece) else (start, start + len(piece))


def _kind(before: str, char: str) -> str:
    """The letter that `_WORD` reads for a character; graphemes are joined rather too often than too seldom."""
    category = unicodedata.category(char)[0]
    if not before.isspace() and (category == "M" or _JOINED.match(before + char)):
        return "j"
    if category == "P":
        return "f" if unicodedata.east_asian_width(char) in "WF" else "p"
    return "c" if _CJK.match(char) else "w"


def _fold(text: str) -> str:
    """The characters without case, accent or width; nothing for marks and whitespace."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in plain if unicodedata.category(char)[0] != "M" and not char.isspace())


def _ends(run: str, gap: str, following: str, first: bool) -> bool:
    """Whether a sentence ends with `run`, before the whitespace `gap`; `first`: the run is all of it so far."""
    breaks = len(_LINE_BREAK.findall(gap))
    if breaks > 1 or "\u2029" in gap or (breaks and _LIST_ITEM.fullmatch(following)):
        return True
    closed = run.rstrip(_CLOSERS)
    core = closed.rstrip(_TERMINATORS)
    if core == closed or following[0] in _TERMINATORS:
        return False
    start, word = following.lstrip(_OPENERS), core.lstrip(_OPENERS).lower()
    if closed[len(core) :] == ".":
        if _NEVER_ENDS.match(f"{word} {start}") or (first and _ENUMERATOR.fullmatch(core)):
            return False
        if _MAY_END.fullmatch(word):  # initials too
            return bool(_STARTER.fullmatch(start))
    return breaks > 0 or not start[:1].islower()


def level_spans(text: str, level: Any) -> list[Span]:
    """Disjoint spans in order of position; those of words and sentences hold every character that is not white."""
    if isinstance(level, str):
        return (words if level == "word" else sentences)(text) or [(0, len(text))]  # whitespace must go somewhere too
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


def _refuse_coarser(text: str, units: Sequence[Unit], spans: list[Span], level: Level) -> None:
    edges = sorted({edge for span in spans for edge in span})
    # "rest" may hold characters of any span, except where the spans are among the units that it is the rest of.
    mixed = not set(spans) <= {(unit.start, unit.end) for unit in units if unit.kind == "text"}
    for unit in units:
        start, end = _trim(text, unit.start, unit.end)
        cut = bisect_right(edges, start) < bisect_left(edges, end)
        if (unit.kind == "text" and cut) or (unit.kind == "rest" and mixed):
            raise InputError(f"{unit} is coarser than {level!r}: explain with level='token', or with this level.")


def _home(text: str, i: int, unit: Unit, coarse: list[Unit]) -> tuple[int, Unit]:
    """The coarse unit that the i-th unit goes to; the number keeps equal special tokens apart."""
    if unit.kind == "special":
        return i, unit
    if unit.kind == "text":
        own = _trim(text, unit.start, unit.end)[0]
        ink = _RUN.search(text, own)
        for char in (own, ink.start() if ink else max(0, len(text.rstrip()) - 1)):
            j = bisect_right(coarse, char, key=lambda holder: holder.end)
            if j < len(coarse) and coarse[j].start <= char:
                return -1, coarse[j]
    kind = "prompt" if unit.kind == "prompt" else "rest"
    return -1, Unit(f"({kind})", 0, 0, kind)


def both_levels(level: Level | tuple[Level, Level]) -> tuple[Level, Level]:
    """The levels of text a and of text b: one level stands for both, a pair of levels for one each.

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


def zoomed(text: str, chosen: Sequence[Unit]) -> list[Span]:
    """The sentences of a text, and instead of the chosen ones their words.

    Example:
        >>> zoomed("It rained. We left.", [Unit("It rained.", 0, 10)])
        [(0, 2), (3, 9), (9, 10), (11, 19)]
    """
    inside = {(unit.start, unit.end) for unit in chosen}
    spans = [span for span in sentences(text) if span not in inside]
    return sorted(spans + [(i, j) for i, j in words(text) if any(start <= i < end for start, end in inside)])


def plain_level(level: Level) -> str | list[list[int]]:
    """A level as it is written into settings: a name, or a list of spans.

    Example:
        >>> plain_level([(0, 5)])
        [[0, 5]]
    """
    return level if isinstance(level, str) else [[int(start), int(end)] for start, end in level]
