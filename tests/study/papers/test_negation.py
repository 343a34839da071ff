"""The study of negation."""

from __future__ import annotations

import pytest

from pairlens.study.papers import negation


def test_cues_are_found_and_deleted_from_a_text():
    text = "It isn't so, nor can’t I say never."
    assert [text[i:j] for i, j in negation.cues(text)] == ["isn't", "nor", "can’t", "never"]
    assert negation.cues("Knots annoy nobleman Notker.") == []
    assert negation.shortened(text, 3, 8) == "It is so, nor can’t I say never."
    assert negation.shortened(text, 17, 22) == "It isn't so, nor can I say never."
    assert negation.shortened("No way.", 0, 2) == "way."
    assert [negation.kind_of(word) for word in ("not", "The", "tea", "…", "3")] == [
        "cue",
        "function",
        "content",
        None,
        "content",
    ]


def test_means_of_contributions_and_deletions_by_hand():
    common = {"view": "v", "word": "w", "pair": 1, "score": 0.5}
    raw = [
        {"part": "sentences", "kind": "cue", "own": -0.1, "moved": 0.3, **common},
        {"part": "sentences", "kind": "cue", "own": 0.3, "moved": 0.1, **common},
        {"part": "data", "kind": "function", "own": 0.2, "moved": -0.2, **common},
    ]
    data, sentences = negation.describe(raw)
    assert (sentences["own_mean"], sentences["own_absolute"]) == pytest.approx((0.1, 0.2))
    assert (sentences["moved_mean"], sentences["words"]) == (pytest.approx(0.2), 2)
    assert sentences["carried"] == pytest.approx(-0.2 / 0.4)
    assert (data["moved_mean"], data["moved_absolute"], data["carried"]) == (-0.2, 0.2, None)
