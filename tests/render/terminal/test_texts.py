import re
from dataclasses import replace

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from explanations import COFFEE, make
from terminal_output import marked, pairs_of, show


def test_pairs_are_numbered_in_the_texts():
    e = make("red green blue black", "one two three", special=False)
    shown = show(e, 80, top=6)
    words_a, words_b = marked(shown, "a"), marked(shown, "b")
    assert [word for word, _ in words_a] == ["red", "green", "blue", "black"]
    for rank, pair in enumerate(e.top(6), 1):
        assert rank in words_a[pair.row][1]
        assert rank in words_b[pair.column][1]
        assert pairs_of(shown)[rank - 1].split()[:4] == [str(rank), pair.a.text, "·", pair.b.text]
    assert sum(len(ranks) for _, ranks in words_a) == 6


def test_numbers_are_stacked_where_there_is_no_room_beside():
    matrix = np.arange(9, 0, -1.0).reshape(3, 3)
    shown = show(make("(a)", "x y z", matrix=matrix, special=False), 80, top=9)  # three units in one word
    assert shown.splitlines()[3:10] == ["a  (a)", "   1 7 8 9", "   2", "   3", "    4", "    5", "    6"]


@settings(max_examples=50, deadline=None)
@given(st.integers(1, 60), st.integers(1, 12), st.integers(1, 12), st.integers(0, 9), st.sampled_from([30, 80]))
def test_every_number_is_below_its_word(top, n, m, seed, width):
    random = np.random.default_rng(seed)
    text_a, text_b = (" ".join("x" * random.integers(1, 8) for _ in range(count)) for count in (n, m))
    e = make(text_a, text_b, seed=seed, special=False)
    shown = show(e, width, top=top)
    for name, places in (("a", [pair.row for pair in e.top(top)]), ("b", [pair.column for pair in e.top(top)])):
        if len({"a": text_a, "b": text_b}[name]) <= width - 3:
            words = marked(shown, name)
            assert {(i, rank) for i, (_, ranks) in enumerate(words) for rank in ranks} == {
                (place, rank) for rank, place in enumerate(places, 1)
            }


def test_special_tokens_have_a_place_when_they_are_linked():
    matrix = np.zeros((4, 3))
    matrix[0, 0] = matrix[3, 2] = 1.0
    e = make("one two", "three", matrix=matrix)
    assert "[CLS] one two [SEP]" in show(e, special=True, top=2)
    assert "[CLS]" not in show(make("one two", "three"), top=1).splitlines()[0]


def test_text_of_special_tokens_that_contribute_zero_is_shown():
    e = make("one two", "x", matrix=np.zeros((4, 3)))
    e = replace(e, units_b=e.units_b[::2], matrix=np.zeros((4, 2)), effects_b=np.zeros(2), entry_error=np.zeros((4, 2)))
    shown = show(e, top=1)
    assert "one two" in shown
    assert shown.splitlines()[4].startswith("b")  # nothing of a is linked


def test_long_texts_are_shortened_around_linked_words():
    text = " ".join(f"word{i}" for i in range(1200))
    matrix = np.zeros((1202, 3))
    matrix[701, 1] = 1.0
    shown = show(make(text, "b", matrix=matrix), 80, top=1)
    lines = [line for line in shown.splitlines() if re.search(r"word\d+ word\d", line)]
    assert len(lines) <= 6
    around = [f"word{i}" for i in range(690, 710)]
    assert set(around) <= set(shown.split())  # what is linked, word700, and around it
    assert lines[0].startswith("a  …")
    assert shown.count("…") == 2  # before and after


def test_truncated_texts_have_a_note():
    assert "only its beginning" in show(make(*COFFEE, truncated_b=True))
    assert "only its beginning" not in show(make(*COFFEE))


def test_first_the_numbers_below_words_have_a_legend(guitar):
    lines = show(guitar).splitlines()
    legend = lines.index("   numbers: pairs in the list below")
    assert lines[legend + 2] == "strongest pairs"
    assert "numbers:" not in show(replace(guitar, entry_error=np.ones_like(guitar.entry_error)))
