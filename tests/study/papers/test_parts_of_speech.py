"""The study of parts of speech."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pairlens import study
from pairlens.study.language.annotations import Annotations
from pairlens.study.language.conllu import Sentence
from pairlens.study.language.relations import Words
from pairlens.study.papers import parts_of_speech
from studies import materials


def words(pair: int, relations: str, values: list[float], total: float | None = None) -> Words:
    return Words(pair, relations.split(), np.array(values), sum(values) if total is None else total)


def test_shares_of_relations_among_the_highest_contributions():
    pairs = [words(1, "N–N N–V V–V N–N", [9.0, 1.0, 5.0, -8.0]), words(2, "N–V V–V", [7.0, 0.0])]
    shares = parts_of_speech.relation_shares(pairs)
    # Highest first: 9 N–N, 7 N–V, 5 V–V, 1 N–V, 0 V–V, -8 N–N. Ten per cent of six are one, 25 two, 50 three.
    assert shares[0.10] == Counter({"N–N": 1})
    assert shares[0.25] == Counter({"N–N": 1, "N–V": 1})
    assert shares[0.50] == Counter({"N–N": 1, "N–V": 1, "V–V": 1})
    assert shares[1.0] == Counter({"N–N": 2, "N–V": 2, "V–V": 2})


def test_predictions_rebuilt_from_relations():
    own = words(1, "NOUN–NOUN NOUN–VERB DET–NOUN VERB–VERB", [4.0, -1.0, 2.0, 1.0], total=8.0)
    rebuilt = parts_of_speech.rebuild(own, ["DET–NOUN"])
    assert rebuilt["nouns_and_verbs"] == pytest.approx(0.5)
    assert rebuilt["ten_relations"] == pytest.approx(0.25)
    assert rebuilt["all_words"] == pytest.approx(0.75)
    assert rebuilt["strongest"] == pytest.approx(6 / 8)  # ninety per cent of four are all four
    ten = words(1, "A–A " * 10, [10.0, -9.0, 8.0, 7.0, 6.0, 5.0, 4.0, 3.0, 2.0, 1.0])
    assert parts_of_speech.rebuild(ten, [])["strongest"] == pytest.approx(36 / 37)  # all but the weakest
    means = parts_of_speech.describe([rebuilt, {**rebuilt, "nouns_and_verbs": 1.5}])
    assert means["nouns_and_verbs"] == pytest.approx({"mean": 1.0, "sd": 0.5, "median": 1.0})


def test_annotations_of_other_texts_are_no_annotations(lens):
    other = Annotations([[Sentence("Something else.", [])]])
    assert "hold none of the pairs' texts" in study.run("parts-of-speech", materials(lens, annotations=other)).skipped
