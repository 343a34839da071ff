"""Every statistic of the studies against a small case worked out by hand."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from pairlens.attribution.explanation import Explanation
from pairlens.study.language.relations import Words
from pairlens.study.materials import text_tokens
from pairlens.study.papers import (
    adjectives,
    agreement,
    convergence,
    cumulative,
    distribution,
    failures,
    layers,
    lexical_bias,
    negation,
    parts_of_speech,
    syntactic_roles,
)
from pairlens.study.views import View
from pairlens.text import Unit

VIEW = View("integrated-jacobian", 3, "ignore")


def explanation(matrix, a: str = "good tea", b: str = "bad tea") -> Explanation:
    """An explanation of single-space texts, one token a word, with a special token at either end."""
    matrix = np.asarray(matrix, dtype=float)

    def units(text):
        found, here = [Unit("[CLS]", 0, 0, "special")], 0
        for word in text.split():
            start = text.index(word, here)
            found.append(Unit(word, start, start + len(word)))
            here = start + len(word)
        return (*found, Unit("[SEP]", len(text), len(text), "special"))

    ua, ub = units(a), units(b)
    zeros = np.zeros(len(ua)), np.zeros(len(ub))
    tokens = tuple(u.text for u in ua), tuple(u.text for u in ub)
    error = np.zeros_like(matrix)
    return Explanation(a, b, float(matrix.sum()), matrix, ua, ub, *tokens, 0.0, *zeros, 0.0, 0.0, 0.0, error)


# 1. Convergence.


def test_new_steps_complete_half_as_many():
    # ∫₀¹ 2α dα by n right-hand steps is (n + 1) / n: 2, 3/2, 5/4, 9/8.
    total, seen = 0.0, []
    for n in (1, 2, 4, 8):
        table = convergence.Odd(n).table()
        total = total / 2 + float(table.weights @ (2 * table.nodes))
        seen.append(total)
    assert seen == pytest.approx([2, 1.5, 1.25, 1.125])
    assert convergence.Odd(4).table().nodes.tolist() == [0.25, 0.75]
    assert convergence.Odd(1).table().nodes.tolist() == [1.0]


def test_convergence_table():
    raw = [
        {"rule": "riemann", "layer": 0, "asked": 2, "points": 2.0, "error": 0.1, "gap": 0.2},
        {"rule": "riemann", "layer": 0, "asked": 2, "points": 2.0, "error": 0.3, "gap": 0.6},
        {"rule": "adaptive", "layer": 0, "asked": 1e-3, "points": 10.0, "error": 0.0, "gap": 0.001},
    ]
    first, second = convergence.describe(raw)
    assert (first["pairs"], first["points_mean"]) == (2, 2.0)
    assert (first["error_mean"], first["error_sd"]) == pytest.approx((0.2, 0.1))
    assert (first["gap_mean"], first["gap_sd"]) == pytest.approx((0.4, 0.2))
    assert (second["rule"], second["points_mean"], second["error_sd"]) == ("adaptive", 10.0, 0.0)


# 2. Distribution.


def test_distribution():
    row = distribution.describe(VIEW, [np.array([-1.0, 1.0, 2.0, 2.0]), np.array([-3.0, 4.0])])
    assert row["view"] == "layer 3, ignore"
    assert (row["pairs"], row["token_pairs"]) == (2, 6)
    assert row["negative"] == pytest.approx(2 / 6)
    assert row["negative_sd"] == pytest.approx(0.125)  # of 1/4 and 1/2
    assert (row["mean"], row["median"]) == pytest.approx((5 / 6, 1.5))


def test_special_tokens_are_left_out_of_the_distribution():
    e = explanation(np.arange(16).reshape(4, 4))
    assert text_tokens(e).tolist() == [[5, 6], [9, 10]]


# 3. Cumulative.


def test_cumulative_shares():
    line = cumulative.curve(np.array([1.0, 4.0, -2.0, 1.0]))  # sorted: 4, -2, 1, 1; sums 4, 2, 3, 4 of 4
    assert [cumulative.at(line, share) for share in (0, 0.25, 0.26, 0.5, 0.75, 1)] == [0, 1, 0.5, 0.5, 0.75, 1]
    twenty = cumulative.curve(np.array([10.0, *[1.0] * 10, *[0.0] * 9]))
    assert cumulative.at(twenty, 0.05) == 0.5  # one of twenty: rounding must not make it two


def test_cumulative_needs():
    spread = np.full(201, 0.01)
    spread[:100] = 0.5
    spread[120] = 0.03  # a relapse counts
    assert cumulative.needed(spread, 0.05) == pytest.approx(0.5)
    assert cumulative.needed(spread, 0.02) == pytest.approx(121 / 200)
    assert cumulative.needed(spread, 0.001) is None


def test_cumulative_table():
    curves = np.array([np.full(201, 0.5), np.full(201, 1.5)])
    row = cumulative.describe("x", curves)
    assert (row["top_mean"], row["top_sd"], row["top_median"]) == (1.0, 0.5, 1.0)
    assert row["needed_sd_5%"] is None


# 4. and 9. Parts of speech and roles.


def words(pair: int, relations: str, values: list[float], total: float | None = None) -> Words:
    own = np.array(values)
    return Words(pair, relations.split(), own, float(own.sum()) if total is None else total)


def test_shares_of_relations():
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
    found = parts_of_speech.describe([rebuilt, {**rebuilt, "nouns_and_verbs": 1.5}])
    assert found["nouns_and_verbs"] == pytest.approx({"mean": 1.0, "sd": 0.5, "median": 1.0})


def test_roles_by_how_often_they_occur():
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


# 5. Layers, 7. failures, 8. agreement.


def test_likeness_of_neighbouring_layers():
    one, two = np.array([1.0, 2.0, 3.0, 4.0]), np.array([1.0, 3.0, 2.0, 4.0])
    assert layers.likeness([one, two]) == pytest.approx(0.8)  # 1 - 6 · 2 / (4 · 15)
    assert layers.likeness([one, two, -two]) == pytest.approx(-0.1)
    assert layers.likeness([one]) == 1.0


def test_failures():
    assert failures.scaled(np.array([0.0, 1.0])).tolist() == [0.0, 1.0]
    assert failures.scaled(np.array([0.0, 2.0])).tolist() == [0.0, 0.4]
    assert failures.scaled(np.array([20.0, 80.0])).tolist() == [0.25, 1.0]
    overlaps = np.array([0.8, 0.5, 0.2, 0.9])
    row = failures.describe(np.array([0.9, 0.5, 0.1, np.nan]), np.array([0.1, 0.5, 0.6, 0.5]), overlaps)
    assert row["overlap"] == pytest.approx({"over": 0.8, "under": 0.2, "all": 0.5})
    assert failures.overlap("A good tea.", "the GOOD tea") == 0.5  # good and tea of a, good, tea and the
    assert row["mean_off"] == pytest.approx(0.1)  # 0.8, 0 and -0.5
    assert row["mean_absolute"] == pytest.approx(1.3 / 3)
    assert (row["over"], row["under"]) == pytest.approx((1 / 3, 1 / 3))
    assert row["spearman"] == pytest.approx(-1.0)


def test_pearson_by_hand():
    x, y = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    assert agreement.pearson(x, y) == pytest.approx(3 / np.sqrt(2 * 14 / 3))
    assert agreement.pearson(x, 3 - 2 * x) == pytest.approx(-1.0)
    assert agreement.pearson(x, np.ones(3)) is None
    table = agreement.describe(
        [
            {"comparison": "c", "layer": 1, "pearson": 0.5, "spearman": 1.0},
            {"comparison": "c", "layer": 1, "pearson": 0.7, "spearman": None},
        ]
    )
    assert (table[0]["pearson_mean"], table[0]["pearson_sd"]) == pytest.approx((0.6, 0.1))
    assert (table[0]["spearman_mean"], table[0]["pairs"]) == (1.0, 2)


# 10. Negation.


def test_cues_and_what_is_left_of_a_text():
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


def test_negation_table():
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


# 11. Adjectives.


def test_how_well_synonyms_and_antonyms_are_told_apart():
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


def test_the_adjectives_own_pair():
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


# 12. Lexical bias.


def lexeme(form: str, *, content: bool = True) -> lexical_bias.Lexeme:
    return form, frozenset([form.lower()]), "", content


def test_classes_of_pairs_of_words():
    classify = lexical_bias.classifier(None)
    assert classify(lexeme("Tea"), lexeme("tea")) == "same content word"
    assert classify(lexeme("the", content=False), lexeme("The", content=False)) == "same function word"
    assert classify(lexeme("tea"), lexeme("coffee")) == "other words"
    assert classify(lexeme("."), lexeme(".")) is None


def test_fifths_of_the_score():
    pairs = [{"view": VIEW, "pair": i, "score": i / 10} for i in range(10)]
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


def test_what_each_class_explains():
    kinds = lexical_bias.CLASSES
    pairs = [
        {"sums": dict(zip(kinds, own, strict=True)), "total": total, "score": score, "label": label, "overlap": overlap}
        for own, total, score, label, overlap in (
            ((0.4, 0.1, 0.0, -0.1), 0.5, 0.9, 0.1, 0.9),
            ((0.1, 0.1, 0.2, 0.1), 0.5, 0.5, 0.4, 0.5),
            ((0.0, 0.0, 0.0, 1.0), 1.0, 0.1, 0.9, 0.1),
        )
    ]
    found = lexical_bias.explained(pairs)
    assert found["shares"][kinds[0]]["of_all"] == pytest.approx(0.25)
    assert found["shares"][kinds[0]]["mean"] == pytest.approx((0.8 + 0.2 + 0.0) / 3)
    assert found["shares"][kinds[3]]["median"] == pytest.approx(0.2)
    assert found["overlap_against_error"] == pytest.approx(1.0)  # 0.8, 0.1 and -0.8 in the order of the overlap
