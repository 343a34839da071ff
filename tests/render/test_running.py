from itertools import pairwise

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st
from rich.cells import cell_len

from explanations import make_zoomed
from pairlens.render.axis import axis
from pairlens.render.running import Piece, cut, lay_out, to_pieces, wrap
from pairlens.text import Unit, words


@given(st.text(max_size=60), st.lists(st.tuples(st.integers(0, 60), st.integers(0, 60)), max_size=8))
def test_parts_of_a_cut_text_join_to_the_text(text, spans):
    units = tuple(Unit("x", min(i, j, len(text)), min(max(i, j), len(text))) for i, j in spans)
    parts = cut(text, units)
    assert "".join(part for part, _ in parts) == text
    assert sorted(index for _, index in parts if index is not None) == list(range(len(units)))


@settings(max_examples=50, deadline=None)
@given(st.lists(st.sampled_from(["a", "bb", "ccc", "incomprehensibility", "東", "京都"]), min_size=1, max_size=40))
def test_wrapping_keeps_every_character_within_the_width(words):
    pieces = [Piece(word, None, i % 3 > 0) for i, word in enumerate(words)]
    lines = wrap(pieces, lambda piece: cell_len(piece.text), 12)
    assert "".join(placed.piece.text for line in lines for placed in line) == "".join(words)
    for line in lines:
        assert line[-1].start + line[-1].width <= 12
        for one, other in pairwise(line):
            assert other.start == one.start + one.width + other.piece.space


def test_shortened_texts_keep_their_linked_units():
    text = " ".join(f"w{i}" for i in range(400))
    units = [Unit(text[i:j], i, j) for i, j in words(text)]
    pieces = to_pieces(text, units, axis(units, np.ones(400)), {3, 200, 399})
    lines = lay_out(pieces, {3, 200, 399}, lambda piece: len(piece.text), 60, 3)
    shown = [placed.piece.text for line in lines for placed in line]
    assert {"w3", "w200", "w399", "…"} <= set(shown)
    assert len(lines) <= 3


def test_an_opened_sentence_stands_behind_its_last_word():
    e = make_zoomed()
    indices = [index for _, index in cut(e.text_b, e.units_b) if index is not None]
    assert indices == list(range(len(e.units_b))), "the second sentence is the last"
    units = (*e.units_b[2:], e.units_b[1])
    assert [index for _, index in cut(e.text_b, units)][-2:] == [len(units) - 2, len(units) - 1]


def test_of_a_long_unit_the_first_words_are_kept():
    text = " ".join(f"w{i}" for i in range(400))
    units = [Unit(text[:1500], 0, 1500), Unit(text[1501:], 1501, len(text))]
    pieces = to_pieces(text, units, axis(units, np.ones(2)), {0, 1})
    lines = lay_out(pieces, {0, 1}, lambda piece: len(piece.text), 60, 3)
    shown = [placed.piece.text for line in lines for placed in line]
    assert pieces[0].text in shown
    assert next(piece.text for piece in pieces if piece.line == 1) in shown
