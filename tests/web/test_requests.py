"""What requests compute: the library's own numbers, the order of passages, and files drawn from results."""

from __future__ import annotations

import itertools
import json

import httpx
import numpy as np
import pytest

from pairlens import Contributions, Shapley
from pairlens.io import documents
from pairlens.methods.occlusion import Occlusion
from pairlens.render import html
from serving import TIMEOUT, load

A, B = "The coffee here is not good.", "This coffee is bad."
JSON = {"Content-Type": "application/json"}


def assert_same(answer, expected):
    assert abs(answer.score - expected.score) < 1e-6
    assert np.abs(answer.matrix - expected.matrix).max() < 1e-6
    assert (answer.units_a, answer.units_b, answer.tokens_a) == (expected.units_a, expected.units_b, expected.tokens_a)
    assert dict(answer.settings) == dict(expected.settings)


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"level": "token", "method": "occlusion"},
        {"level": "sentence", "method": "shapley"},
        {"method": "output", "reference_terms": "keep", "measure": "dot"},
        {"layer": 2, "reference": "mask", "tol": 0.01},
        {"roles": ["query", "document"], "method": "occlusion"},
    ],
)
def test_explanations_are_those_of_the_library(server, tiny, tmp_path, options):
    response = server.post("/api/explain", {"a": A, "b": B, **options})
    assert response.status_code == 200, response.text
    given = {"level": "word", **options, "roles": tuple(options.get("roles", (None, None)))}
    assert_same(load(response.text, tmp_path), tiny.explain(A, B, **given))


def test_passes_and_seed_set_those_of_shapley(server, tiny, tmp_path):
    text = server.post("/api/explain", {"a": A, "b": B, "method": "shapley", "passes": 30, "seed": 3}).text
    answer = load(text, tmp_path)
    assert (answer.settings["passes"], answer.settings["seed"]) == (30, 3)
    assert_same(answer, tiny.explain(A, B, level="word", method=Shapley(passes=30, seed=3)))


def test_passes_without_a_method_keep_the_default_method(server, tiny, tmp_path):
    default = tiny.explain(A, B, level="word").settings
    settings = load(server.post("/api/explain", {"a": A, "b": B, "passes": 30}).text, tmp_path).settings
    assert {**settings, "nodes": 0} == {**default, "passes": 30, "nodes": 0}


def test_the_picture_is_an_additional_field(server, tmp_path):
    response = server.post("/api/explain", {"a": A, "b": B, "picture": True})
    e = load(response.text, tmp_path)
    assert response.json()["picture"] == html.payload(e)
    assert "picture" not in server.explain(A, B)


PASSAGES = ["A longer cable is sold separately.", "It runs for nine hours.", "The battery lasts all day."]


def test_passages_are_ranked_by_score_and_each_is_explained(server, tiny, tmp_path, monkeypatch):
    decomposed = []
    decompose = Occlusion.decompose

    def counted(self, encoder, batch, rule):
        decomposed.extend(text.text for text in batch.texts)
        return decompose(self, encoder, batch, rule)

    monkeypatch.setattr(Occlusion, "decompose", counted)
    query = "how long does the battery last"
    options = {"method": "occlusion", "roles": ["query", "document"], "picture": True}
    answer = server.post("/api/rank", {"query": query, "passages": [*PASSAGES, PASSAGES[0]], **options}).json()
    assert sorted(decomposed) == sorted([query, *PASSAGES]), "each text is decomposed once"
    passages = [*PASSAGES, PASSAGES[0]]
    scores = [float(tiny.explain(query, passage, method="output").score) for passage in passages]
    hits = answer["hits"]
    assert [hit["rank"] for hit in hits] == [1, 2, 3, 4]
    order = sorted(range(4), key=lambda i: -scores[i])  # stable: of two that are equal, the earlier comes first
    assert [hit["passage"] for hit in hits] == order
    assert order.index(0) + 1 == order.index(3)
    for hit in hits:
        passage = passages[hit["passage"]]
        expected = tiny.explain(query, passage, level="word", method="occlusion", roles=("query", "document"))
        assert_same(load(json.dumps(hit["explanation"]), tmp_path), expected)
    assert [view["label"] for view in answer["picture"]["views"]] == [f"passage {hit['passage'] + 1}" for hit in hits]


def test_contributions_are_those_of_the_library(server, tiny, tmp_path):
    answer = server.post("/api/decompose", {"texts": [A, B], "method": "occlusion"}).json()
    for document, expected in zip(
        answer["contributions"], tiny.decompose([A, B], level="word", method="occlusion", progress=False), strict=True
    ):
        path = tmp_path / "c.json"
        path.write_text(json.dumps(document))
        loaded = Contributions.load(path)
        assert np.abs(loaded.values - expected.values).max() < 1e-6
        assert dict(loaded.settings) == dict(expected.settings)


def test_a_result_is_drawn_as_html_and_png(server):
    text = server.post("/api/explain", {"a": A, "b": B}).text
    page = httpx.post(server.url + "/api/render", content=text, headers=JSON, timeout=TIMEOUT)
    assert page.text.startswith("<!doctype html>")
    assert page.headers["content-disposition"] == 'attachment; filename="pairlens.html"'
    plot = httpx.post(server.url + "/api/render?format=png", content=text, headers=JSON, timeout=TIMEOUT)
    assert plot.content.startswith(b"\x89PNG")
    ranking = server.post("/api/rank", {"query": A, "passages": [B, A], "method": "output"})
    assert (
        httpx.post(server.url + "/api/render", content=ranking.text, headers=JSON, timeout=TIMEOUT).status_code == 200
    )


def test_only_results_can_be_drawn(server):
    whole = server.explain(A, B, method="output")
    broken = [
        None,
        [],
        3,
        "text",
        {},
        {"hits": 3},
        {"hits": []},
        {"hits": [{}]},
        {"hits": {"a": 1}},
        {**whole, "format": "other"},
        {**whole, "version": 99},
        {**whole, "matrix": [[1.0]]},
        {**whole, "units_a": [["x", 0, 1]]},
        {**whole, "score": None},
        {**whole, "settings": 3},
        {**whole, "text_a": "x" * 10_001},
    ]
    # Only the picture shows the settings; the plot does not read them.
    bad_settings = {**whole, "settings": {"method": []}}
    for document, kind in [*itertools.product(broken, ("html", "png")), (bad_settings, "html")]:
        address = f"{server.url}/api/render?format={kind}"
        response = httpx.post(address, content=json.dumps(document), headers=JSON, timeout=TIMEOUT)
        assert response.status_code == 422, (document, kind, response.text[:200])
    huge = json.dumps(whole).replace(json.dumps(whole["score"]), "1e999", 1)
    assert httpx.post(server.url + "/api/render", content=huge, headers=JSON, timeout=TIMEOUT).status_code == 422


def test_a_document_written_by_javascript_is_read(server, tmp_path):
    # JavaScript writes 0.0 as 0.
    document = server.explain(A, B, method="output")
    document |= {"base": 0, "gap": 0}
    e = load(json.dumps(document), tmp_path)
    assert (e.base, type(e.base)) == (0.0, float)
    assert documents.to_json(e)
