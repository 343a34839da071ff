"""Progress: every method reports short steps, a callback may stop it anywhere, and stopping leaves nothing behind."""

from __future__ import annotations

import io
import itertools
import threading
import time
from typing import Any

import numpy as np
import pytest
import torch
from rich.console import Console

import zoo
from pairlens import Lens, progress
from pairlens.cli import session
from pairlens.web.scheduler import FairLock

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
def test_every_method_reports_from_0_to_1_with_unchanged_results(tiny, options):
    e, seen = watched(tiny, A, B, **options)
    assert len(seen) >= 4
    assert seen == sorted(seen)
    assert 0 <= seen[0] < 0.5
    assert seen[-1] == 1.0
    plain = tiny.explain(A, B, **options)
    assert np.abs(e.matrix - plain.matrix).max() < 1e-6
    assert len(seen) == len(watched(tiny, A, B, **options)[1]), "a run that was not watched reported nothing"


@pytest.mark.parametrize("options", [{"level": "word"}, {"level": "token", "layer": 4}], ids=str)
def test_steps_are_short(minilm, options):
    """A step takes less than a second of processor time, which does not depend on other processes."""
    marks = [time.thread_time()]
    with progress.watch(lambda _: marks.append(time.thread_time())):
        minilm.explain(*MEDIUM, **options)
    marks.append(time.thread_time())
    assert max(later - earlier for earlier, later in itertools.pairwise(marks)) < 1


def test_a_larger_model_has_more_steps():
    few, many = (
        len(watched(Lens(zoo.encoder("bert", num_hidden_layers=2, intermediate_size=size)), A, B, layer=0, tol=0.1)[1])
        for size in (64, 16384)
    )
    assert many > few


@pytest.mark.parametrize("options", WAYS, ids=str)
def test_a_callback_stops_the_calculation_at_any_step_and_leaves_nothing_behind(tiny, options):
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
    other.join(300)
    assert not other.is_alive(), "the model is free for others"
    assert np.array_equal(tiny.explain(A, B, **options).matrix, before)


def test_a_callback_sees_its_own_thread_only(tiny):
    seen = []
    with progress.watch(seen.append):
        other = threading.Thread(target=lambda: tiny.explain(A, B, method="occlusion"))
        other.start()
        other.join()
    assert not seen


def test_the_innermost_callback_is_called(tiny):
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
    with progress.share(0, 1):  # without a callback
        progress.report(0.5)


def test_a_lens_from_a_function_reports_progress():
    lens = Lens.from_function(lambda texts: [[len(text), text.count("a") + 1] for text in texts])
    seen = watched(lens, A, B)[1]
    assert len(seen) >= 4
    assert seen[-1] == 1.0


def test_many_texts_report_from_0_to_1(tiny):
    seen = []
    pairs = [("one two", "three four five"), ("six", "seven eight nine ten eleven twelve")]
    with progress.watch(seen.append):
        assert len(list(tiny.explain_many(pairs, layer=-1, progress=False))) == 2
    assert seen == sorted(seen)
    assert seen[-1] == 1.0


# Forks that compute in turns, step by step, as the server's do.


@pytest.mark.parametrize("family", ["bert", pytest.param("t5", marks=pytest.mark.slow)])
def test_forks_that_take_turns_give_unchanged_results(family):
    lens = Lens(zoo.encoder(family))
    jobs: list[tuple[str, str, dict[str, Any]]] = [
        (A, B, {"layer": 1, "tol": 0.05}),
        (B, A, {"layer": 2, "level": "token"}),
        (B, B[:11], {}),
        (A, B, {"method": "occlusion"}),
    ]
    expected = [lens.explain(a, b, **options).matrix for a, b, options in jobs]
    turns, matrices, order = FairLock(), {}, []

    def run(number, fork):
        a, b, options = jobs[number]

        def step(_):
            order.append(number)
            turns.pass_on()

        with turns, progress.watch(step):
            matrices[number] = fork.explain(a, b, **options).matrix

    threads = [threading.Thread(target=run, args=(i, lens.fork())) for i in range(len(jobs))]
    with turns:  # all threads wait before the first begins
        for thread in threads:
            thread.start()
        while turns.waiting < len(jobs):
            time.sleep(0.001)
    for thread in threads:
        thread.join(300)
    assert sum(one != other for one, other in itertools.pairwise(order)) > 20, "the threads did take turns"
    for number, matrix in enumerate(expected):
        assert np.abs(matrices[number] - matrix).max() < 1e-5


def test_a_fork_shares_the_weights_and_nothing_else(tiny):
    fork = tiny.fork()
    assert (fork.name, fork.layers, fork.strict) == (tiny.name, tiny.layers, tiny.strict)
    parameters, shared = (dict(lens.encoder._twin.named_parameters()) for lens in (tiny, fork))
    assert all(parameters[name].data_ptr() == shared[name].data_ptr() for name in parameters)
    assert fork.explain(A, B, layer=1).score == tiny.explain(A, B, layer=1).score
    assert fork.encoder._lock is not tiny.encoder._lock
    assert fork.encoder.route() is not tiny.encoder.route()


# In the terminal.


def test_the_progress_bar_appears_in_a_terminal_after_a_second(tiny, monkeypatch):
    def said(terminal):
        file = io.StringIO()
        console = Console(file=file, force_terminal=terminal, width=80)
        monkeypatch.setattr(session, "messages", lambda: console)
        with session.measured("explaining"):
            tiny.explain(A, B)
        return file.getvalue()

    monkeypatch.setattr(session, "PATIENCE", 1e9)
    assert "%" not in said(terminal=True)
    monkeypatch.setattr(session, "PATIENCE", 0)
    assert "100%" in said(terminal=True)
    assert said(terminal=False) == ""
