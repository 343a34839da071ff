"""Searches rank as the model does, and every hit says why."""

from __future__ import annotations

import numpy as np
import pytest
from sentence_transformers import util

import corpora
import zoo
from corpora import QUERY, TEXTS, record
from pairlens import Banzhaf, Lens
from pairlens.corpus import Index
from pairlens.errors import InputError


def ranking(model, query: str, texts: list[str], k: int, prompts: bool = False) -> list[tuple[int, float]]:
    """What sentence-transformers finds."""
    encode = (model.encode_query, model.encode_document) if prompts else (model.encode, model.encode)
    found = util.semantic_search(encode[0]([query], convert_to_tensor=True), encode[1](texts, convert_to_tensor=True))
    return [(int(hit["corpus_id"]), float(hit["score"])) for hit in found[0][:k]]


@pytest.mark.parametrize("prompts", [None, {"query": "query: ", "document": "passage: "}])
def test_search_ranks_as_sentence_transformers_does(prompts, tmp_path):
    model = zoo.encoder("bert", prompts=prompts)
    texts = corpora.texts(60, seed=1)
    index = Index.create(tmp_path / "index", Lens(model), method="output")
    index.add({"id": str(i), "text": text} for i, text in enumerate(texts))
    for query in [QUERY, *corpora.texts(5, seed=2)]:
        expected = ranking(model, query, texts, 10, prompts is not None)
        hits = index.search(query, 10)
        assert [hit.id for hit in hits] == [str(i) for i, _ in expected]
        assert [hit.score for hit in hits] == pytest.approx([score for _, score in expected], abs=1e-6)
        assert [hit.rank for hit in hits] == list(range(1, 11))


def test_prompts_make_a_difference(tmp_path):
    model = zoo.encoder("bert", prompts={"query": "query: ", "document": "passage: "})
    assert ranking(model, QUERY, TEXTS, 5, True) != ranking(model, QUERY, TEXTS, 5)


def test_equal_texts_are_ranked_by_name_however_many(lens, tmp_path):
    index = Index.create(tmp_path / "index", lens, method="output")
    # More twins than are asked for beyond k, added in another order than that of their names.
    index.add({"id": f"{i:02d}", "text": "The coffee is good."} for i in reversed(range(60)))
    index.add({"id": f"other{i}", "text": text} for i, text in enumerate(TEXTS))
    assert [hit.id for hit in index.search("The coffee is good.", 4)] == ["00", "01", "02", "03"]


def test_a_hit_says_why(index):
    hit = index.search(QUERY, 3)[0]
    e = hit.explanation
    assert e.score == pytest.approx(hit.score, abs=1e-6)
    assert e.text_a == QUERY
    assert e.text_b == hit.text == TEXTS[int(hit.id[1:])]
    unit, value = hit.passage
    coarse = index.explain(QUERY, hit.id, zoom=False)
    sentences = [i for i, u in enumerate(coarse.units_b) if u.kind == "text"]
    assert value == max(coarse.column[i] + coarse.effects_b[i] for i in sentences)
    assert hit.text[unit.start : unit.end] == unit.text
    assert hit.top(2)[0].value == e.top(1)[0].value
    assert hit.metadata == {"year": 1990 + int(hit.id[1:]), "title": hit.text[:5]}
    assert hit.id in repr(hit)


TEXT = " ".join(["The tea is hot and sweet.", "A man plays the guitar well.", "The coffee here is not so good."])


def test_hits_are_refined_to_words_that_sum_to_the_stored_sentences(lens, tmp_path):
    index = Index.create(tmp_path / "index", lens, precision="float32")
    index.add([{"text": TEXT}])
    (hit,) = index.search(QUERY, 1)
    e, coarse = hit.explanation, index.explain(QUERY, "1", zoom=False)
    assert any(unit.kind == "sentence" for unit in e.units_b)
    assert {"coffee", "guitar", "tea"} & {unit.text for unit in e.units_b}
    assert not {"coffee", "guitar", "tea"} & {unit.text for unit in coarse.units_b}
    assert np.abs(e.at(("word", "sentence")).matrix - coarse.matrix).max() < 1e-9
    fresh = lens.explain(QUERY, TEXT, level=("word", "zoom"), roles=("query", "document"))
    assert {unit.text for unit in e.units_b} == {unit.text for unit in fresh.units_b}
    assert np.abs(index.explain(QUERY, "1").matrix - e.matrix).max() < 1e-12
    (plain,) = index.search(QUERY, 1, zoom=False)
    assert plain.explanation.units_b == coarse.units_b


