"""Requests that do not fit the schemas are refused, with the field and the reason."""

from __future__ import annotations

import httpx
import pytest

from serving import TIMEOUT

A, B = "The coffee here is not good.", "This coffee is bad."
JSON = {"Content-Type": "application/json"}


@pytest.mark.parametrize(
    ("path", "body", "said"),
    [
        ("/api/explain", {"a": A}, "b: Field required"),
        ("/api/explain", {"a": A, "b": B, "lair": 3}, "lair: Extra inputs are not permitted"),
        ("/api/explain", {"a": A, "b": 3}, "b: Input should be a valid string"),
        ("/api/explain", {"a": A, "b": " \n "}, "b: String should match pattern"),
        ("/api/explain", {"a": A, "b": B, "layer": "3"}, "layer: Input should be a valid integer"),
        ("/api/explain", {"a": A, "b": B, "layer": 3, "method": "fade"}, "has no layer"),
        ("/api/explain", {"a": A, "b": B, "layer": 3, "passes": 30}, "banzhaf"),
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
def test_an_unusable_request_is_refused_with_its_reason(server, path, body, said):
    response = server.post(path, body)
    assert response.status_code == 422
    assert said in response.json()["error"]


@pytest.mark.parametrize(
    "body", [b"", b"{", b'{"a": NaN, "b": "x"}', b'{"a": "\\ud800", "b": "x"}', b"\xff", b"[" * 9999]
)
def test_broken_json_is_refused(server, body):
    response = httpx.post(server.url + "/api/explain", content=body, headers=JSON, timeout=TIMEOUT)
    assert response.status_code in (400, 422)
    assert response.json()["error"]
