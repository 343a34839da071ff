"""How results are sent: as JSON, or as lines that report progress."""

from __future__ import annotations

from serving import lines

A, B = "The coffee here is not good.", "This coffee is bad."


def test_lines_report_progress_and_end_with_the_result(server):
    body = {"a": A, "b": B, "picture": True}
    response = server.post("/api/explain", body, headers={"Accept": "application/x-ndjson"})
    assert response.headers["content-type"] == "application/x-ndjson"
    *steps, last = lines(response)
    fractions = [step["progress"] for step in steps]
    assert fractions == sorted(fractions)
    assert last["result"] == server.post("/api/explain", body).json()


def test_an_unusable_request_for_lines_is_answered_in_lines(server):
    response = server.post("/api/explain", {"a": "x" * 10_001, "b": B}, headers={"Accept": "application/x-ndjson"})
    assert response.status_code == 200
    assert lines(response)[-1]["status"] == 422


def test_an_error_in_lines_has_its_status(server):
    response = server.post("/api/explain", {"a": A, "b": B, "layer": 99}, headers={"Accept": "application/x-ndjson"})
    assert response.status_code == 200
    assert lines(response)[-1]["status"] == 422
    assert "layer 99 does not exist" in lines(response)[-1]["error"]
