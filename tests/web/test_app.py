"""The routes: models, errors in one form, and an API that does what its OpenAPI description says."""

from __future__ import annotations

import logging
import subprocess
import sys
from pathlib import Path

import httpx
import pytest

import zoo
from pairlens import Lens
from pairlens.web import requests
from serving import lines, serving

A, B = "The coffee here is not good.", "This coffee is bad."


def test_models_methods_and_limits_are_listed(server):
    about = httpx.get(server.url + "/api/models").json()
    common = {"pooling": "mean", "measure": "cosine", "adjusted": False, "roles": False}
    assert about["models"] == [{"name": "tiny", "layers": 3, **common}, {"name": "minilm", "layers": 6, **common}]
    assert about["limits"]["chars"] == 10_000
    assert "shapley" in about["methods"]


def test_a_model_that_needs_roles_says_so():
    model = zoo.router()
    model[0].default_route = None  # pyright: ignore[reportArgumentType]
    with serving({"router": Lens(model)}) as server:
        assert httpx.get(server.url + "/api/models").json()["models"][0]["roles"] is True
        body = {"a": "one two", "b": "two three", "method": "occlusion"}
        assert server.post("/api/explain", body).status_code == 422
        assert server.post("/api/explain", {**body, "roles": ["query", "document"]}).status_code == 200


def test_every_example_in_the_openapi_document_works(server):
    document = httpx.get(server.url + "/openapi.json").json()
    tried = 0
    for path, methods in document["paths"].items():
        body = methods.get("post", {}).get("requestBody", {}).get("content", {}).get("application/json", {})
        name = body.get("schema", {}).get("$ref", "").rsplit("/", 1)[-1]
        for example in document["components"]["schemas"].get(name, {}).get("examples", []):
            assert server.post(path, example).status_code == 200
            tried += 1
    assert tried == 4


def test_unknown_paths_and_methods_are_refused(server):
    assert httpx.get(server.url + "/nothing").json() == {"error": "Not Found."}
    response = httpx.get(server.url + "/api/explain")
    assert (response.status_code, response.headers["allow"]) == (405, "POST")
    assert httpx.get(server.url + "/docs").status_code == 404, "FastAPI's own page would load scripts from elsewhere"


def test_an_unexpected_error_is_logged_without_the_text(server, monkeypatch, caplog):
    def fail(body, lens):
        raise RuntimeError(body.a)

    monkeypatch.setattr(requests, "explain", fail)
    with caplog.at_level(logging.DEBUG):
        one = server.post("/api/explain", {"a": "secret words", "b": B})
        two = server.post("/api/explain", {"a": "secret words", "b": B}, headers={"Accept": "application/x-ndjson"})
    assert one.status_code == 500
    assert lines(two)[-1]["status"] == 500
    assert "fault of pairlens" in one.json()["error"]
    assert "RuntimeError in" in caplog.text
    assert "secret" not in caplog.text + one.text + two.text


def test_stop_iteration_in_a_calculation_is_answered(server, monkeypatch):
    monkeypatch.setattr(requests, "explain", lambda body, lens: next(iter([])))
    assert server.post("/api/explain", {"a": A, "b": B}).status_code == 500


def fuzz(url: str, folder: Path, *options: str) -> str:
    """Run schemathesis: requests that the API's description allows, and requests that it forbids."""
    settings = folder / "schemathesis.toml"
    # No schema can say that a text has no tokens or that two options contradict each other.
    settings.write_text('[checks.positive_data_acceptance]\nexpected-statuses = ["2xx", "422"]\n')
    program = str(Path(sys.executable).with_name("schemathesis"))
    line = [program, "--config-file", str(settings), "run", f"{url}/openapi.json", "--seed", "1", *options]
    done = subprocess.run(line, capture_output=True, text=True, check=False, cwd=folder, timeout=1200)
    assert done.returncode == 0, done.stdout[-5000:]
    return done.stdout


def test_the_api_conforms_to_its_schema(tiny, tmp_path):
    with serving({"tiny": tiny}) as server:
        said = fuzz(server.url, tmp_path, "--phases", "examples,fuzzing", "--max-examples", "10")
    assert "6 selected / 6 total" in said
    assert "passed" in said


@pytest.mark.slow
def test_the_api_conforms_to_its_schema_for_many_requests(tiny, tmp_path):
    with serving({"tiny": tiny}) as server:
        said = fuzz(server.url, tmp_path, "--max-examples", "200")
    assert "6 selected / 6 total" in said


def test_fuzzing_finds_a_response_that_violates_the_schema(tiny, tmp_path, monkeypatch):
    monkeypatch.setattr(requests, "explain", lambda body, lens: "{}")
    with serving({"tiny": tiny}) as server, pytest.raises(AssertionError, match="Response violates schema"):
        fuzz(server.url, tmp_path, "--phases", "examples", "--include-path", "/api/explain")
