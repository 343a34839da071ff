"""The server with more to do than it can: it refuses with a reason, takes turns, stops what nobody waits for."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
import time
from http.client import HTTPConnection

import httpx
import psutil
import pytest

from pairlens.web.turns import Turns
from serving import LONG, busy, serving

A, B = "The coffee here is not good.", "This coffee is bad."


@pytest.fixture(scope="module")
def server(minilm):
    with serving({"minilm": minilm}) as running:
        yield running


def test_too_many_are_told_to_come_back(minilm):
    with serving({"minilm": minilm}, slow=1, waiting=1) as server:
        with busy(server, count=2):
            response = server.post("/api/explain", {"a": A, "b": B})
            assert response.status_code == 503
            assert int(response.headers["retry-after"]) > 0
            assert "as many requests are waiting as this server lets wait: 1" in response.json()["error"]
            assert httpx.get(server.url + "/healthz").json()["refused"] == 1
        server.wait(lambda work: work.running == work.waiting == 0)
        assert server.post("/api/explain", {"a": A, "b": B}).status_code == 200


def test_long_ones_leave_room_for_short_ones_in_the_queue(minilm):
    with serving({"minilm": minilm}, slow=1, waiting=4) as server, busy(server, count=3):
        server.wait(lambda work: work._long == 2)
        long = server.post("/api/explain", {"a": LONG[0], "b": LONG[1], "method": "fade", "level": "token"})
        assert long.status_code == 503
        assert "as many long requests are waiting as this server lets wait: 2" in long.json()["error"]
        assert server.post("/api/explain", {"a": A, "b": B, "method": "output"}).status_code == 200


def test_what_takes_too_long_is_stopped(minilm):
    with serving({"minilm": minilm}, seconds=1.5, slow=1) as server, busy(server, count=2) as answers:
        server.wait(lambda work: work.running == work.waiting == 0)
        while len(answers) < 2:
            time.sleep(0.01)
        by_status = {answer.status_code: answer.json()["error"] for answer in answers}
        assert "this took longer than the 1.5 seconds" in by_status[504]
        assert "never came to this request" in by_status.get(503, by_status[504]) or 503 not in by_status
        assert server.work.cancelled >= 1


# Load.


def test_turns_go_to_whoever_has_had_least():
    turns, order = Turns(), []

    def run(name, steps, length):
        with turns.turn() as offer:
            for _ in range(steps):
                time.sleep(length)
                order.append(name)
                offer()

    long = threading.Thread(target=run, args=("long", 12, 0.05))
    long.start()
    time.sleep(0.12)
    short = threading.Thread(target=run, args=("short", 5, 0.02))
    short.start()
    long.join()
    short.join()
    last = len(order) - 1 - order[::-1].index("short")
    assert order[-1] == "long"
    assert order[order.index("short") : last].count("long") <= 3, "0.1 seconds of one are two steps of the other"


def test_a_long_request_does_not_hold_up_short_ones(server):
    def once():
        start = time.monotonic()
        server.explain(A, B, method="occlusion")
        return time.monotonic() - start

    alone = max(once() for _ in range(3))
    with busy(server, count=3) as answers:
        server.wait(lambda work: work.running >= 2)
        beside = [once() for _ in range(4)]
        assert httpx.get(server.url + "/healthz", timeout=2).json()["running"] >= 2
        assert not answers, "the long ones are still under way"
    assert max(beside) < 4 * alone + 2


def test_nobody_waits_so_the_work_stops(server, minilm):
    server.wait(lambda work: work.running == work.waiting == 0)
    cancelled = server.work.cancelled
    body = json.dumps({"a": LONG[0], "b": LONG[1], "method": "fade", "level": "token"})
    for accept in ("application/json", "application/x-ndjson"):
        line = HTTPConnection(server.url.removeprefix("http://"), timeout=60)
        line.request("POST", "/api/explain", body, {"Content-Type": "application/json", "Accept": accept})
        server.wait(lambda work: work.running == 1)
        line.close()
        gone = time.monotonic()
        server.wait(lambda work: work.running == 0)
        assert time.monotonic() - gone < 5
        cancelled += 1
        assert server.work.cancelled == cancelled
    # And nothing is left of it in the lens that was at work.
    assert abs(server.explain(A, B)["score"] - minilm.explain(A, B).score) < 1e-6


WORDS = "coffee tea bread rain sun train book phone river music winter garden money letter".split()


def test_two_hundred_at_once_and_none_is_lost_or_wrong(server, minilm):
    pairs = list(itertools.islice(itertools.permutations(WORDS, 2), 180))
    texts = {word: f"I like {word} a lot." for word in WORDS}
    model = minilm.encoder._model
    vectors = dict(zip(WORDS, model.encode(list(texts.values()), normalize_embeddings=True), strict=True))
    process = psutil.Process()
    ways = [{"method": "output"}, {"level": "sentence"}, {"method": "occlusion", "level": "sentence"}]

    async def one(client, number, a, b):
        body = {"a": texts[a], "b": texts[b], **ways[number % 3]}
        refused = 0
        while True:
            response = await client.post(server.url + "/api/explain", json=body)
            if response.status_code == 200:
                found = response.json()
                return refused, (found["text_a"], found["text_b"]) == (texts[a], texts[b]), found["score"]
            assert response.status_code == 503, response.text
            assert response.headers["retry-after"]
            refused += 1
            await asyncio.sleep(0.5)

    async def wrong(client):
        return (await client.post(server.url + "/api/explain", json={"a": "x" * 20_000, "b": B})).status_code

    async def everyone():
        limits = httpx.Limits(max_connections=250, max_keepalive_connections=0)
        async with httpx.AsyncClient(timeout=120, limits=limits) as client:
            asked = [one(client, i, a, b) for i, (a, b) in enumerate(pairs)]
            return await asyncio.gather(*asked, *(wrong(client) for _ in range(20)))

    before = process.memory_info().rss
    found = asyncio.run(everyone())
    growth = process.memory_info().rss - before
    assert found[180:] == [422] * 20
    for (a, b), (_, own, score) in zip(pairs, found[:180], strict=True):
        assert own
        assert abs(score - float(vectors[a] @ vectors[b])) < 1e-5
    assert sum(refused for refused, _, _ in found[:180]) > 0, "more came than may wait"
    assert growth < 100 * 2**20
    server.wait(lambda work: work.running == work.waiting == 0)


def test_a_server_that_stops_refuses_and_then_calls_off(minilm):
    with serving({"minilm": minilm}, grace=1.0) as server, busy(server) as answers:
        stopping = asyncio.run_coroutine_threadsafe(server.work.drain(), server.loop)
        server.wait(lambda work: work.draining)
        refused = server.post("/api/explain", {"a": A, "b": B})
        assert refused.status_code == 503
        assert "stopping" in refused.json()["error"]
        assert httpx.get(server.url + "/healthz").json()["status"] == "draining"
        stopping.result(timeout=10)
        server.wait(lambda work: work.running == 0)
        while not answers:
            time.sleep(0.01)
        assert answers[0].status_code == 503
