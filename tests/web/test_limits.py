"""Requests beyond the server's limits are refused, with the number and the limit."""

from __future__ import annotations

import pytest

from serving import serving

A, B = "The coffee here is not good.", "This coffee is bad."


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
def test_a_request_beyond_a_limit_is_refused_with_its_numbers(strict, path, body, said):
    response = strict.post(path, body)
    assert response.status_code == 422
    assert said in response.json()["error"]
