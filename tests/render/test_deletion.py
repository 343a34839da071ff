"""The score without a word, as all views show it."""

import json
from dataclasses import replace

import numpy as np
import pytest

from explanations import COFFEE, make
from pairlens.render import html
from pairlens.render.deletion import without_each
from pairlens.text import rows_without

WITHOUT = {
    "guitar": "A man is playing a .",
    "man": "A is playing a guitar.",
    "playing": "A man is a guitar.",
}


def test_scores_in_a_saved_file_are_those_of_the_shortened_texts(guitar, minilm, tmp_path):
    page = guitar.save(tmp_path / "why.html").read_text(encoding="utf-8")
    payload = json.loads(page.split('id="pairlens-payload">')[1].split("</script>")[0])
    units = {unit["text"]: unit for unit in payload["views"][0]["levels"][0]["units_a"]}
    for word, text in WITHOUT.items():
        assert units[word]["measured"]
        real = minilm.explain(text, guitar.text_b, method="output").score
        assert units[word]["without"] == pytest.approx(real, abs=1e-5)


def test_units_without_a_measurement_are_forecast_where_the_explanation_predicts(guitar):
    without, _ = without_each(replace(guitar, measured_a=None))
    assert [w is None for w in without] == [unit.kind == "special" for unit in guitar.units_a]
    assert without[2] == (guitar.without(a=[2]), False)
    assert without_each(make(*COFFEE)) == ([None] * 9, [None] * 7)
    whole = guitar.at("sentence")
    assert without_each(whole)[0] == [None] * 3, "nothing would be left of the text"


def test_a_compound_goes_with_its_words(negation):
    units = negation.units_b
    compound = next(i for i, unit in enumerate(units) if unit.text == "not good")
    words = [i for i, unit in enumerate(units) if unit.kind == "text" and unit.text in ("not", "good")]
    assert without_each(negation)[1][compound] == (pytest.approx(negation.without(b=words)), False)
    assert set(words) | {compound} <= set(rows_without(units, [compound]))
    assert compound in rows_without(units, [words[0]])
    assert without_each(negation)[1][0] is None, "special tokens stay"


def test_picture_holds_what_the_forecast_of_two_words_needs(negation):
    level = html.payload(negation)["views"][0]["levels"][0]
    for i, j in ((2, 4), (7, 8)):
        gone_a, gone_b = (level[f"units_{x}"][n].get("removes", [n]) for x, n in (("a", i), ("b", j)))
        kept_a, kept_b = (
            np.array([n not in gone for n in range(len(level[f"units_{x}"]))])
            for x, gone in (("a", gone_a), ("b", gone_b))
        )
        score = negation.base + negation.effects_a @ kept_a + negation.effects_b @ kept_b
        score += kept_a @ negation.matrix @ kept_b + negation.gap
        assert score == pytest.approx(negation.without([i], [j]))


def test_an_opened_sentence_goes_with_all_its_words(zoomed):
    _, known = without_each(zoomed)
    words = [i for i, unit in enumerate(zoomed.units_b) if unit.kind == "text" and unit.start >= 15]
    assert known[-1] == (pytest.approx(zoomed.without(b=words)), False)
    assert known[-1] is not None
    assert known[-1].score == pytest.approx(zoomed.score - 0.3 - 0.2 + 0.1), "the words and the row of the sentence"
    measured = replace(zoomed, measured_b=np.full(len(zoomed.units_b), 0.25))
    assert without_each(measured)[1][-1] == known[-1], "only units that are deleted alone are measured"
