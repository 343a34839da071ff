"""Contrasts: the difference of two explanations of one query."""

from __future__ import annotations

import numpy as np
import pytest

import zoo
from browser import visit
from pairlens import Contrast, InputError, Lens

A, B = "The coffee here is not good.", "This coffee is bad."


@pytest.fixture(scope="module")
def tiny():
    return Lens(zoo.encoder("bert"), dtype="float64")


def test_contrast_is_the_difference_of_two_explanations(tiny):
    c = tiny.contrast("coffee", A, "Dogs run.", layer=1, level="word")
    assert c.difference == pytest.approx(c.a.score - c.b.score)
    assert c.effects.sum() + c.base + c.gap == pytest.approx(c.difference, abs=1e-12)
    assert "coffee" in repr(c)


def test_a_contrast_counts_the_other_texts_pairs_against_it(tiny):
    c = tiny.contrast("coffee", A, "Dogs run.", layer=1, level="word")
    with_a = sum(pair.value for side, pair in c.top(10_000, special=True) if side == "a")
    with_b = sum(pair.value for side, pair in c.top(10_000, special=True) if side == "b")
    assert with_a == pytest.approx(c.a.matrix.sum())
    assert with_b == pytest.approx(-c.b.matrix.sum())


@pytest.fixture(scope="module")
def contrast(minilm):
    passages = "Refunds reach your account within five days.", "Money orders can be bought at any post office."
    return minilm.contrast("How long does it take to get my money back?", *passages)


def test_first_a_contrast_is_saved_and_loaded(contrast, tmp_path):
    loaded = Contrast.load(contrast.save(tmp_path / "why.json"))
    assert loaded.to_dict() == contrast.to_dict()
    assert repr(loaded) == repr(contrast)
    with pytest.raises(InputError, match=r"Valid: \.json, \.html, \.png, \.svg, \.pdf"):
        contrast.save(tmp_path / "why.npz")
    with pytest.raises(InputError, match=r"holds 'pairlens\.explanation' and not 'pairlens\.contrast'"):
        Contrast.load(contrast.a.save(tmp_path / "a.json"))


def test_first_the_words_of_a_contrast_become_a_table(contrast):
    table = contrast.to_pandas()
    assert table["unit"].tolist() == [unit.text for unit in contrast.units]
    assert table["value"].sum() == pytest.approx(contrast.effects.sum())
    assert np.allclose(table["with_a"] - table["with_b"], table["value"])


def test_first_a_contrast_shows_both_explanations_side_by_side(contrast, chromium, tmp_path):
    heading = "Why is one text closer? Mostly because of back, then long"
    with visit(
        chromium, contrast.save(tmp_path / "why.html").as_uri(), viewport={"width": 1280, "height": 900}
    ) as page:
        assert page.locator("h1").inner_text() == heading
        assert page.locator(".pl-score .pl-name").all_inner_texts() == ["the closer text", "the other text"]
        scores = page.locator(".pl-score output").all_inner_texts()
        assert scores == [f"{contrast.a.score:.4f}", f"{contrast.b.score:.4f}"]
    cell = contrast._repr_html_()
    assert "<iframe" in cell
    assert f"<b>a is closer: score {contrast.a.score:.4f} with a, {contrast.b.score:.4f} with b</b>" in cell


def test_first_a_contrast_is_drawn_on_one_scale(contrast, tmp_path):
    figure, axes = contrast.plot()
    assert len(axes) == 2
    assert "Mostly because of back" in "".join(text.get_text() for text in figure.texts)
    assert contrast.save(tmp_path / "why.svg").stat().st_size > 10_000


def test_first_a_long_query_is_contrasted_by_its_sentences(minilm):
    query = (
        "We arrived late at night and nobody was there to let us in. The room was quiet and clean. Breakfast was poor: "
        "the coffee was cold and the bread was old. We would still come back for the view. The train left on time and "
        "arrived early, and the seats were comfortable."
    )
    c = minilm.contrast(query, "Cold coffee and old bread.", "The train was early.")
    assert [unit.text for unit in c.units if unit.kind == "text"][1] == "The room was quiet and clean."
    assert c.effects.sum() + c.base + c.gap == pytest.approx(c.difference, abs=1e-9)
    assert "then “" in repr(c).splitlines()[1] + repr(c).splitlines()[2]
    with pytest.raises(InputError, match="two explanations of one query"):
        Contrast(c.a, minilm.explain("Another.", "One."))
