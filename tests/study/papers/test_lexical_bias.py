"""The study of lexical bias."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.study.papers import lexical_bias
from studies import VIEW


def lexeme(form: str, *, content: bool = True) -> lexical_bias.Lexeme:
    return lexical_bias.Lexeme(form, frozenset([form.lower()]), "", content)


def test_classes_of_pairs_of_words():
    classify = lexical_bias.classifier(None)
    assert classify(lexeme("Tea"), lexeme("tea")) == "same content word"
    assert classify(lexeme("the", content=False), lexeme("The", content=False)) == "same function word"
    assert classify(lexeme("tea"), lexeme("coffee")) == "other words"
    assert classify(lexeme("."), lexeme(".")) is None


def test_means_by_fifths_of_the_score():
    pairs = [{"view": VIEW.label, "pair": i, "score": i / 10} for i in range(10)]
    raw = [
        {"view": VIEW.label, "pair": i, "score": i / 10, "kind": "same content word", "value": float(i)}
        for i in range(10)
    ]
    rows = [row for row in lexical_bias.describe(raw, pairs) if row["kind"] == "same content word"]
    assert [row["word_pairs"] for row in rows] == [2, 2, 2, 2, 2]
    assert [row["mean"] for row in rows] == [0.5, 2.5, 4.5, 6.5, 8.5]
    assert rows[0]["error"] == pytest.approx(0.5 / np.sqrt(2))
    assert (rows[0]["score_low"], rows[-1]["score_high"]) == (0.0, 0.9)
    assert lexical_bias.occurring(lexical_bias.describe(raw, pairs)) == {"same content word": 0}


def test_shares_that_each_class_explains():
    kinds = lexical_bias.CLASSES
    pairs = [
        {
            "sums": dict(zip(kinds, sums, strict=True)),
            "total": total,
            "score": score,
            "label": label,
            "overlap": overlap,
        }
        for sums, total, score, label, overlap in (
            ((0.4, 0.1, 0.0, -0.1), 0.5, 0.9, 0.1, 0.9),
            ((0.1, 0.1, 0.2, 0.1), 0.5, 0.5, 0.4, 0.5),
            ((0.0, 0.0, 0.0, 1.0), 1.0, 0.1, 0.9, 0.1),
        )
    ]
    numbers = lexical_bias.explained(pairs)
    assert numbers["shares"][kinds[0]]["of_all"] == pytest.approx(0.25)
    assert numbers["shares"][kinds[0]]["mean"] == pytest.approx((0.8 + 0.2 + 0.0) / 3)
    assert numbers["shares"][kinds[3]]["median"] == pytest.approx(0.2)
    assert numbers["overlap_against_error"] == pytest.approx(1.0)  # 0.8, 0.1 and -0.8 in the order of the overlap
