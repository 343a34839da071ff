"""The study of adjectives."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens.study.papers import adjectives
from studies import explanation


def test_area_under_roc_tells_synonyms_from_antonyms():
    assert adjectives.area(np.array([0.9, 0.5]), np.array([0.5, 0.1])) == pytest.approx(3.5 / 4)
    assert adjectives.area(np.array([]), np.array([0.5])) is None
    rows = [
        {"view": "v", "source": "s", "relation": relation, "score": score, "own": own}
        for relation, score, own in (("synonym", 0.9, 0.1), ("synonym", 0.7, -0.1), ("antonym", 0.8, 0.2))
    ]
    first = adjectives.describe(rows)[0]
    assert (first["score_mean"], first["score_sd"]) == pytest.approx((0.8, 0.1))
    assert (first["own_mean"], first["own_negative"]) == pytest.approx((0.0, 0.5))
    assert adjectives.tell_apart(rows) == {"v": {"s": {"score": 0.5, "own": 0.0}}}


def test_own_pair_is_the_contribution_of_the_two_adjectives():
    e = explanation([[0, 0, 0, 0], [0, 0.25, 0.5, 0], [0, 0.75, 1, 0], [0, 0, 0, 0]], "good tea", "bad tea")
    assert adjectives.own_pair(e, 0) == 0.25


def test_frames_put_adjectives_at_one_place():
    for source in (adjectives.FRAMES, adjectives.PLAIN_FRAMES):
        for frame in source:
            case = adjectives.Case("s", "synonym", "big", "large", frame.replace("{noun}", "house"))
            one, other = case.texts
            assert one[case.start :].startswith("big")
            assert other[case.start :].startswith("large")
    for triple in adjectives.TRIPLES:
        assert len(set(triple)) == len(triple) == 4, triple
