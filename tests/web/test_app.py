"""The API on a real server with the real model: its numbers, its errors, its limits, and that it holds under load."""

from __future__ import annotations

import itertools
import json
import logging
import socket
import subprocess
import sys
import time
from pathlib import Path

import httpx
import numpy as np
import pytest

import zoo
from pairlens import Contributions, Lens, Shapley
from pairlens.attribution.decomposer import Decomposer
from pairlens.io import documents
from pairlens.web import requests, security
from serving import lines, load, serving

A, B = "The coffee here is not good.", "This coffee is bad."
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def server(minilm):
    with serving({"minilm": minilm}) as running:
        yield running


@pytest.fixture(scope="module")
def tiny():
    return Lens(zoo.encoder("bert"))


def same(found, expected):
    assert abs(found.score - expected.score) < 1e-6
    assert np.abs(found.matrix - expected.matrix).max() < 1e-6
    assert (found.units_a, found.units_b, found.tokens_a) == (expected.units_a, expected.units_b, expected.tokens_a)
    assert dict(found.settings) == dict(expected.settings)


# Numbers.


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"level": "token", "method": "occlusion"},
        {"level": "sentence", "method": "shapley"},
        {"method": "output", "reference_terms": "keep", "measure": "dot"},
        {"layer": 5, "reference": "mask", "tol": 0.01},
        {"roles": ["query", "document"], "method": "occlusion"},
    ],
)
def test_an_answer_is_what_the_library_gives(server, minilm, tmp_path, options):
    response = server.post("/api/explain", {"a": A, "b": B, **options})
    assert response.status_code == 200, response.text
    given = {"level": "word", **options, "roles": tuple(options.get("roles", (None, None)))}
    same(load(response.text, tmp_path), minilm.explain(A, B, **given))


def test_passes_and_seed_are_those_of_shapley(server, minilm, tmp_path):
    text = server.post("/api/explain", {"a": A, "b": B, "method": "shapley", "passes": 30, "seed": 3}).text
    found = load(text, tmp_path)
    assert (found.settings["passes"], found.settings["seed"]) == (30, 3)
    same(found, minilm.explain(A, B, level="word", method=Shapley(passes=30, seed=3)))


def test_without_a_method_passes_change_the_default_only_in_number(server, minilm, tmp_path):
    default = minilm.explain(A, B, level="word").settings
    found = load(server.post("/api/explain", {"a": A, "b": B, "passes": 30}).text, tmp_path).settings
    assert {**found, "nodes": 0} == {**default, "passes": 30, "nodes": 0}


def test_the_picture_stands_beside_the_fields(server, tmp_path):
    from pairlens.render import html

    response = server.post("/api/explain", {"a": A, "b": B, "picture": True})
    e = load(response.text, tmp_path)
    assert response.json()["picture"] == html.payload(e)
    assert "picture" not in server.explain(A, B)


PASSAGES = ["A longer cable is sold separately.", "It runs for nine hours.", "The battery lasts all day."]


def test_a_ranking_is_that_of_the_scores_and_explains_every_hit(server, minilm, tmp_path, monkeypatch):
    taken = []
    decompose = Decomposer._decompose

    def counted(self, jobs, texts):
        taken.extend(job.text for job in jobs)
        return decompose(self, jobs, texts)

    monkeypatch.setattr(Decomposer, "_decompose", counted)
    query = "how long does the battery last"
    options = {"method": "occlusion", "roles": ["query", "document"], "picture": True}
    answer = server.post("/api/rank", {"query": query, "passages": [*PASSAGES, PASSAGES[0]], **options}).json()
    assert sorted(taken) == sorted([query, *PASSAGES]), "each text is decomposed once"
    scores = [float(minilm.explain(query, passage, method="output").score) for passage in PASSAGES]
    hits = answer["hits"]
    assert [hit["rank"] for hit in hits] == [1, 2, 3, 4]
    order = sorted(range(3), key=lambda i: -scores[i])
    assert [hit["passage"] for hit in hits] == [*order[:2], 0, 3], "of two that are equal, the earlier comes first"
    for hit in hits:
        passage = [*PASSAGES, PASSAGES[0]][hit["passage"]]
        expected = minilm.explain(query, passage, level="word", method="occlusion", roles=("query", "document"))
        same(load(json.dumps(hit["explanation"]), tmp_path), expected)
    assert [view["label"] for view in answer["picture"]["views"]] == [f"passage {hit['passage'] + 1}" for hit in hits]


