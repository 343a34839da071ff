"""The index: what is stored explains as a fresh lens does, searches rank as the model does, records come and go."""

from __future__ import annotations

import threading
import time
import warnings
from dataclasses import replace

import numpy as np
import pytest

import corpora
import zoo
from corpora import QUERY, TEXTS, record
from pairlens import Banzhaf, Lens, Shapley
from pairlens.corpus import Index
from pairlens.errors import StoreError

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
        e = index.explain(QUERY, text_id, method=settings.method, zoom=False)
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


def test_the_default_is_banzhaf_with_the_default_passes_for_texts_and_queries(index):
    assert index.settings.method == Banzhaf()
    few = replace(index.settings, method=Banzhaf(passes=8))
    assert few.query_options()["method"] == Banzhaf()
    assert few.query_options()["level"] == "word"
    permuted = replace(index.settings, method=Shapley(permutations=5))
    assert permuted.query_options()["method"] == permuted.method


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


def test_long_texts_are_cut_and_counted(empty):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        report = empty.add([record(0, "coffee " * 100)])
    assert (report.added, report.truncated) == (1, 1)
    assert empty.contributions(["t0"])[0].truncated
    assert empty.search("coffee", 1)[0].explanation.truncated_b


def test_first_hits_name_the_words_that_the_model_does_not_know(empty):
    empty.add([record(0, "The coffee is good 🎸.")])
    assert empty.contributions(["t0"])[0].unknown == ("🎸",)
    assert empty.search("coffee", 1)[0].explanation.unknown_b == ("🎸",)


LONG = " ".join(f"The coffee of house {n} is not so good." for n in range(12))


def test_long_texts_are_split_into_passages(empty):
    report = empty.add([record(0), record(1, LONG)], passages=True)
    rows = {row["id"]: row for row in corpora.rows(empty)}
    names = [name for name in rows if name != "t0"]
    assert names == [f"t1#{n}" for n in range(1, len(names) + 1)]
    assert len(names) > 1
    assert (report.added, report.truncated, report.rejected) == (1 + len(names), 0, 0)
    assert " ".join(rows[name]["text"] for name in names) == LONG
    assert {rows[name]["parent"] for name in names} == {"t1"}
    assert rows["t0"]["parent"] == ""
    hit = empty.search(rows[names[-1]]["text"], 1, where="parent = 't1'")[0]
    assert (hit.id, hit.parent, hit.metadata["year"]) == (names[-1], "t1", 1)
    assert empty.add([record(1, LONG)], passages=True).there == len(names)


def test_update_and_delete_take_all_passages_of_a_text(empty):
    empty.add([record(0), record(1, LONG)], passages=True)
    many = len(empty)
    changed = f"Tea. {LONG}"
    refused = empty.add([record(1, changed)], passages=True)
    assert (refused.added, refused.rejected, len(empty)) == (0, 1, many), "not some passages of it"
    empty.update([record(1, changed)], passages=True)
    assert " ".join(row["text"] for row in corpora.rows(empty) if row["parent"] == "t1") == changed
    empty.update([record(1, "Short.")], passages=True)
    assert {row["id"] for row in corpora.rows(empty)} == {"t0", "t1"}
    empty.update([record(1, LONG)], passages=True)
    assert len(empty) == many
    assert empty.delete(["t1"]) == many - 1
    assert [row["id"] for row in corpora.rows(empty)] == ["t0"]


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


@pytest.mark.slow
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
