"""Annotation with spaCy."""

from __future__ import annotations

import pytest

from pairlens.study.language import parsing


def test_a_pipeline_without_a_parser_gives_one_sentence():
    spacy = pytest.importorskip("spacy")
    (document,) = parsing.parse(spacy.blank("en"), ["One. Two."])
    assert [[token.form for token in sentence.tokens] for sentence in document] == [["One", ".", "Two", "."]]
    assert {word.head for sentence in document for token in sentence.tokens for word in token.words} == {None}