def test_errors_of_sentences_from_the_index_stay_in_a_refined_explanation(lens, tmp_path):
    text = " ".join(corpora.texts(8, seed=5))
    index = Index.create(tmp_path / "index", lens, precision="float32", method=Banzhaf(passes=10))
    index.add([{"text": text}])
    coarse, e = (index.explain(QUERY, "1", zoom=zoom) for zoom in (False, True))
    unopened = [unit for unit in e.units_b if unit in coarse.units_b and unit.kind == "text"]
    assert unopened
    for unit in unopened:
        fine, whole = e.entry_error[:, e.units_b.index(unit)], coarse.entry_error[:, coarse.units_b.index(unit)]
        assert whole.max() > 0
        assert np.abs(fine - whole).max() < 1e-9


def test_an_index_without_deletions_is_not_refined(lens, tmp_path):
    index = Index.create(tmp_path / "index", lens, method="output")
    index.add([{"text": TEXT}])
    assert not any(unit.kind == "sentence" for unit in index.search(QUERY, 1)[0].explanation.units_b)


def test_the_passage_of_an_index_of_words_is_a_sentence(lens, tmp_path):
    index = Index.create(tmp_path / "index", lens, level="word", method="output")
    index.add([{"text": "We slept well. The coffee was good. It rains."}])
    unit, value = index.search("good coffee", 1)[0].passage
    assert unit.text in ("We slept well.", "The coffee was good.", "It rains.")
    e = index.explain("good coffee", "1").at(("word", "sentence"))
    assert value == pytest.approx(max(v for u, v in zip(e.units_b, e.column, strict=True) if u.kind == "text"))


def test_filters(index):
    assert {hit.id for hit in index.search(QUERY, 40, where="metadata.year < 1993")} == {"t0", "t1", "t2"}
    assert index.search(QUERY, where="metadata.year > 3000") == []
    said = r"the filter 'year > 3' cannot be used: No field named year. .*: metadata.year \(int\), metadata.title"
    with pytest.raises(InputError, match=said):
        index.search(QUERY, where="year > 3")


def test_fewer_texts_than_asked_for(empty):
    assert empty.search(QUERY, 5) == []
    empty.add([record(0), record(1)])
    assert len(empty.search(QUERY, 5)) == 2
    with pytest.raises(InputError, match="k must be a whole number of at least 1, not 0"):
        empty.search(QUERY, 0)


def test_approximate_search(lens, tmp_path):
    texts = corpora.texts(100, seed=3)
    index = Index.create(tmp_path / "index", lens, method="output")
    index.add({"text": text} for text in texts[:90])
    with pytest.raises(InputError, match="approximate search needs an index of the embeddings"):
        index.search(QUERY, approximate=True)
    index.index_vectors()
    index.add({"id": f"late{i}", "text": text} for i, text in enumerate(texts[90:]))
    exact, near = (index.search(QUERY, 10, approximate=a) for a in (False, True))
    assert len({hit.id for hit in exact} & {hit.id for hit in near}) >= 8
    assert index.search(texts[95], 1, approximate=True)[0].id == "late5"


def test_why_not(index):
    ranked = index.search(QUERY, 40)
    contrast = index.why_not(QUERY, ranked[20].id, k=5)
    assert contrast.a.text_b == ranked[4].text
    assert contrast.b.text_b == ranked[20].text
    assert contrast.difference == pytest.approx(ranked[4].score - ranked[20].score, abs=1e-6)
    assert contrast.effects.sum() + contrast.base + contrast.gap == pytest.approx(contrast.difference, abs=1e-9)
    with pytest.raises(InputError, match=r"is hit 3 of 5: nothing keeps it below"):
        index.why_not(QUERY, ranked[2].id, k=5)
    with pytest.raises(InputError, match="the index has no text 'nobody'"):
        index.why_not(QUERY, "nobody")
    with pytest.raises(InputError, match=r"does not fit the filter 'metadata.year < 1992': that, and not its score"):
        index.why_not(QUERY, "t9", k=1, where="metadata.year < 1992")
