"""Stopping a server: it finishes the requests under way, refuses new ones, and stops."""

from __future__ import annotations

import signal
import threading

import httpx
import pytest

from pairlens.errors import InputError
from pairlens.web import listen, requests
from serving import TIMEOUT, explain_endlessly, send, serving

A, B = "The coffee here is not good.", "This coffee is bad."


def stop(server):
    server.call(lambda: server.server.handle_exit(signal.SIGTERM, None))
    server.wait(lambda scheduler: scheduler.draining)


def test_a_stopping_server_finishes_what_is_under_way_and_refuses_the_rest(tiny, monkeypatch):
    release, explain = threading.Event(), requests.explain

    def explain_when_released(body, lens):
        release.wait()
        return explain(body, lens)

    monkeypatch.setattr(requests, "explain", explain_when_released)
    with serving({"tiny": tiny}, grace=2.0 * TIMEOUT) as server:
        connection = send(server, "/api/explain", {"a": A, "b": B})
        server.wait(lambda scheduler: scheduler.running == 1)
        stop(server)
        refused = server.post("/api/explain", {"a": A, "b": B})
        assert refused.status_code == 503
        assert "stopping" in refused.json()["error"]
        assert httpx.get(server.url + "/healthz", timeout=TIMEOUT).json()["status"] == "draining"
        release.set()
        assert connection.getresponse().status == 200
        connection.close()


def test_a_stopping_server_stops_what_is_left_after_the_grace_period(tiny, monkeypatch):
    monkeypatch.setattr(requests, "explain", explain_endlessly)
    with serving({"tiny": tiny}, grace=0.1) as server:
        connection = send(server, "/api/explain", {"a": A, "b": B})
        server.wait(lambda scheduler: scheduler.running == 1)
        server.call(lambda: server.server.handle_exit(signal.SIGTERM, None))
        response = connection.getresponse()
        assert response.status == 503
        assert b"stopping" in response.read()
        connection.close()


def test_a_port_in_use_is_an_input_error():
    with listen("127.0.0.1", 0) as taken:
        taken.listen()
        with pytest.raises(InputError, match="--port 0"):
            listen("127.0.0.1", taken.getsockname()[1])
