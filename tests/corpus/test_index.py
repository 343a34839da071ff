"""The index: what is stored explains as a fresh lens does, searches rank as the model does, records come and go."""

from __future__ import annotations

import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest
import torch
from sentence_transformers import util

import corpora
import zoo
from pairlens import IntegratedJacobian, Lens, Shapley
from pairlens.corpus import Index
from pairlens.corpus.identity import fingerprint
from pairlens.errors import InputError, StoreError

TEXTS = corpora.texts(40)
QUERY = "Is the coffee good?"


@pytest.fixture(scope="module")
def lens() -> Lens:
    return Lens(zoo.encoder("bert"))


@pytest.fixture(scope="module")
def index(lens, tmp_path_factory) -> Index:
    """Forty texts, read only."""
    made = Index.create(tmp_path_factory.mktemp("corpus") / "index", lens, metadata={"year": "int", "title": "text"})
    records = [{"id": f"t{i}", "text": text, "year": 1990 + i, "title": text[:5]} for i, text in enumerate(TEXTS)]
    assert made.add(records).added == len(TEXTS)
    return made


@pytest.fixture
def empty(lens, tmp_path) -> Index:
    return Index.create(tmp_path / "index", lens, metadata={"year": "int"})


def record(i: int, text: str | None = None) -> dict[str, object]:
    return {"id": f"t{i}", "text": text or TEXTS[i], "year": i}


# What is stored is what a fresh lens gives.

ENCODERS = {
    "bert": lambda: zoo.encoder("bert"),
    "unnormalised": lambda: zoo.encoder("bert", normalize=False, similarity="dot"),
    "prompts": lambda: zoo.encoder("bert", prompts={"query": "query: ", "document": "passage: "}),
    "router": lambda: zoo.router("static", "bert"),
    "qwen3": lambda: zoo.encoder("qwen3"),
    "static": lambda: zoo.static(),
}
CASES = [
    ("bert", {}),
    ("bert", {"method": "occlusion", "level": "word"}),
    ("bert", {"layer": 2, "reference_terms": "keep"}),
    ("bert", {"method": "output", "reference_terms": "ignore"}),
    ("bert", {"layer": 3, "reference_terms": "shift", "precision": "float32"}),
    ("unnormalised", {"level": "token", "layer": 3}),
    ("prompts", {"layer": 3}),
    ("router", {}),
    ("qwen3", {"method": Shapley(passes=20), "level": "word"}),
    ("static", {"level": "word"}),
]


@pytest.mark.parametrize(("name", "options"), CASES, ids=[f"{name}-{i}" for i, (name, _) in enumerate(CASES)])
def test_an_explanation_from_the_store_is_a_fresh_one(name, options, tmp_path):
    lens = Lens(ENCODERS[name]())
    Index.create(tmp_path / "i", lens, **options).add({"text": text} for text in TEXTS[:6])
    index = Index.open(tmp_path / "i", lens)
    settings = index.settings
    for text_id in ("1", "4"):
        e = index.explain(QUERY, text_id, method=settings.method)
        fresh = lens.explain(
            QUERY,
            TEXTS[int(text_id) - 1],
            method=settings.method,
            rule=settings.rule,
            level=("word", settings.level),
            reference_terms=settings.reference_terms,
            measure=settings.measure,
            roles=("query", "document"),
        )
        assert e.matrix.shape == fresh.matrix.shape
        scale = max(1.0, abs(fresh.score))
        assert np.abs(e.matrix - fresh.matrix).max() < 2e-3 * scale
        for part in ("score", "base"):
            assert getattr(e, part) == pytest.approx(getattr(fresh, part), abs=2e-3 * scale)
        for side in "ab":
            assert np.abs(getattr(e, f"effects_{side}") - getattr(fresh, f"effects_{side}")).max() < 2e-3 * scale
            assert getattr(e, f"units_{side}") == getattr(fresh, f"units_{side}")
            assert getattr(e, f"tokens_{side}") == getattr(fresh, f"tokens_{side}")
            assert getattr(e, f"gap_{side}") == pytest.approx(getattr(fresh, f"gap_{side}"), abs=1e-6)
        parts = e.base + e.effects_a.sum() + e.effects_b.sum() + e.matrix.sum() + e.gap
        assert parts == pytest.approx(e.score, abs=1e-12)
        assert e.settings == {**fresh.settings, "nodes": e.settings["nodes"]}


