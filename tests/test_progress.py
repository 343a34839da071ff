"""Progress: every method reports its steps, they are short, whoever watches may stop it, and nothing is left of it."""

from __future__ import annotations

import io
import itertools
import threading
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

import zoo
from pairlens import Lens, progress
from pairlens.cli import session
from pairlens.web.turns import Turns

A, B = "The coffee here is not good, and the tea is worse.", "This coffee is bad."
MEDIUM = (
    "The board approved the merger after a long debate on Tuesday, although several members had asked for more time.",
    "After hours of discussion, directors agreed to the merger, against the wishes of those who wanted a delay.",
)
WAYS = [
    {},
    {"method": "occlusion"},
    {"method": "output"},
    {"method": "fade", "tol": 0.05},
    {"layer": 1, "tol": 0.01},
    {"layer": 2, "level": "token", "reference_terms": "keep"},
]


@pytest.fixture(scope="module")
def tiny():
    return Lens(zoo.encoder("bert"))


class Stop(Exception):
    pass


def watched(lens, a, b, **options):
    seen = []
    with progress.watch(seen.append):
        return lens.explain(a, b, **options), seen


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_every_method_goes_from_nothing_to_all_and_gives_the_same(tiny, options):
    e, seen = watched(tiny, A, B, **options)
    assert len(seen) >= 4
    assert seen == sorted(seen)
    assert 0 <= seen[0] < 0.5
    assert seen[-1] == 1.0
    plain = tiny.explain(A, B, **options)
    assert np.abs(e.matrix - plain.matrix).max() < 1e-6
    assert len(seen) == len(watched(tiny, A, B, **options)[1]), "nobody else was told anything"


@pytest.mark.parametrize("options", [{"level": "word"}, {"level": "token", "layer": 4}], ids=str)
def test_steps_are_short(minilm, options):
    minilm.explain(A, B, **options)
    marks = [time.thread_time()]
    with progress.watch(lambda _: marks.append(time.thread_time())):
        minilm.explain(*MEDIUM, **options)
    marks.append(time.thread_time())
    assert max(later - earlier for earlier, later in itertools.pairwise(marks)) < 1


