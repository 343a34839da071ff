"""`pairlens serve` as a user starts it: where it is, what it says and does not say, and how it stops."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
from pathlib import Path

import httpx
import pytest
from typer.testing import CliRunner

import pairlens
from pairlens.cli import app
from serving import LONG

SOURCE = str(Path(pairlens.__file__).parents[1])
ENVIRONMENT = {**os.environ, "PYTHONPATH": SOURCE, "HF_HUB_OFFLINE": "1", "OMP_NUM_THREADS": "1"}
SECRET = "Marmalade"
"""A word that is in every text sent here, and must be in nothing that is said."""


class Process:
    """A server of its own."""

    def __init__(self, *options: str) -> None:
        line = [sys.executable, "-m", "pairlens.cli", "serve", "--port", "0", "--no-open", *options]
        self.child = subprocess.Popen(line, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT)
        self.said = ""
        assert self.child.stderr is not None
        while "pairlens is at" not in self.said:
            read = self.child.stderr.readline()
            assert read, self.said
            self.said += read
        found = re.search(r"http://[\d.]+:\d+", self.said)
        assert found
        self.url = found[0]

    def post(self, body: dict, timeout: float = 60) -> httpx.Response:
        return httpx.post(f"{self.url}/api/explain", json=body, timeout=timeout)

    def wait(self, **state: object) -> None:
        """Wait until the server is in some state."""
        end = time.monotonic() + 30
        while not state.items() <= (found := httpx.get(f"{self.url}/healthz", timeout=10).json()).items():
            assert time.monotonic() < end, found
            time.sleep(0.01)

    def end(self, seconds: float = 60) -> tuple[int, str]:
        """How it ended, and all that it said."""
        out, err = self.child.communicate(timeout=seconds)
        return self.child.returncode, self.said + out + err


@pytest.fixture
def process():
    started = Process("--max-chars", "3000")
    yield started
    if started.child.poll() is None:
        started.child.kill()


def test_it_says_nothing_of_what_is_typed_and_finishes_what_it_has_begun(process):
    a, b = f"{SECRET} is not good.", f"This {SECRET} is bad."
    assert process.post({"a": a, "b": b}).status_code == 200
    assert process.post({"a": a, "b": b, "layer": 99}).status_code == 422
    assert process.post({"a": a * 400, "b": b}).status_code == 422
    cut = process.post({"a": f"{SECRET} " * 300, "b": b, "method": "output", "level": "sentence"})
    assert cut.json()["truncated_a"] is True
    httpx.get(f"{process.url}/{SECRET}?text={SECRET}")
    httpx.get(process.url, headers={"Host": f"{SECRET}.example"})
    body = {"a": f"{SECRET} {LONG[0]}", "b": LONG[1], "method": "fade", "level": "token"}
    with pytest.raises(httpx.ReadTimeout):
        process.post(body, timeout=0.5)
    process.wait(running=0)

    answers = []
    slow = {"a": LONG[0] + SECRET, "b": b, "level": "token", "passes": 300}  # a second or two of work
    thread = threading.Thread(target=lambda: answers.append(process.post(slow)))
    thread.start()
    process.wait(running=1)
    process.child.send_signal(signal.SIGTERM)
    process.wait(status="draining")
    refused = process.post({"a": a, "b": b})
    assert refused.status_code == 503
    assert "stopping" in refused.json()["error"]
    assert not answers, "what was under way is still under way"
    thread.join(60)
    assert answers[0].status_code == 200
    assert answers[0].json()["text_a"] == slow["a"]
    code, said = process.end()
    assert code == 0
    assert SECRET.lower() not in said.lower()
    assert said.splitlines() == [f"pairlens is at {process.url}  (stop with Ctrl-C)", "stopped"]


def test_a_port_in_use_is_an_error_that_says_what_to_do():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["serve", "--port", str(port), "--no-open"])
    assert done.exit_code == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in done.stderr
    assert "--port 0" in done.stderr


def test_a_model_that_is_not_there_is_an_error_before_anything_is_served():
    done = CliRunner().invoke(app, ["serve", "--port", "0", "--no-open", "--model", "no/such-model"])
    assert done.exit_code == 1
    assert "no/such-model" in done.stderr
    assert "pairlens is at" not in done.stderr


def test_without_the_extra_it_names_the_command(monkeypatch):
    for name in [name for name in sys.modules if name.startswith("pairlens.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    done = CliRunner().invoke(app, ["serve", "--no-open"])
    assert done.exit_code == 1
    assert "pip install 'pairlens[web]'" in done.stderr.replace("\n", " ")