def test_half_precision_is_what_makes_the_difference(lens, tmp_path):
    exact = Index.create(tmp_path / "exact", lens, precision="float32")
    half = Index.create(tmp_path / "half", lens)
    for index in (exact, half):
        index.add({"text": text} for text in TEXTS[:4])
    (fresh,) = lens.decompose([TEXTS[1]], progress=False, **exact.settings.options())
    differences = [np.abs(i.contributions(["2"])[0].values - fresh.values).max() for i in (exact, half)]
    assert differences[0] < 1e-6 < differences[1] < 1e-3


def test_two_texts_of_the_index(index, lens):
    e = index.compare("t1", "t2")
    fresh = lens.compare(*lens.decompose(TEXTS[1:3], progress=False, **index.settings.options()))
    assert np.abs(e.matrix - fresh.matrix).max() < 2e-3
    assert e.score == pytest.approx(fresh.score, abs=1e-6)


def test_the_default_is_shapley_with_few_passes_for_texts_and_many_for_queries(index):
    assert isinstance(index.settings.method, Shapley)
    assert index.settings.method.passes == 32
    assert index.settings.query_options()["method"] == replace(index.settings.method, passes=None)
    assert index.settings.query_options()["level"] == "word"
    permuted = replace(index.settings, method=Shapley(permutations=5))
    assert permuted.query_options()["method"] == permuted.method


# Search.


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
    sentences = [i for i, u in enumerate(e.units_b) if u.kind == "text"]
    assert value == max(e.column[i] for i in sentences)
    assert hit.text[unit.start : unit.end] == unit.text
    assert hit.top(2)[0].value == e.top(1, special=False)[0].value
    assert hit.metadata == {"year": 1990 + int(hit.id[1:]), "title": hit.text[:5]}
    assert hit.id in repr(hit)


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


# Records come and go.


def test_add_update_delete(empty):
    assert empty.add([record(0), record(1)]).added == 2
    again = empty.add([record(0), record(1, "Another text."), record(2)])
    assert (again.added, again.there, again.rejected) == (1, 1, 1)
    assert "is in the index with another text or metadata; --update replaces it" in again.rejects[0].reason
    changed = empty.update([record(0), record(1, "Another text."), record(3)])
    assert (changed.added, changed.there, changed.updated) == (1, 1, 1)
    assert len(empty) == 4
    assert empty.contributions(["t1"])[0].text == "Another text."
    assert empty.update([{"id": "t0", "text": TEXTS[0], "year": 77}]).updated == 1
    assert [hit.metadata["year"] for hit in empty.search(TEXTS[0], 1)] == [77]
    assert empty.delete(["t0", "t3", "nobody"]) == 2
    assert {row["id"] for row in corpora.rows(empty)} == {"t1", "t2"}
    empty.optimize()
    assert len(empty.search(QUERY)) == 2


def test_names_with_quotation_marks(empty):
    names = ["o'clock", 'a "b"', "x' OR '1'='1", "ünï 東"]
    empty.add({"id": name, "text": text} for name, text in zip(names, TEXTS, strict=False))
    assert [c.text for c in empty.contributions(names)] == TEXTS[:4]
    assert empty.delete([names[2]]) == 1
    assert len(empty) == 3


def test_records_without_a_name_are_numbered_and_may_lack_metadata(empty):
    empty.add([{"text": TEXTS[0]}, {"text": TEXTS[1], "year": None}])
    assert [row["id"] for row in corpora.rows(empty)] == ["1", "2"]
    assert empty.search(TEXTS[0], 1)[0].metadata == {"year": None}


@pytest.mark.parametrize(
    ("bad", "reason"),
    [
        ({"id": "x"}, "the text is missing"),
        ({"id": "x", "text": " \n"}, "the text is empty"),
        ({"id": "x", "text": 3}, "not a text but int 3"),
        ({"id": "x", "text": "half \ud83d of it"}, "the text is not UTF-8"),
        ({"id": 3.5, "text": "Good."}, "the id is float 3.5, and not a text or a whole number"),
        ({"id": "", "text": "Good."}, "the id is missing"),
        ({"id": "x", "text": "coffee " * 100}, "the text is longer than the 64 tokens that the model takes"),
        ({"id": "x", "text": "a" * 1_000_001}, "the text has 1000001 characters, and 1000000 is the most"),
        ({"id": "x", "text": "Good.", "year": "soon"}, "metadata year is 'soon', which is no int"),
        ({"id": "x", "text": "Good.", "colour": "red"}, "the index has no metadata 'colour'"),
        ("Good.", "not a record but str 'Good.'"),
    ],
)
def test_bad_records_are_rejected_and_said_why(empty, bad, reason):
    report = empty.add([record(0), bad, record(1)])
    assert (report.added, report.rejected) == (2, 1)
    assert reason in report.rejects[0].reason
    assert report.rejects[0].row == 2