def test_a_larger_model_has_more_and_smaller_steps():
    few, many = (
        len(watched(Lens(zoo.encoder("bert", num_hidden_layers=2, intermediate_size=size)), A, B, layer=0, tol=0.1)[1])
        for size in (64, 16384)
    )
    assert many > few


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_whoever_watches_may_stop_it_anywhere_and_nothing_is_left(tiny, options):
    steps = len(watched(tiny, A, B, **options)[1])
    before = tiny.explain(A, B, **options).matrix
    hooks = [len(module._forward_hooks) for module in tiny.encoder._twin.modules()]
    for last in sorted({1, 2, steps // 2, steps - 1}):
        count = itertools.count(1)

        def stop(_, count=count, last=last):
            if next(count) == last:
                raise Stop

        with pytest.raises(Stop), progress.watch(stop):
            tiny.explain(A, B, **options)
        assert next(count) == last + 1, "no step is made after the last"
        assert not progress.watched()
    assert [len(module._forward_hooks) for module in tiny.encoder._twin.modules()] == hooks
    assert torch.is_grad_enabled()
    assert not torch.is_inference_mode_enabled()
    assert torch.backends.cuda.flash_sdp_enabled()
    assert torch.nn.attention._cur_sdpa_kernel_backends() != [torch.nn.attention.SDPBackend.MATH]
    other = threading.Thread(target=lambda: tiny.explain(A, B, **options))
    other.start()
    other.join(30)
    assert not other.is_alive(), "the model is free for others"
    assert np.array_equal(tiny.explain(A, B, **options).matrix, before)


def test_only_the_thread_that_watches_is_told(tiny):
    seen = []
    with progress.watch(seen.append):
        other = threading.Thread(target=lambda: tiny.explain(A, B, method="occlusion"))
        other.start()
        other.join()
    assert not seen


def test_the_innermost_watcher_is_told(tiny):
    outer, inner = [], []
    with progress.watch(outer.append):
        with progress.watch(inner.append):
            tiny.explain(A, B, method="occlusion")
        assert not outer
        tiny.explain(A, B, method="occlusion")
    assert outer == inner


def test_shares_nest():
    seen = []
    with progress.watch(seen.append):
        progress.report(0.1)
        with progress.share(0.2, 0.6):
            steps = progress.Steps(4)
            steps.advance()
            with progress.share(0.5, 1):
                progress.Steps(0).advance()
    assert seen == pytest.approx([0.1, 0.3, 0.6, 0.6, 0.6])
    with progress.share(0, 1):  # nobody watches
        progress.report(0.5)


def test_a_black_box_reports_too():
    lens = Lens.from_function(lambda texts: [[len(text), text.count("a") + 1] for text in texts])
    seen = watched(lens, A, B)[1]
    assert len(seen) >= 4
    assert seen[-1] == 1.0


def test_many_texts_count_by_their_length(tiny):
    seen = []
    pairs = [("one two", "three four five"), ("six", "seven eight nine ten eleven twelve")]
    with progress.watch(seen.append):
        found = list(tiny.explain_many(pairs, layer=-1, progress=False))
    assert len(found) == 2
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


# Taking turns in the middle of a calculation, as the server does.


@pytest.mark.parametrize("family", ["bert", "t5"])
def test_two_lenses_on_the_same_weights_take_turns(family, monkeypatch):
    ticks = itertools.count()  # every step takes as long as any other, however busy the machine is
    monkeypatch.setattr("pairlens.web.turns.time", SimpleNamespace(monotonic=lambda: next(ticks)))
    lens = Lens(zoo.encoder(family))
    jobs: list[tuple[str, str, dict[str, Any]]] = [
        (A, B, {"layer": 1, "tol": 0.05}),
        (B, A, {"layer": 2, "level": "token"}),
        (B, B[:11], {}),
        (A, B, {"method": "occlusion"}),
    ]
    expected = [lens.explain(a, b, **options).matrix for a, b, options in jobs]
    turns, found, order = Turns(), {}, []

    def run(number, fork):
        a, b, options = jobs[number]
        with turns.turn() as offer:

            def step(_):
                order.append(number)
                offer()

            with progress.watch(step):
                found[number] = fork.explain(a, b, **options).matrix

    threads = [threading.Thread(target=run, args=(i, lens.fork())) for i in range(len(jobs))]
    with turns.turn():  # nobody begins before all are there
        for thread in threads:
            thread.start()
        while len(turns._waiting) < len(jobs):
            time.sleep(0.001)
    for thread in threads:
        thread.join(120)
    assert sum(one != other for one, other in itertools.pairwise(order)) > 20, "they did take turns"
    for number, matrix in enumerate(expected):
        assert np.abs(found[number] - matrix).max() < 1e-5


def test_a_fork_shares_the_weights_and_nothing_else(tiny):
    fork = tiny.fork()
    assert (fork.name, fork.layers, fork.strict) == (tiny.name, tiny.layers, tiny.strict)
    own, other = (dict(lens.encoder._twin.named_parameters()) for lens in (tiny, fork))
    assert all(own[name].data_ptr() == other[name].data_ptr() for name in own)
    assert fork.explain(A, B, layer=1).score == tiny.explain(A, B, layer=1).score
    assert fork.encoder._lock is not tiny.encoder._lock
    assert fork.encoder.route() is not tiny.encoder.route()


# In the terminal.


def test_a_bar_shows_where_a_person_watches_and_only_if_it_takes_long(tiny, monkeypatch):
    def said(terminal):
        file = io.StringIO()
        console = Console(file=file, force_terminal=terminal, width=80)
        monkeypatch.setattr(session, "messages", lambda: console)
        with session.measured("explaining"):
            tiny.explain(A, B)
        return file.getvalue()

    assert "%" not in said(terminal=True), "within a second there is nothing to count"
    monkeypatch.setattr(session, "PATIENCE", 0)
    assert "100%" in said(terminal=True)
    assert said(terminal=False) == ""