def test_contributions_are_what_the_library_gives(server, minilm, tmp_path):
    answer = server.post("/api/decompose", {"texts": [A, B], "method": "occlusion"}).json()
    for document, expected in zip(
        answer["contributions"], minilm.decompose([A, B], level="word", method="occlusion", progress=False), strict=True
    ):
        path = tmp_path / "c.json"
        path.write_text(json.dumps(document))
        found = Contributions.load(path)
        assert np.abs(found.values - expected.values).max() < 1e-6
        assert dict(found.settings) == dict(expected.settings)


def test_lines_tell_how_far_it_is_and_end_with_the_answer(server):
    body = {"a": A, "b": B, "picture": True}
    response = server.post("/api/explain", body, headers={"Accept": "application/x-ndjson"})
    assert response.headers["content-type"] == "application/x-ndjson"
    *steps, last = lines(response)
    fractions = [step["progress"] for step in steps]
    assert fractions == sorted(fractions)
    assert last["result"] == server.post("/api/explain", body).json()


def test_an_error_in_lines_has_its_status(server):
    response = server.post("/api/explain", {"a": A, "b": B, "layer": 99}, headers={"Accept": "application/x-ndjson"})
    assert response.status_code == 200
    assert lines(response)[-1]["status"] == 422
    assert "layer 99 does not exist" in lines(response)[-1]["error"]


def test_models_and_their_limits(server):
    found = httpx.get(server.url + "/api/models").json()
    model = {"name": "minilm", "layers": 6, "pooling": "mean", "measure": "cosine", "adjusted": False, "roles": False}
    assert found["models"] == [model]
    assert found["limits"]["chars"] == 10_000
    assert "shapley" in found["methods"]


def test_a_router_says_that_it_asks_for_roles():
    model = zoo.router()
    model[0].default_route = None  # pyright: ignore[reportArgumentType]
    with serving({"router": Lens(model)}) as server:
        assert httpx.get(server.url + "/api/models").json()["models"][0]["roles"] is True
        body = {"a": "one two", "b": "two three", "method": "occlusion"}
        assert server.post("/api/explain", body).status_code == 422
        assert server.post("/api/explain", {**body, "roles": ["query", "document"]}).status_code == 200


def test_every_example_of_the_documentation_works(server):
    document = httpx.get(server.url + "/openapi.json").json()
    tried = 0
    for path, methods in document["paths"].items():
        body = methods.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {})
        name = body.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
        for example in document["components"]["schemas"].get(name, {}).get("examples", []):
            assert server.post(path, example).status_code == 200
            tried += 1
    assert tried == 4


# Errors.


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/explain", {"a": A}, "b: Field required"),
        ("/api/explain", {"a": A, "b": B, "lair": 3}, "lair: Extra inputs are not permitted"),
        ("/api/explain", {"a": A, "b": 3}, "b: Input should be a valid string"),
        ("/api/explain", {"a": A, "b": " \n "}, "b: String should match pattern"),
        ("/api/explain", {"a": A, "b": B, "layer": "3"}, "layer: Input should be a valid integer"),
        ("/api/explain", {"a": A, "b": B, "layer": 3, "method": "fade"}, "has no layer"),
        ("/api/explain", {"a": A, "b": B, "layer": 3, "passes": 30}, "passes and seed are for method 'shapley'"),
        ("/api/explain", {"a": A, "b": B, "model": "minilmm"}, "unknown model 'minilmm'. Did you mean 'minilm'?"),
        ("/api/explain", {"a": A, "b": B, "model": ""}, "unknown model"),
        ("/api/explain", {"a": A, "b": B, "model": "/etc/passwd"}, "unknown model"),
        ("/api/explain", {"a": A, "b": "\x00"}, "no token of the text"),
        ("/api/explain", {"a": A, "b": B, "roles": ["query"]}, "roles"),
        ("/api/explain", {"a": A, "b": B, "tol": 1e-7, "layer": 0}, "tol: Input should be greater than or equal to"),
        ("/api/explain", [A, B], "the request: Input should be"),
        ("/api/rank", {"query": A, "passages": []}, "passages: List should have at least 1 item"),
        ("/api/decompose", {"texts": "one"}, "texts: Input should be a valid list"),
    ],
)
def test_what_cannot_be_used_is_said(server, path, body, said):
    response = server.post(path, body)
    assert response.status_code == 422
    assert said in response.json()["error"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"a": NaN, "b": "x"}', b'{"a": "\\ud800", "b": "x"}', b"\xff", b"[" * 9999]
)
def test_broken_json_is_refused(server, body):
    response = httpx.post(server.url + "/api/explain", content=body, headers=JSON, timeout=60)
    assert response.status_code in (400, 422)
    assert response.json()["error"]