def test_long_texts_can_be_kept(empty):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = empty.add([record(0, "coffee " * 100)], truncate=True)
    assert (report.added, report.truncated) == (1, 1)
    assert empty.contributions(["t0"])[0].truncated
    assert empty.search("coffee", 1)[0].explanation.truncated_b


def test_a_text_that_the_model_cannot_bear_is_rejected_alone(tmp_path):
    def embed(texts: list[str]) -> list[list[float]]:
        if any("fatal" in text for text in texts):
            raise RuntimeError("the kernel does not like this")
        return [[float("nan") if "poison" in text else 1.0, float(len(text))] for text in texts]

    index = Index.create(tmp_path / "index", Lens.from_function(embed, name="fragile"))
    report = index.add({"id": str(i), "text": text} for i, text in enumerate(["One.", "A poison.", "A fatal.", "Two."]))
    assert report.added == 2
    assert ["NaN" in report.rejects[0].reason, "does not like" in report.rejects[1].reason] == [True, True]


def test_a_model_that_fails_on_everything_is_an_error(tmp_path):
    broken = []

    def embed(texts: list[str]) -> list[list[float]]:
        if broken:
            raise RuntimeError("the service is down")
        return [[1.0, float(len(text))] for text in texts]

    index = Index.create(tmp_path / "index", Lens.from_function(embed, name="service"))
    broken.append(True)
    with pytest.raises(RuntimeError, match="the service is down"):
        index.add([{"text": "One."}, {"text": "Two."}])
    assert len(index) == 0


def test_numbers_that_half_precision_cannot_hold(tmp_path):
    def embed(texts: list[str]) -> list[list[float]]:
        return [[1e6 * len(text), 1.0] for text in texts]

    lens = Lens.from_function(embed, name="loud", measure="dot")
    report = Index.create(tmp_path / "half", lens).add([{"text": "One. Two."}])
    assert "float16 cannot hold" in report.rejects[0].reason
    assert Index.create(tmp_path / "single", lens, precision="float32").add([{"text": "One. Two."}]).added == 1


# What an index was made with.


def test_another_model_is_refused_and_both_are_named(index):
    with pytest.raises(
        InputError, match=r"made with the model 'zoo/bert' \(fingerprint \w{16}\), and this is 'zoo/mpnet'"
    ):
        Index.open(index.path, Lens(zoo.encoder("mpnet")))


def test_other_settings_are_refused_and_both_are_named(index, lens):
    Index.open(index.path, lens, level="sentence", measure="cosine")
    with pytest.raises(InputError, match="level is 'sentence', not 'word'"):
        Index.open(index.path, lens, level="word")
    with pytest.raises(
        InputError, match=r"method is Shapley\(passes=32, near=1.5\), not IntegratedJacobian\(layer=2\)"
    ):
        Index.open(index.path, lens, layer=2)
    with pytest.raises(InputError, match="precision is 'float16', not 'float32'"):
        Index.open(index.path, lens, precision="float32")


def test_the_same_layer_counted_from_the_end(lens, tmp_path):
    Index.create(tmp_path / "index", lens, layer=-1)
    assert Index.open(tmp_path / "index", lens, layer=3).settings.method == IntegratedJacobian(layer=3)


def test_computed_in_another_precision(index):
    with pytest.raises(InputError, match=r"computed in float32, and this lens computes in float64.*dtype='float32'"):
        Index.open(index.path, Lens(zoo.encoder("bert"), dtype="float64"))


def test_a_fingerprint_is_of_everything(lens):
    assert fingerprint(lens) == fingerprint(Lens(zoo.encoder("bert")))
    changed = [zoo.encoder("bert", pooling="cls"), zoo.encoder("bert", prompts={"query": "q: "}), zoo.encoder("bert")]
    changed[2].max_seq_length = 32
    one_weight = zoo.encoder("bert")
    with torch.no_grad():
        # One number among thousands, and not one of those that the settings' short fingerprint looks at.
        next(iter(one_weight.parameters()))[17, 5] += 1e-3
    assert len({fingerprint(Lens(model)) for model in [*changed, one_weight, zoo.encoder("bert")]}) == 5


def test_a_query_before_the_fingerprint_changes_nothing():
    model = zoo.encoder("bert")
    lens = Lens(model)
    model.encode(["coffee " * 100, "tea"])  # leaves padding and truncation behind in the tokenizer
    assert fingerprint(lens) == fingerprint(Lens(zoo.encoder("bert")))


