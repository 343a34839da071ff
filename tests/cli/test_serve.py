"""`pairlens serve` as a user starts it: its messages, which quote no text, its errors, and how it stops."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import sys
from http.client import HTTPConnection

import httpx
import pytest
from typer.testing import CliRunner

from commands import ENVIRONMENT
from pairlens.cli import app

TIMEOUT = 300
SECRET = "Marmalade"
"""A word that is in every text sent here, and must be in no message."""


@pytest.fixture
def process(model):
    line = [sys.executable, "-m", "pairlens.cli", "serve", "--port", "0", "--no-open", "--model", model]
    line += ["--max-chars", "3000", "--max-seconds", str(TIMEOUT)]
    with subprocess.Popen(line, stderr=subprocess.PIPE, stdout=subprocess.PIPE, text=True, env=ENVIRONMENT) as started:
        yield started
        started.kill()


def test_messages_quote_no_text_and_a_signal_stops_the_server(process):
    announced = process.stderr.readline()
    address = re.search(r"http://[\d.]+:\d+", announced)
    assert address, announced + process.stderr.read()
    url = address[0]

    def post(**body):
        return httpx.post(f"{url}/api/explain", json=body, timeout=TIMEOUT)

    a, b = f"{SECRET} is not good.", f"This {SECRET} is bad."
    assert post(a=a, b=b).status_code == 200
    assert post(a=a, b=b, layer=99).status_code == 422
    assert post(a=a * 400, b=b).status_code == 422
    assert post(a=f"{SECRET} " * 300, b=b, method="output", level="sentence").json()["truncated_a"] is True
    httpx.get(f"{url}/{SECRET}?text={SECRET}", timeout=TIMEOUT)
    httpx.get(url, headers={"Host": f"{SECRET}.example"}, timeout=TIMEOUT)
    connection = HTTPConnection(url.removeprefix("http://"), timeout=TIMEOUT)
    connection.request("POST", "/api/explain", f'{{"a": "{SECRET}", "b": "', {"Content-Type": "application/json"})
    connection.close()  # the client disconnects in the middle of a request
    process.send_signal(signal.SIGTERM)
    out, err = process.communicate(timeout=TIMEOUT)
    said = announced + out + err
    assert process.returncode == 0
    assert SECRET.lower() not in said.lower()
    assert said.splitlines() == [f"pairlens is at {url}  (stop with Ctrl-C)", "stopped"]


def test_a_port_in_use_is_an_error_that_says_what_to_do():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        port = taken.getsockname()[1]
        done = CliRunner().invoke(app, ["serve", "--port", str(port), "--no-open"])
    assert done.exit_code == 2
    assert f"cannot listen on 127.0.0.1, port {port}" in done.stderr
    assert "--port 0" in done.stderr


def test_a_model_that_does_not_exist_is_an_error_before_anything_is_served():
    done = CliRunner().invoke(app, ["serve", "--port", "0", "--no-open", "--model", "no/such-model"])
    assert done.exit_code == 1
    assert "no/such-model" in done.stderr
    assert "pairlens is at" not in done.stderr


def test_without_the_web_extra_the_error_names_the_install_command(monkeypatch):
    import pairlens

    for name in [name for name in sys.modules if name.startswith("pairlens.web")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.delattr(pairlens, "web", raising=False)
    monkeypatch.setitem(sys.modules, "fastapi", None)
    done = CliRunner().invoke(app, ["serve", "--no-open"])
    assert done.exit_code == 1
    assert "pip install 'pairlens[web]'" in done.stderr.replace("\n", " ")