def test_unknown_paths_and_methods(server):
    assert httpx.get(server.url + "/nothing").json() == {"error": "Not Found."}
    response = httpx.get(server.url + "/api/explain")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert httpx.get(server.url + "/docs").status_code == 404, "FastAPI's own page would load scripts from elsewhere"


def test_a_fault_is_told_in_general_and_logged_without_the_text(server, monkeypatch, caplog):
    def fail(self, lens):
        raise RuntimeError(self.asked.a)

    monkeypatch.setattr(requests.Explaining, "compute", fail)
    with caplog.at_level(logging.DEBUG):
        one = server.post("/api/explain", {"a": "secret words", "b": B})
        two = server.post("/api/explain", {"a": "secret words", "b": B}, headers={"Accept": "application/x-ndjson"})
    assert one.status_code == 500
    assert lines(two)[-1]["status"] == 500
    assert "fault of pairlens" in one.json()["error"]
    assert "RuntimeError in" in caplog.text
    assert "secret" not in caplog.text + one.text + two.text


def test_a_fault_that_no_future_can_hold_is_answered_too(server, monkeypatch):
    monkeypatch.setattr(requests.Explaining, "compute", lambda self, lens: next(iter([])))
    assert server.post("/api/explain", {"a": A, "b": B}).status_code == 500


# Who may ask, and in which form.


def test_every_answer_has_the_headers_of_safety(server):
    answers = [
        httpx.get(server.url),
        httpx.get(server.url + "/nothing"),
        httpx.get(server.url + "/page.js"),
        httpx.get(server.url, headers={"Host": "evil.example"}),
        server.post("/api/explain", {"a": A, "b": B}),
        server.post("/api/explain", {}),
    ]
    for answer in answers:
        policy = answer.headers["content-security-policy"]
        assert "default-src 'none'; script-src 'self'; style-src 'self';" in policy
        assert "unsafe" not in policy
        assert "frame-ancestors 'none'" in policy
        assert answer.headers["x-content-type-options"] == "nosniff"
        assert answer.headers["referrer-policy"] == "no-referrer"
        assert "set-cookie" not in answer.headers
        assert "server" not in answer.headers
    assert answers[4].headers["cache-control"] == "no-store"


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.", "127.0.0.1:80:80"])
def test_another_name_is_refused(server, host):
    response = httpx.get(server.url + "/healthz", headers={"Host": host})
    assert response.status_code == 400
    if host:
        assert "--allow-host" in response.json()["error"]


def test_a_request_from_another_page_is_refused(server):
    body = {"a": A, "b": B, "method": "output"}
    for origin in ("http://evil.example", "null", server.url.replace("127.0.0.1", "localhost")):
        assert server.post("/api/explain", body, headers={"Origin": origin}).status_code == 403
    assert server.post("/api/explain", body, headers={"Origin": server.url}).status_code == 200


def test_only_json_is_read(server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        response = httpx.post(server.url + "/api/explain", content=b"{}", headers={"Content-Type": kind})
        assert response.status_code == 415


# Limits.


@pytest.fixture(scope="module")
def strict(tiny):
    bounds = {"chars": 200, "tokens": 20, "total": 40, "passages": 3, "passes": 50, "body": 2000, "document": 4000}
    with serving({"tiny": tiny}, **bounds) as running:
        yield running


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/explain", {"a": "x" * 201, "b": B}, "a has 201 characters, and this server takes up to 200"),
        ("/api/explain", {"a": A, "b": "one two " * 12}, "tokens, and this server takes up to 20 a text"),
        (
            "/api/rank",
            {"query": "one", "passages": ["two three " * 3] * 3},
            "tokens together, and this server",
        ),
        ("/api/rank", {"query": "one", "passages": ["two"] * 4}, "these are 5 texts, and this server takes up to 4"),
        ("/api/decompose", {"texts": ["two"] * 5}, "these are 5 texts"),
        ("/api/explain", {"a": A, "b": B, "passes": 51}, "passes is 51, and this server makes up to 50"),
    ],
)
def test_what_is_too_much_is_said(strict, path, body, said):
    response = strict.post(path, body)
    assert response.status_code == 422
    assert said in response.json()["error"]


