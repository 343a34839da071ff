"""Words and sentences of a text by rule, as spans of characters: for every script, without a model or a dictionary."""

import re
import unicodedata
from itertools import pairwise

Span = tuple[int, int]
"""Characters [start, end) of a text."""

RUN = re.compile(r"\S+")
_LINE_BREAK = re.compile(r"\r\n|[\n\r\v\f\x85\u2028\u2029]")
_CLOSERS = "\"'”’)]}»›」』）】》〉］｝*_\ufe0e\ufe0f"
_OPENERS = "\"'“‘„([{«‹「『（【《〈［｛*_¿¡"
_TERMINATORS = ".!?…؟।"
_CJK_END = re.compile(f"[。！？｡][。！？｡{re.escape(_TERMINATORS)}]*[{re.escape(_CLOSERS)}]*")
_LIST_ITEM = re.compile(r"[-*•‣◦–—+]|\(?\d{1,3}[.)]")
_ENUMERATOR = re.compile(r"\(?(\d{1,3}|[^\W\d_])")
_NEVER_ENDS = re.compile(  # matched against a word and the next one; "No." alone is a sentence
    r"(mrs?|m[sx]|dr|prof|gen|sen|rep|gov|lt|col|capt|sgt|rev|mme|e\.?g|i\.?e|cf|vs|viz|figs?|eqs?) "
    r"|(nos?|pp?|jan|feb|mar|apr|jun|jul|aug|sept?|oct|nov|dec) \d"
)
_MAY_END = re.compile(r"([^\W\d_]\.)*[^\W\d_]|al|ave|blvd|bros|ca|co|corp|dept|eds?|etc|inc|jr|ltd|sec|sr|st|univ|vol")
_STARTER = re.compile("The|An?|He|She|It|We|They|I|You|This|That|These|There|In|On|At|If|When|But|And|So|What|How|Why")
_CJK = re.compile("[\u2e80-\u2fdf\u3005-\u30ff\u31f0-\u9fff\uf900-\ufaff\uff66-\uff9d\U00020000-\U0003ffff]")
_JOINED = re.compile("\u200d|[🇦-🇿]{2}|.[\u200c\u200d\uff9e\uff9f\U0001f3fb-\U0001f3ff\U000e0020-\U000e007f]")
# One letter per character: (w)ord, (c)jk, (p)unctuation, (f)ullwidth punctuation, (j)oined to the character before.
_WORD = re.compile("(?:[pf]j*)+|cj*|w(?:[wpj]*w)?j*")


def words(text: str) -> list[Span]:
    """Return the words of a text; a word never crosses the end of a sentence.

    A word is a whitespace-separated run without the punctuation at its two ends; a run of punctuation is a word of its
    own. Punctuation is Unicode category P: % # @ & split off, $ + = do not. Every Han or kana character is a word,
    fullwidth punctuation always separates, and a grapheme (accents, emoji sequences) is never cut.

    Example:
        >>> [text[i:j] for text in ["It isn't 3.14, e.g. 東京!?"] for i, j in words(text)]
        ['It', "isn't", '3.14', ',', 'e.g', '.', '東', '京', '!?']
    """
    spans: list[Span] = []
    for begin, end in sentences(text):
        for run in RUN.finditer(text, begin, end):
            letters = "".join(map(_character_class, " " + run.group(), run.group()))
            spans += [(run.start() + match.start(), run.start() + match.end()) for match in _WORD.finditer(letters)]
    return spans


def sentences(text: str) -> list[Span]:
    """Return the sentences of a text: they end after . ! ? … 。！？, not after abbreviations or before lower case.

    A blank line always ends a sentence; a single line break does if the line ends in a terminator or a list item
    follows.

    Example:
        >>> [text[i:j] for text in ["Dr. No paid $3.50. Why? 好。的"] for i, j in sentences(text)]
        ['Dr. No paid $3.50.', 'Why?', '好。', '的']
    """
    spans: list[Span] = []
    runs = [run.span() for run in RUN.finditer(text)]
    begin = runs[0][0] if runs else 0
    for (start, end), (after, stop) in pairwise([*runs, (len(text), len(text))]):
        for match in _CJK_END.finditer(text, start, end):
            cut = match.end()
            while cut < end and _character_class(text[cut - 1], text[cut]) == "j":
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


def trim(text: str, start: int, end: int) -> Span:
    """Return the span clipped to the text, without whitespace at its ends; a span of whitespace alone stays.

    Example:
        >>> trim("a cat", 1, 9), trim("a  b", 1, 3)
        ((2, 5), (1, 3))
    """
    start = min(max(start, 0), len(text))
    piece = text[start : max(start, end)]
    left = len(piece) - len(piece.lstrip())
    return (start + left, start + len(piece.rstrip())) if left < len(piece) else (start, start + len(piece))


def _character_class(before: str, char: str) -> str:
    """Return the letter that `_WORD` reads for a character; in doubt, a character joins the one before it."""
    category = unicodedata.category(char)[0]
    if not before.isspace() and (category == "M" or _JOINED.match(before + char)):
        return "j"
    if category == "P":
        return "f" if unicodedata.east_asian_width(char) in "WF" else "p"
    return "c" if _CJK.match(char) else "w"


def _ends(run: str, gap: str, following: str, first: bool) -> bool:
    """Return whether a sentence ends with `run`.

    Args:
        run: a run of characters without whitespace.
        gap: the whitespace behind it.
        following: the next run.
        first: whether the sentence so far is `run` alone.
    """
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
