"""The scheduler: fair turns, a bounded queue, cancellation, stopping; and a server with more requests than room."""

from __future__ import annotations

import asyncio
import itertools
import threading
import time
from typing import Any

import httpx
import psutil
import pytest

from pairlens import progress
from pairlens.web import Limits, requests
from pairlens.web import scheduler as scheduling
from pairlens.web.limits import Refusal
from pairlens.web.scheduler import FairLock, Scheduler
from serving import TIMEOUT, explain_endlessly, held, send, serving

A, B = "The coffee here is not good.", "This coffee is bad."
STOP = Refusal(499, "stopped by the test.")


def run(test, **limits):
    """Run a test with a scheduler in an event loop of its own."""

    given: dict[str, Any] = {"seconds": 2.0 * TIMEOUT, **limits}

    async def with_scheduler():
        scheduler = Scheduler({}, Limits(**given))
        return await asyncio.wait_for(test(scheduler), TIMEOUT)

    return asyncio.run(with_scheduler())


async def until(condition):
    while not condition():
        await asyncio.sleep(0.001)


def endless():
    while True:
        progress.report(0.5)
        time.sleep(0.001)


# Turns.


def test_the_lock_serves_threads_in_the_order_in_which_they_ask():
    lock, order = FairLock(), []

    def enter(number):
        with lock:
            order.append(number)

    threads = [threading.Thread(target=enter, args=(number,)) for number in range(8)]
    with lock:
        for waiting, thread in enumerate(threads, start=1):
            thread.start()
            while lock.waiting < waiting:
                time.sleep(0.001)
    for thread in threads:
        thread.join(TIMEOUT)
    assert order == list(range(8))


def test_calculations_take_turns_after_every_slice(monkeypatch):
    monkeypatch.setattr(scheduling, "SLICE", 0)
    order = []

    def work(name, steps):
        for _ in range(steps):
            order.append(name)
            progress.report(0.5)
        return name

    async def both(scheduler):
        gate = threading.Event()
        first = scheduler.start(gate.wait)
        await until(lambda: scheduler.running == 1)
        names = {"long": 12, "short": 5}
        started = [scheduler.start(lambda name=name, n=n: work(name, n), lambda: False) for name, n in names.items()]
        await until(lambda: scheduler.running == 3 and scheduler.turns.waiting == 2)
        gate.set()
        results = [await calculation.task for calculation in started]
        await first.task
        return results

    assert run(both) == ["long", "short"]
    alternating, rest = order[:10], order[10:]
    assert all(one != other for one, other in itertools.pairwise(alternating)), "one step each, while both have any"
    assert rest == ["long"] * 7


def test_short_requests_are_answered_while_long_ones_compute(tiny, monkeypatch):
    explain = requests.explain
    monkeypatch.setattr(
        requests, "explain", lambda body, lens: (explain_endlessly if body.a == B else explain)(body, lens)
    )
    with serving({"tiny": tiny}) as server:
        monkeypatch.setattr(requests, "is_quick", lambda body, lens, limits: body.a != B)
        long = [send(server, "/api/explain", {"a": B, "b": A}) for _ in range(3)]
        server.wait(lambda scheduler: (scheduler.running, scheduler.waiting) == (2, 1))
        for _ in range(4):
            server.explain(A, B, method="occlusion")
        assert httpx.get(server.url + "/healthz", timeout=TIMEOUT).json()["running"] == 2
        for connection in long:
            connection.close()


# The queue.


def test_a_full_queue_refuses_with_a_reason_and_a_time_to_come_back(tiny):
    with serving({"tiny": tiny}, slow=1, waiting=1) as server:
        with held(server, count=2):
            response = server.post("/api/explain", {"a": A, "b": B})
            assert response.status_code == 503
            assert int(response.headers["retry-after"]) > 0
            assert "as many requests are waiting as this server lets wait: 1" in response.json()["error"]
            assert httpx.get(server.url + "/healthz", timeout=TIMEOUT).json()["refused"] == 1
        server.wait_until_idle()
        assert server.post("/api/explain", {"a": A, "b": B}).status_code == 200


def test_long_calculations_leave_half_of_the_queue_to_short_ones():
    async def fill(scheduler):
        gate = threading.Event()
        long = [scheduler.start(gate.wait, lambda: False) for _ in range(3)]
        await until(lambda: (scheduler.running, scheduler.long_waiting) == (1, 2))
        refused = scheduler.start(gate.wait, lambda: False)
        with pytest.raises(Refusal, match="as many long requests are waiting as this server lets wait: 2") as error:
            await refused.task
        assert (error.value.status, scheduler.refused) == (503, 1)
        short = scheduler.start(lambda: "short")
        await until(lambda: scheduler.running == 2)
        gate.set()
        assert await short.task == "short"
        assert [await calculation.task for calculation in long] == [True] * 3
        assert scheduler.finished == 4

    run(fill, slow=1, waiting=4)


def test_a_calculation_past_its_deadline_ends_with_504():
    async def late(scheduler):
        with pytest.raises(Refusal, match=r"this took longer than the 0\.05 seconds") as error:
            await scheduler.start(endless).task
        return error.value.status, scheduler.cancelled, scheduler.running

    assert run(late, seconds=0.05) == (504, 1, 0)


def test_a_calculation_that_waits_past_its_deadline_ends_with_503():
    async def wait(scheduler):
        gate = threading.Event()
        first = scheduler.start(gate.wait)
        await until(lambda: scheduler.running == 1)
        with pytest.raises(Refusal, match=r"busy for 0\.05 seconds and never came to this request") as error:
            await scheduler.start(endless).task
        gate.set()
        await first.task
        return error.value.status, scheduler.refused, scheduler.waiting

    assert run(wait, seconds=0.05, quick=1) == (503, 1, 0)


