"""The study of syntactic roles."""

from __future__ import annotations

import numpy as np
import pytest

from pairlens import study
from pairlens.study.language.annotations import Annotations
from pairlens.study.language.conllu import Sentence, Token, Word
from pairlens.study.language.relations import Words
from pairlens.study.papers import syntactic_roles
from studies import materials


def words(pair: int, relations: str, values: list[float]) -> Words:
    return Words(pair, relations.split(), np.array(values), sum(values))


def test_mean_share_and_lift_of_roles_by_hand():
    pairs = [words(1, "obj–obj obj–root obj–root", [0.4, 0.1, -0.1]), words(2, "obj–obj", [0.2])]
    rows = {row["relation"]: row for row in syntactic_roles.describe(pairs)}
    assert list(rows) == ["obj–obj", "obj–root"]
    assert rows["obj–obj"]["mean"] == pytest.approx(0.3)
    assert rows["obj–root"]["mean"] == pytest.approx(0.0)
    assert rows["obj–root"]["mean_absolute"] == pytest.approx(0.1)
    assert rows["obj–obj"]["share"] == pytest.approx(0.6 / 0.8)
    assert rows["obj–obj"]["frequency"] == 0.5
    assert rows["obj–obj"]["lift"] == pytest.approx(1.5)
    assert rows["obj–root"]["lift"] == pytest.approx(0.5)


@pytest.mark.filterwarnings("ignore::pairlens.ReferenceWarning")
def test_annotations_without_roles_are_refused(lens):
    tokens = [Token(word, [Word(number, word, "", "", None, "")]) for number, word in enumerate(("tea", "time"), 1)]
    untagged = Annotations([[Sentence("tea time", tokens)]])
    given = materials(lens, annotations=untagged, pairs=[("tea time", "tea time")])
    assert "hold no dependency relations" in study.run("syntactic-roles", given).skipped
