"""An opened sentence has one name in all outputs, and everything says what its row is."""

import pytest

from pairlens.render.names import by_levels, noun
from pairlens.render.notebook import static
from pairlens.render.text import meanings, summary
from terminal_output import show


@pytest.mark.parametrize(
    ("level", "called", "said"),
    [
        ("token", "token", "by tokens"),
        ("zoom", "word or sentence", "by sentences and words"),
        (["zoom", "sentence"], "word or sentence", "a by sentences and words, b by sentences"),
        ([[0, 2], [3, 5]], "span", ""),
        (["word", [[0, 5]]], "word or span", "a by words"),
    ],
)
def test_levels_have_names(level, called, said):
    assert noun({"level": level}) == called
    assert by_levels({"level": level}) == said


def test_an_opened_sentence_has_its_name_in_every_view(zoomed):
    for view in (summary(zoomed), static(zoomed), show(zoomed)):
        assert "coffee · sentence 2 as a whole" in view.replace("<bdi>", "").replace("</bdi>", "").replace("  ", " ")
        assert "(sentence 2)" not in view
    assert "sentence as a whole: what it does beyond its single words" in meanings(zoomed)
    assert "sentence as a whole: what it does beyond" in show(zoomed)
