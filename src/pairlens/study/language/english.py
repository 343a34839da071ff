"""English words and sentences for the studies of negation, adjectives and lexical bias."""

from __future__ import annotations

from importlib.resources import files

CUES = frozenset("cannot neither never no nobody none nor not nothing nowhere n't without".split())
FUNCTION = frozenset(
    """
    a about above across after again against all also am among an and another any are as at be because been before
    behind being below between both but by can could did do does doing down during each either else even every few for
    from further had has have having he her here hers him his how i if in into is it its itself just may me might more
    most much must my now of off on once one only or other our out over own per rather same shall she should since so
    some still such than that the their them then there these they this those though through to too toward under until
    up upon us very was we were what when where which while who whom whose why will with within would yet you your
    """.split()
)
"""Closed-class words, without the cues of negation."""
FUNCTION_TAGS = frozenset("ADP AUX CCONJ DET PART PRON SCONJ".split())
_WHOLE = {"can't": "can", "won't": "will", "shan't": "shall", "cannot": "can", "ain't": "is"}


def is_cue(word: str) -> bool:
    """Whether a word negates.

    Example:
        >>> is_cue("Not"), is_cue("isn’t"), is_cue("knot")
        (True, True, False)
    """
    plain = word.lower().replace("’", "'")
    return plain in CUES or plain.endswith("n't")


def without_cue(word: str) -> str:
    """A word without its negation; "" for a word that is a negation, and for any other word.

    Example:
        >>> without_cue("isn't"), without_cue("won't"), without_cue("not")
        ('is', 'will', '')
    """
    plain = word.lower().replace("’", "'")
    if plain in _WHOLE:
        return _WHOLE[plain]
    return word[:-3] if plain.endswith("n't") else ""


def _lines(name: str) -> tuple[str, ...]:
    """The lines of a list in this folder."""
    return tuple(files("pairlens.study.language").joinpath(name).read_text(encoding="utf-8").splitlines())


NEGATING = ("not", "never")
PADDING = ("also", "still", "now")
"""Words that can stand in place of a negation and hardly change the meaning."""
SLOTS = _lines("negation.txt")
"""Sentences with a place for a word that negates, or for another one."""
TRIPLES = tuple(tuple(line.split()) for line in _lines("adjectives.txt"))
"""A noun, an adjective, one of the same meaning and one of the opposite."""
FRAMES = ("The {noun} was {adjective}.", "We talked about the {adjective} {noun} yesterday.")
PLAIN_FRAMES = ("It was {adjective}.", "They said that it was {adjective}.")
"""Frames for adjectives without a noun."""
