"""Where the tokens of a tokenizer stand in the caller's text, also if it gives no offsets or cuts the text short."""

import re
import unicodedata
from collections.abc import Sequence

from pairlens.errors import InputError
from pairlens.text.segmentation import Span, trim, words
from pairlens.text.units import Unit

_MARKER = re.compile(r"^##(?=.)|(?<=.)@@$|</w>$|[▁Ġ\s]")
_CONTROL = re.compile(r"[\[<]\|?/?(?!unk)\w+\|?[\]>]", re.IGNORECASE)
_WINDOW = 64  # characters that a tokenizer may drop before `align` treats the next token as unknown


def token_units(
    text: str, tokens: Sequence[str], offsets: Sequence[Span], special: Sequence[bool], prompt: int = 0
) -> tuple[Unit, ...]:
    """Return one unit for every model token, with its characters in the caller's text.

    Args:
        text: what the tokenizer read: the prompt and the caller's text, joined.
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
        start, end = trim(text, *offset)
        if added:
            here = len(text) - prompt if i > last else here
            units.append(Unit(token, here, here, "special"))
        elif start < prompt:
            units.append(Unit(text[start : min(end, prompt)] or token, 0, 0, "prompt"))
        else:
            here = end - prompt
            units.append(Unit(text[start:end] or token, start - prompt, here))
    return tuple(units)


def align(text: str, tokens: Sequence[str]) -> list[Span]:
    """Return character offsets for a tokenizer that gives none, as well as the tokens' strings allow; never raises.

    Case, accents and subword markers (## ▁ Ġ @@ </w>) are ignored. Unknown tokens take the next words, up to the next
    token that is found, and share the last of them. Control tokens such as [CLS] take no character.

    Example:
        >>> align("Où est ☃?", ["[CLS]", "ou", "es", "##t", "[UNK]", "?", "[SEP]"])
        [(0, 0), (0, 2), (3, 5), (5, 6), (7, 8), (8, 9), (9, 9)]
    """
    folded = _fold(text)
    origin = [*(i for i, char in enumerate(text) for _ in _fold(char)), len(text)]  # of each folded character
    text_words = words(text)
    spans: list[Span] = []
    unknown: list[int] = []
    here = 0  # in `folded`: the characters before it are taken
    for token in (*tokens, None):
        piece = _MARKER.sub("", token or "")
        key = _fold(piece)
        near = here + len(key) + _WINDOW * (1 + 2 * len(unknown))
        at = len(folded) if token is None else folded.find(key, here, near) if key else -1
        low, high = origin[here], origin[at]
        if unknown and at >= 0:
            free = [(max(i, low), min(j, high)) for i, j in text_words if i < high and j > low] or [(low, low)]
            for n, i in enumerate(unknown):
                spans[i] = free[min(n, len(free) - 1)]
            unknown.clear()
        if key and at >= 0:
            here = at + len(key)
            spans.append(trim(text, high, max(origin[here], origin[here - 1] + 1)))
        elif token is not None:
            spans.append(spans[-1] if piece and not key and spans else (low, low))  # a mark goes with its letter
            if key and not _CONTROL.fullmatch(piece):
                unknown.append(len(spans) - 1)
    return spans


def tokenized_forms(text: str) -> list[tuple[str, int]]:
    """Return the texts that sentence-transformers may have tokenized in its place, and how many characters each lost.

    Example:
        >>> tokenized_forms(" Hi")
        [(' Hi', 0), ('Hi', 1), (' hi', 0), ('hi', 1)]
    """
    lead = len(text) - len(text.lstrip())
    forms = [(text, 0), (text.strip(), lead), (text.lower(), 0), (text.strip().lower(), lead)]
    return [form for form in forms if len(form[0]) in (len(text), len(text.strip()))]


def tokens_left(ids: list[int], full: list[int], special: list[bool], side: str) -> list[int] | None:
    """Return the places of a truncated text's tokens in its full tokenization, or None if the tokens differ.

    Args:
        ids: the token ids that the model reads.
        full: those of the whole text.
        special: which tokens of the whole text the tokenizer added; truncation keeps them.
        side: the end that is cut, "left" or "right".

    Example:
        >>> tokens_left([0, 7, 1], [0, 7, 8, 9, 1], [True, False, False, False, True], "right")
        [0, 1, 4]
    """
    if ids == full:
        return list(range(len(full)))
    drop = len(full) - len(ids)
    inner = [i for i, added in enumerate(special) if not added]
    if not 0 < drop < len(inner):
        return None
    gone = set(inner[:drop] if side == "left" else inner[-drop:])
    places = [i for i in range(len(full)) if i not in gone]
    return places if [full[i] for i in places] == ids else None


def _fold(text: str) -> str:
    """Return the characters without case, accent or width, and without marks and whitespace."""
    plain = unicodedata.normalize("NFKD", unicodedata.normalize("NFKD", text).casefold())
    return "".join(char for char in plain if unicodedata.category(char)[0] != "M" and not char.isspace())
