"""Words and sentences: known texts of many scripts, and properties of any text."""

from itertools import pairwise

import pytest
import regex
from hypothesis import example, given, settings
from hypothesis import strategies as st

from pairlens.text import Span, sentences, words
from scripts import AWKWARD, SENTENCES, WORDS, pieces


def check_spans(text: str, spans: list[Span]) -> None:
    """Check that spans are disjoint, ordered and trimmed, and hold every character but whitespace."""
    assert all(start < end for start, end in spans)
    assert all(one[1] <= two[0] for one, two in pairwise(spans))
    assert all(piece == piece.strip() for piece in pieces(text, spans))
    held = {i for start, end in spans for i in range(start, end)}
    assert all(i in held for i, char in enumerate(text) if not char.isspace())


def test_the_check_of_spans_can_fail() -> None:
    with pytest.raises(AssertionError):
        check_spans("ab c", [(0, 2)])
    with pytest.raises(AssertionError):
        check_spans("ab c", [(0, 2), (1, 4)])


@pytest.mark.parametrize(("text", "expected"), WORDS)
def test_words_of_known_texts(text: str, expected: list[str]) -> None:
    assert pieces(text, words(text)) == expected


@pytest.mark.parametrize("marked", SENTENCES)
def test_sentences_of_known_texts(marked: str) -> None:
    text = marked.replace("|", "")
    assert pieces(text, sentences(text)) == [part.strip() for part in marked.split("|")]


@given(AWKWARD)
@settings(deadline=None)
def test_words_and_sentences_cover_the_text_and_nest(text: str) -> None:
    check_spans(text, words(text))
    check_spans(text, sentences(text))
    for start, end in words(text):
        assert any(begin <= start and end <= stop for begin, stop in sentences(text))


@given(st.text(st.sampled_from("aé!. 。「東か\u0301\u3099\u200d\ufe0f👨👩🏽🇫🇷한‼#\u20e3"), max_size=20))
@example(".\u200d🇫🇫")
@settings(deadline=None)
def test_words_never_cut_a_grapheme(text: str) -> None:
    # Unicode joins an accent to a space before it; there the space separates all the same.
    allowed = {match.start() for match in regex.finditer(r"\X", text)} | {len(text)}
    allowed |= {i + 1 for i, char in enumerate(text) if char.isspace()}
    assert {edge for span in words(text) for edge in span} <= allowed
