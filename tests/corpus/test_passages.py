"""Texts that are longer than the model takes, as passages of whole sentences."""

from __future__ import annotations

from itertools import pairwise

import pytest

import corpora
import zoo
from pairlens import Lens
from pairlens.corpus.passages import split
from pairlens.corpus.records import TextRecord
from pairlens.text import sentences


@pytest.fixture(scope="module")
def lens() -> Lens:
    return Lens(zoo.encoder("bert", prompts={"query": "", "document": "passage of a text: "}))


def test_passages_hold_all_sentences_and_as_many_as_fit(lens):
    text = " ".join(corpora.texts(20, seed=4))
    record = TextRecord("a", text, {"year": 3}, 7, 9)
    found = split(record, lens.encoder, "document")
    assert [part for one in found for part in _sentences(one.text)] == _sentences(text)
    assert [(one.id, one.parent, one.row, one.line) for one in found] == [
        (f"a#{n}", "a", 7, 9) for n in range(1, len(found) + 1)
    ]
    assert all(one.metadata == {"year": 3} for one in found)
    for one, following in pairwise(found):
        assert not lens.encoder.read(one.text, "document").truncated
        longer = f"{one.text} {_sentences(following.text)[0]}"
        assert lens.encoder.read(longer, "document").truncated


def test_a_text_that_fits_and_a_text_of_one_sentence_stay_whole(lens):
    for text in ("Short. Very short.", "coffee " * 100):
        record = TextRecord("a", text)
        assert split(record, lens.encoder, None) == [record]


def test_a_sentence_that_is_too_long_is_a_passage_of_its_own(lens):
    found = split(TextRecord("a", f"A cat. The {'coffee ' * 100}is good. A dog."), lens.encoder, None)
    assert [lens.encoder.read(one.text).truncated for one in found] == [False, True, False]


def _sentences(text: str) -> list[str]:
    return [text[start:end] for start, end in sentences(text)]
