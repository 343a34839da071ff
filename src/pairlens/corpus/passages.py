"""Passages: a text that is longer than the model takes becomes several records, each of as many sentences as fit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from pairlens.corpus.records import TextRecord
from pairlens.errors import InputError
from pairlens.text import Span, sentences


def split(record: TextRecord, encoder: Any, role: str | None) -> list[TextRecord]:
    """The passages of a text, named `id#1`, `id#2` and so on, with its id as `parent`; a text that fits stays whole.

    A sentence is never cut in two: one that is longer than the model takes is a passage of its own.

    Args:
        record: the text.
        encoder: the model.
        role: of the text.
    """
    if _fits(record.text, encoder, role):
        return [record]
    passages: list[Span] = []
    for start, end in sentences(record.text):
        if passages and _fits(record.text[passages[-1][0] : end], encoder, role):
            passages[-1] = passages[-1][0], end
        else:
            passages.append((start, end))
    if len(passages) == 1:
        return [record]
    return [
        replace(record, id=f"{record.id}#{number}", text=record.text[start:end], parent=record.id)
        for number, (start, end) in enumerate(passages, 1)
    ]


def _fits(text: str, encoder: Any, role: str | None) -> bool:
    """Whether the model takes a text without cutting it; what it cannot read at all is rejected later."""
    try:
        return not encoder.read(text, role).truncated
    except InputError:
        return True
