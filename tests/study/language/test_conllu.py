"""CoNLL-U files."""

from __future__ import annotations

import pytest

from handmade_conllu import line, words_of, write
from pairlens.errors import InputError
from pairlens.study.language import conllu
from pairlens.study.language.annotations import Annotations
from pairlens.study.language.conllu import Sentence, Token, Word


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        (["1\tIt\tit"], r"line 1: CoNLL-U has 10 columns, and this has 3"),
        ([line("x", "It")], "'x' is not the number of a word"),
        (["# text = nothing"], "hold no sentence"),
    ],
)
def test_files_that_are_not_conllu_raise(tmp_path, lines, message):
    with pytest.raises(InputError, match=message):
        Annotations.load(write(tmp_path / "f.conllu", *lines))


def test_a_written_file_reads_back(tmp_path):
    text = "It's 3.14, e.g.\n東京!"
    spans = [(0, 2), (2, 4), (5, 9), (9, 10), (11, 15), (16, 18), (18, 19)]
    words = [Word(n, text[i:j], "", "X", 0 if n == 1 else 1, "dep", (i, j)) for n, (i, j) in enumerate(spans, 1)]
    sentence = Sentence(text, [Token(word.form, [word], word.span) for word in words])
    path = write(tmp_path / "f.conllu", *conllu.write([sentence], "1"))
    shown, counted = words_of(path, text)
    assert [form for form, _, _ in shown] == ["It", "'s", "3.14", ",", "e.g.", "東京", "!"]
    assert counted == {}
    assert "SpaceAfter=No|TokenRange=0:2" in path.read_text(encoding="utf-8")