def test_an_index_is_made_once(index, lens):
    with pytest.raises(InputError, match="holds an index already"):
        Index.create(index.path, lens)
    with pytest.raises(InputError, match="there is no index in"):
        Index.open(index.path / "nowhere", lens)


def test_an_index_opened_without_a_model_loads_it_by_name(tmp_path):
    zoo.encoder("bert").save(str(tmp_path / "model"))
    Index.create(tmp_path / "index", Lens(str(tmp_path / "model"))).add([{"text": TEXTS[0]}, {"text": TEXTS[1]}])
    index = Index.open(tmp_path / "index")
    assert index._lens is None
    assert index.compare("1", "2").text_b == TEXTS[1]  # needs no model
    assert index._lens is None
    assert index.search(TEXTS[0], 1)[0].id == "1"
    zoo.encoder("bert", seed=5).save(str(tmp_path / "model"))
    with pytest.raises(InputError, match="was made with the model"):
        Index.open(tmp_path / "index").search(TEXTS[0])


def test_an_index_whose_model_is_gone(index):
    with pytest.raises(InputError, match="'zoo/bert', which cannot be loaded by that name"):
        Index.open(index.path).search(QUERY)


# Verification.


def test_verify(index):
    found = index.verify(8)
    assert found.passed
    assert found.checked == 8
    assert 0 < found.difference < 5e-4


def test_verify_sees_a_changed_record(empty):
    empty.add([record(i) for i in range(6)])
    rows = empty.store._table.to_arrow()
    stolen = rows.take([1]).set_column(0, rows.schema.field("id"), [["t0"]])
    empty.store.write(stolen.set_column(1, rows.schema.field("text"), rows.take([0]).column("text")), replace=True)
    found = empty.verify(6)
    assert found.wrong == ("t0",)
    assert not found.passed


def test_verify_sees_a_doubled_record(empty):
    empty.add([record(i) for i in range(3)])
    empty.store.write(empty.store._table.to_arrow().take([1]), replace=False)
    found = empty.verify(2)
    assert found.doubled == ("t1",)
    assert not found.passed


# Many at once.


@pytest.mark.filterwarnings("ignore::pairlens.errors.ReferenceWarning")
@pytest.mark.slow
def test_searches_while_records_are_added(tmp_path, lens):
    """32 threads search while another one adds, updates, deletes and tidies up."""
    empty = Index.create(tmp_path / "index", lens, metadata={"year": "int"}, method="output")
    empty.add([record(i) for i in range(8)])
    queries = corpora.texts(32, seed=9)
    known = {f"t{i}": {TEXTS[i], f"{TEXTS[i]} Again."} for i in range(len(TEXTS))}
    stop, errors, searches = threading.Event(), [], []

    def read(n: int) -> None:
        try:
            while not stop.is_set() or n not in searches:
                for hit in empty.search(queries[n], 5):
                    assert hit.text in known[hit.id]
                    e = hit.explanation
                    assert e.score == pytest.approx(hit.score, abs=1e-6)
                    assert e.text_b == hit.text
                    assert [u.text for u in e.units_b if u.kind == "text"] == [
                        hit.text[u.start : u.end] for u in e.units_b if u.kind == "text"
                    ]
                searches.append(n)
        except BaseException as error:  # noqa: BLE001 - whatever it is, the test is to say it
            errors.append(error)

    threads = [threading.Thread(target=read, args=(n,)) for n in range(32)]
    for thread in threads:
        thread.start()
    for i in range(8, 40, 4):
        empty.add([record(j) for j in range(i, i + 4)])
        empty.update([{**record(i), "text": f"{TEXTS[i]} Again."}])
        empty.delete([f"t{i - 8}"])
        if i % 16 == 0:
            empty.optimize()
    time.sleep(0.2)
    stop.set()
    for thread in threads:
        thread.join()
    assert errors == []
    assert len(set(searches)) == 32
    assert len(empty) == 32


def test_two_writers_never_double_a_name(tmp_path, lens):
    """Two indexes on one folder, as two processes have them, add the same names at the same time."""
    Index.create(tmp_path / "index", lens, method="output")
    reports = []

    def write() -> None:
        reports.append(Index.open(tmp_path / "index", lens).add({"id": str(i), "text": t} for i, t in enumerate(TEXTS)))

    threads = [threading.Thread(target=write) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sum(report.added for report in reports) == len(TEXTS)
    assert sum(report.there for report in reports) == 3 * len(TEXTS)
    assert Index.open(tmp_path / "index", lens).verify(1).doubled == ()


def test_a_folder_that_cannot_be_written_to(lens, tmp_path):
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StoreError, match="no index can be made"):
        Index.create(tmp_path / "file" / "index", lens)
