"""Hosts, origins, headers and sizes: what is checked before a request reaches the application."""

from __future__ import annotations

import socket

import httpx
import pytest

from pairlens.web import security
from serving import TIMEOUT, serving

A, B = "The coffee here is not good.", "This coffee is bad."
JSON = {"Content-Type": "application/json"}


@pytest.fixture(scope="module")
def strict(tiny):
    with serving({"tiny": tiny}, body=2000) as running:
        yield running


def test_every_response_has_the_security_headers(server):
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
def test_a_request_for_another_host_is_refused(server, host):
    response = httpx.get(server.url + "/healthz", headers={"Host": host})
    assert response.status_code == 400
    if host:
        assert "--allow-host" in response.json()["error"]


def test_a_request_from_another_origin_is_refused(server):
    body = {"a": A, "b": B, "method": "output"}
    for origin in ("http://evil.example", "null", server.url.replace("127.0.0.1", "localhost")):
        assert server.post("/api/explain", body, headers={"Origin": origin}).status_code == 403
    assert server.post("/api/explain", body, headers={"Origin": server.url}).status_code == 200


def test_only_json_is_accepted(server):
    for kind in ("text/plain", "application/x-www-form-urlencoded", ""):
        response = httpx.post(server.url + "/api/explain", content=b"{}", headers={"Content-Type": kind})
        assert response.status_code == 415


def test_a_large_declared_body_is_refused_before_it_is_read(strict):
    address = strict.url.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=TIMEOUT) as line:
        head = f"POST /api/explain HTTP/1.1\r\nHost: {':'.join(address)}\r\nContent-Type: application/json\r\n"
        line.sendall(f"{head}Content-Length: 1000000000\r\n\r\n{{".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 413")


def test_a_large_body_without_a_length_is_refused_while_it_arrives(strict):
    sent = []

    def endless():
        for _ in range(10_000):
            sent.append(1)
            yield b" " * 500

    try:
        response = httpx.post(strict.url + "/api/explain", content=endless(), headers=JSON, timeout=TIMEOUT)
        assert response.status_code == 413
        assert "2000 bytes" in response.json()["error"]
    except httpx.WriteError:
        pass  # the server has answered and closed the line before all was sent
    assert len(sent) < 10_000


def test_a_body_that_never_ends_is_refused(strict, monkeypatch):
    monkeypatch.setattr(security, "READING_SECONDS", 0.2)
    address = strict.url.removeprefix("http://").split(":")
    with socket.create_connection((address[0], int(address[1])), timeout=TIMEOUT) as line:
        head = f"POST /api/explain HTTP/1.1\r\nHost: {':'.join(address)}\r\nContent-Type: application/json\r\n"
        line.sendall(f"{head}Content-Length: 100\r\n\r\n{{".encode())
        assert line.recv(100).startswith(b"HTTP/1.1 408")