# Cancellation.


def test_a_waiting_calculation_stops_at_once_and_a_computing_one_after_its_step():
    async def stop(scheduler):
        computing = scheduler.start(endless)
        await until(lambda: scheduler.running == 1)
        waiting = scheduler.start(endless)
        await until(lambda: scheduler.waiting == 1)
        for calculation in (waiting, computing):
            calculation.stop(STOP)
            with pytest.raises(Refusal, match="stopped by the test"):
                await calculation.task
        assert (scheduler.running, scheduler.waiting, scheduler.cancelled) == (0, 0, 1)
        assert await scheduler.start(lambda: 3).task == 3

    run(stop, quick=1)


@pytest.mark.parametrize("accept", ["application/json", "application/x-ndjson"])
def test_a_calculation_stops_when_its_client_disconnects(idle, tiny, monkeypatch, accept):
    cancelled = idle.scheduler.cancelled
    with monkeypatch.context() as patch:
        patch.setattr(requests, "explain", explain_endlessly)
        connection = send(idle, "/api/explain", {"a": A, "b": B}, Accept=accept)
        idle.wait(lambda scheduler: scheduler.running == 1)
        connection.close()
        idle.wait_until_idle()
    assert idle.scheduler.cancelled == cancelled + 1
    # The interrupted calculation leaves nothing behind in its lens.
    assert abs(idle.explain(A, B)["score"] - tiny.explain(A, B).score) < 1e-6


def test_a_request_leaves_the_queue_when_its_client_disconnects(tiny):
    with serving({"tiny": tiny}, quick=1) as server, held(server, quick=True):
        connection = send(server, "/api/explain", {"a": A, "b": B})
        server.wait(lambda scheduler: scheduler.waiting == 1)
        connection.close()
        server.wait(lambda scheduler: scheduler.waiting == 0)
        assert server.scheduler.running == 1, "the request left the queue without being computed"


# Stopping.


def test_draining_refuses_new_calculations_and_waits_for_those_under_way():
    async def drain(scheduler):
        gate = threading.Event()
        calculation = scheduler.start(gate.wait)
        draining = asyncio.create_task(scheduler.drain())
        await until(lambda: scheduler.draining)
        with pytest.raises(Refusal, match="the server is stopping"):
            scheduler.start(gate.wait)
        assert not draining.done()
        gate.set()
        await draining
        assert await calculation.task is True

    run(drain, grace=2.0 * TIMEOUT)


def test_draining_stops_what_is_left_after_the_grace_period():
    async def drain(scheduler):
        calculations = [scheduler.start(endless) for _ in range(2)]
        await until(lambda: (scheduler.running, scheduler.waiting) == (1, 1))
        await scheduler.drain()
        for calculation in calculations:
            with pytest.raises(Refusal, match="the server is stopping") as error:
                await calculation.task
            assert error.value.status == 503

    run(drain, grace=0.05, quick=1)


# Load.

WORDS = "coffee tea bread rain sun train book phone river music winter garden money letter".split()


@pytest.mark.parametrize(("count", "waiting"), [(45, 16), pytest.param(180, 64, marks=pytest.mark.slow)])
def test_many_requests_at_once_are_all_answered_correctly(tiny, count, waiting):
    pairs = list(itertools.islice(itertools.permutations(WORDS, 2), count))
    texts = {word: f"I like {word} a lot." for word in WORDS}
    model = tiny.encoder.sentence_transformer
    vectors = dict(zip(WORDS, model.encode(list(texts.values()), normalize_embeddings=True), strict=True))
    process = psutil.Process()
    ways = [{"method": "output"}, {"level": "sentence"}, {"method": "occlusion", "level": "sentence"}]

    async def one(client, url, number, a, b):
        body, refused = {"a": texts[a], "b": texts[b], **ways[number % 3]}, 0
        while True:
            response = await client.post(url, json=body)
            if response.status_code == 200:
                answer = response.json()
                assert (answer["text_a"], answer["text_b"]) == (texts[a], texts[b])
                assert abs(answer["score"] - float(vectors[a] @ vectors[b])) < 1e-5
                return refused
            assert response.status_code == 503, response.text
            assert response.headers["retry-after"]
            refused += 1
            await asyncio.sleep(1)

    async def wrong(client, url):
        return (await client.post(url, json={"a": "x" * 20_000, "b": B})).status_code

    async def everyone(url):
        limits = httpx.Limits(max_connections=250, max_keepalive_connections=0)
        async with httpx.AsyncClient(timeout=TIMEOUT, limits=limits) as client:
            right = asyncio.gather(*(one(client, url, i, a, b) for i, (a, b) in enumerate(pairs)))
            return await asyncio.gather(*(wrong(client, url) for _ in range(20))), await right

    before = process.memory_info().rss
    with serving({"tiny": tiny}, waiting=waiting) as server:
        # No calculation makes a step before the queue is full.
        with held(server) as release:
            opener = threading.Thread(target=lambda: (server.wait(lambda s: s.refused > 0), release()))
            opener.start()
            wrongs, refusals = asyncio.run(everyone(server.url + "/api/explain"))
            opener.join(TIMEOUT)
        server.wait_until_idle()
    assert wrongs == [422] * 20
    assert len(refusals) == count
    assert sum(refusals) > 0, "more came than may wait"
    assert process.memory_info().rss - before < 100 * 2**20
