import re

from explanations import COFFEE, LONG, make
from figures import TEXTS, words
from pairlens.render import plot


def test_lines_of_a_block_join_to_the_text():
    e = make(LONG, COFFEE[1], special=False)
    _, ax = plot.links(e, width=6.9)
    drawn = words(ax)
    lines = sorted({t.get_position()[1] for t in drawn})
    shown = [t.get_text() for y in lines[:-1] for t in drawn if t.get_position()[1] == y]
    assert "".join(shown) == re.sub(r"\s", "", LONG)


def test_hebrew_and_arabic_run_from_right_to_left():
    _, ax = plot.links(make(*TEXTS["hebrew"], special=False))
    drawn = {t.get_text(): t.get_position()[0] for t in words(ax)}
    for text in TEXTS["hebrew"]:
        places = [drawn[word] for word in text.split()]
        assert places == sorted(places, reverse=True)
    _, ax = plot.links(make("אבג one two דהו", "x", special=False))
    drawn = {t.get_text(): t.get_position()[0] for t in words(ax)}
    assert drawn["דהו"] < drawn["one"] < drawn["two"] < drawn["אבג"]