def test_a_large_body_is_refused_before_it_is_read(strict):
    address = strict.url.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=10) as line:
        head = f"POST /api/explain HTTP/1.1\r\nHost: {':'.join(address)}\r\nContent-Type: application/json\r\n"
        line.sendall(f"{head}Content-Length: 1000000000\r\n\r\n{{".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 413")


def test_a_large_body_without_a_length_is_refused_while_it_is_read(strict):
    sent = []

    def endless():
        for _ in range(10_000):
            sent.append(1)
            yield b" " * 500

    try:
        response = httpx.post(strict.url + "/api/explain", content=endless(), headers=JSON, timeout=30)
        assert response.status_code == 413
        assert "2000 bytes" in response.json()["error"]
    except httpx.WriteError:
        pass  # the server has answered and closed the line before all was sent
    assert len(sent) < 10_000


def test_a_body_that_never_ends_is_given_up(strict, monkeypatch):
    monkeypatch.setattr(security, "READING_SECONDS", 0.2)

    def slow():
        yield b'{"a":'
        time.sleep(1)
        yield b'"x"}'

    assert httpx.post(strict.url + "/api/explain", content=slow(), headers=JSON, timeout=30).status_code == 408


# Files.


def test_a_result_can_be_drawn(server, tmp_path):
    text = server.post("/api/explain", {"a": A, "b": B}).text
    page = httpx.post(server.url + "/api/render", content=text, headers=JSON, timeout=60)
    assert page.text.startswith("<!doctype html>")
    assert page.headers["content-disposition"] == 'attachment; filename="pairlens.html"'
    plot = httpx.post(server.url + "/api/render?format=png", content=text, headers=JSON, timeout=60)
    assert plot.content.startswith(b"\x89PNG")
    ranking = server.post("/api/rank", {"query": A, "passages": [B, A], "method": "output"})
    assert httpx.post(server.url + "/api/render", content=ranking.text, headers=JSON, timeout=60).status_code == 200


def test_what_is_no_result_cannot_be_drawn(server):
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
    # A plot does not say how it was made; the picture does.
    unsaid = {**whole, "settings": {"near": "x"}}
    for document, kind in [*itertools.product(broken, ("html", "png")), (unsaid, "html")]:
        address = f"{server.url}/api/render?format={kind}"
        response = httpx.post(address, content=json.dumps(document), headers=JSON, timeout=60)
        assert response.status_code == 422, (document, kind, response.text[:200])
    huge = json.dumps(whole).replace(json.dumps(whole["score"]), "1e999", 1)
    assert httpx.post(server.url + "/api/render", content=huge, headers=JSON, timeout=60).status_code == 422


def test_a_file_that_a_browser_wrote_is_read(server, tmp_path):
    # JavaScript writes 0.0 as 0.
    document = server.explain(A, B, method="output")
    document |= {"base": 0, "gap": 0}
    e = load(json.dumps(document), tmp_path)
    assert (e.base, type(e.base)) == (0.0, float)
    assert documents.to_json(e)


# The API's description.


def judge(url: str, folder: Path, *options: str) -> str:
    """Let schemathesis try whatever the description allows, and what it does not."""
    settings = folder / "schemathesis.toml"
    # Texts may turn out to have no tokens, and options to contradict each other: no schema says so.
    settings.write_text('[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", "422"]\n')
    program = str(Path(sys.executable).with_name("schemathesis"))
    line = [program, "--config-file", str(settings), "run", f"{url}/openapi.json", "--seed", "1", *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder, timeout=1200)
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def test_the_api_does_what_its_description_says(tiny, tmp_path):
    with serving({"tiny": tiny}) as server:
        said = judge(server.url, tmp_path, "--phases", "examples,fuzzing", "--max-examples", "10")
    assert "6 selected / 6 total" in said
    assert "passed" in said


@pytest.mark.slow
def test_the_api_does_what_its_description_says_in_every_corner(tiny, tmp_path):
    with serving({"tiny": tiny}) as server:
        said = judge(server.url, tmp_path, "--max-examples", "200")
    assert "6 selected / 6 total" in said


def test_the_judge_can_find_a_fault(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(requests.Explaining, "compute", lambda self, lens: "{}")
    with serving({"tiny": tiny}) as server, pytest.raises(AssertionError, match="Response violates schema"):
        judge(server.url, tmp_path, "--phases", "examples", "--include-path", "/api/explain")
