"""Speed of integrated-jacobian on this processor, in about five minutes: `make bench` runs this first.

(a) how many times faster than the papers' algorithm at an equal gap; (b) the share of the machine's rate of matrix
products that tail passes reach; (c) growth with tokens, layers, pairs and tol; (e) other methods: Captum's integrated
gradients for every embedding dimension, and sampled Shapley values of equal agreement. long_texts.py has (d), memory.
Results go to benchmarks/results/speed.json; pictures.py draws them into docs/images.
"""

from __future__ import annotations

import argparse
import csv
import importlib
import itertools
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import torch
import versus_papers
from _results import note, rate_of_products

from pairlens import GaussLegendre, Lens, Shapley
from pairlens.attribution import Decomposer, Job, stream_explanations
from pairlens.autodiff import Groups, differentiable
from pairlens.study.faithfulness import cost

A, B = versus_papers.A, versus_papers.B
WORDS = (
    "the committee met on a rainy afternoon and discussed whether the old bridge should be rebuilt in stone or wood"
).split()


def seconds(run: Callable[[], object], times: int = 3) -> float:
    """The shortest of several timings, after a warm-up run."""
    run()
    timings = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        timings.append(time.perf_counter() - start)
    return min(timings)


def versus(model: Any, lens: Lens) -> None:
    """(a) The papers' algorithm at an equal gap, a few of its 384 backward passes timed."""
    for layer in (5, 3, 1, 0):
        steps, _ = versus_papers.steps_for(lens, layer)
        theirs = versus_papers.papers_seconds(model, layer, steps, 2)
        ours = seconds(lambda layer=layer: lens.explain(A, B, layer=layer, level="token"))
        e = lens.explain(A, B, layer=layer, level="token")
        note(
            "speed",
            f"papers, layer {layer}",
            {"papers": theirs, "pairlens": ours, "ratio": theirs / ours, "steps": steps, "nodes": e.settings["nodes"]},
        )


def share(lens: Lens) -> None:
    """(b) The rate of tail passes, and of matrix products of the same shapes."""
    encoder: Any = lens.encoder
    for layer, nodes in ((5, 6), (0, 6)):
        states = encoder.states([encoder.read(A)], layer, "padding", "unit")
        tail, rows = encoder.tail(states), torch.zeros(nodes, dtype=torch.long)
        tokens = states.x.shape[1]
        groups = Groups.of(torch.arange(tokens)[None], tokens, torch.float32).of_rows(rows)
        points, direction = states.r[rows], (states.x - states.r)[rows]
        with differentiable():
            operations = cost.count(lambda t=tail, g=groups, p=points, d=direction, r=rows: t.derivatives(p, d, r, g))[
                1
            ]
            best, peak = 0.0, 0.0
            for _ in range(5):  # alternating, because the load of the machine may change
                elapsed = seconds(lambda t=tail, g=groups, p=points, d=direction, r=rows: t.derivatives(p, d, r, g), 4)
                best, peak = (
                    max(best, operations / elapsed / 1e9),
                    max(peak, rate_of_products(nodes * (tokens + 1) * tokens)),
                )
        note("speed", f"share, layer {layer}", {"gflops": best, "products": peak, "share": best / peak})


def planning(lens: Lens, data: str | None) -> None:
    """The time of planning nodes, as a share of the tail passes at these nodes."""
    integrate = importlib.import_module("pairlens.quadrature.integrate")  # The room's door has a function of that name.
    spent = {"values": 0.0, "sums": 0.0}
    plain = {name: getattr(integrate, name) for name in spent}

    def watch(name: str) -> Callable[..., Any]:
        def run(*args: Any) -> Any:
            start = time.perf_counter()
            try:
                return plain[name](*args)
            finally:
                spent[name] += time.perf_counter() - start

        return run

    def shortest(text: str, layer: int, times: int) -> dict[str, float]:
        runs = []
        for _ in range(times):
            spent.update(dict.fromkeys(spent, 0.0))
            list(lens.decompose([text], layer=layer, progress=False, level="token"))
            runs.append(dict(spent))
        return {name: min(run[name] for run in runs) for name in spent}

    def measure(case: str, texts: list[str], layer: int, times: int) -> None:
        list(lens.decompose(texts[:2], layer=layer, progress=False, level="token"))  # warm-up
        timings = [shortest(text, layer, times) for text in texts]
        values, sums = (sum(timing[name] for timing in timings) for name in ("values", "sums"))
        note("speed", f"planning, layer {layer}{case}", {"share": values / sums})

    try:
        for name in spent:
            setattr(integrate, name, watch(name))
        for layer in (5, 1, 0):
            measure("", [A, B], layer, 5)
        if data is not None:
            some = np.random.default_rng(0).permutation(sentences(data))[:40]
            for layer in (1, 0):
                measure(", sentences", [str(text) for text in some], layer, 2)
    finally:
        for name, function in plain.items():
            setattr(integrate, name, function)


def sentences(data: str) -> list[str]:
    """The distinct cells of a CSV file's first two columns."""
    rows = csv.reader(Path(data).read_text(encoding="utf-8").splitlines())
    return list(dict.fromkeys(cell for row in rows for cell in row[:2]))


def exponent(sizes: list[float], times: list[float]) -> float:
    """The slope of time against size, both in logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(times), 1)[0])


def growth(lens: Lens) -> None:
    """(c) Growth of the time with tokens, layers and tol."""
    tokens, times = [], []
    for count in (6, 12, 24, 48):
        text = " ".join((WORDS * 3)[:count])
        tokens.append(float(count + 2))
        times.append(
            seconds(
                lambda t=text: list(lens.decompose([t], layer=5, rule=GaussLegendre(4), progress=False, level="token")),
                2,
            )
        )
    note("speed", "growth with tokens", {"sizes": tokens, "seconds": times, "exponent": exponent(tokens, times)})
    layers = list(range(5, -1, -1))
    times = [seconds(lambda n=n: lens.explain(A, B, layer=n, rule=GaussLegendre(4), level="token"), 2) for n in layers]
    behind = [float(lens.layers - n) for n in layers]
    note("speed", "growth with layers", {"sizes": behind, "seconds": times, "exponent": exponent(behind, times)})
    tols = [1e-1, 1e-2, 1e-3, 1e-4]
    nodes = [lens.explain(A, B, layer=3, tol=tol, level="token").settings["nodes"] for tol in tols]
    note("speed", "growth with tol", {"tols": tols, "nodes": [float(np.mean(pair)) for pair in nodes]})


def pairs(lens: Lens, data: str | None, count: int) -> None:
    """(c) `explain_many` over all pairs of more and more texts, and its parts.

    The parts are decomposing the texts, explaining pairs of decomposed texts, and a lower bound for the pairs: the bare
    products of their values in a loop.
    """
    if data is None:
        texts = [" ".join([*WORDS[i % 7 : i % 7 + 8 + i % 5], str(i)]) for i in range(count)]
    else:
        texts = sentences(data)[:count]
    names = ("texts", "pairs", "explain", "decompose", "known", "products")
    result: dict[str, list[float]] = {name: [] for name in names}
    list(lens.decompose(texts[:1], layer=5, progress=False, level="token"))  # warm-up
    options = lens.resolve(layer=5)
    for n in (n for n in (10, 30, 100, 300, 1000) if n <= count):
        every = list(itertools.combinations(texts[:n], 2))
        start = time.perf_counter()
        total = sum(float(e.matrix[0, 0]) for e in lens.explain_many(every, layer=5, progress=False, level="token"))
        explained = time.perf_counter()
        decomposer = Decomposer(lens.encoder, options.method, options.rule, options.space)
        jobs = [Job.of(text, None, "token") for text in texts[:n]]
        contributions = decomposer.decompose(jobs)
        decomposed = time.perf_counter()
        known = stream_explanations(decomposer, every, (None, None), options, 256, progress=False)
        again = sum(float(e.matrix[0, 0]) for e in known)
        compared = time.perf_counter()
        for a, b in itertools.combinations([contributions[job] for job in jobs], 2):
            _ = a.values.dot(b.values.T)
        end = time.perf_counter()
        assert abs(total - again) < 1e-6 * len(every), (total, again)
        times = itertools.pairwise((start, explained, decomposed, compared, end))
        numbers = (n, len(every), *(until - since for since, until in times))
        for values, value in zip(result.values(), numbers, strict=True):
            values.append(float(value))
        print(n, {name: round(values[-1], 3) for name, values in result.items()}, flush=True)
    note("speed", "growth with pairs", result)


def alternatives(lens: Lens) -> None:
    """(e) Captum for every embedding dimension, and sampled Shapley values of equal agreement, at layer 0."""
    from captum.attr import IntegratedGradients
    from scipy.stats import spearmanr

    encoder: Any = lens.encoder
    ours = seconds(lambda: lens.explain(A, B, layer=0, level="token"), 2)
    total = 0.0
    for text in (A, B):
        states = encoder.states([encoder.read(text)], 0, "padding", "unit")
        tail = encoder.tail(states)

        def embed(states: torch.Tensor, tail: Any = tail) -> torch.Tensor:
            with torch.enable_grad(), torch.nn.attention.sdpa_kernel(torch.nn.attention.SDPBackend.MATH):
                return tail(states, torch.zeros(len(states), dtype=torch.long))

        captum = IntegratedGradients(embed)
        start = time.perf_counter()
        for target in range(2):
            captum.attribute(states.x, states.r, target=target, n_steps=32)  # Gauss-Legendre, Captum's own default rule
        total += (time.perf_counter() - start) / 2 * encoder.arrived(states.pending)[1].shape[1]
    note("speed", "captum, layer 0", {"captum": total, "pairlens": ours, "ratio": total / ours, "steps": 32})
    truth = lens.explain(A, B, method=Shapley(passes=4000), level="token").matrix
    inside = np.ix_(
        *[
            [u.kind == "text" for u in units]
            for units in (lens.explain(A, B, level="token").units_a, lens.explain(A, B, level="token").units_b)
        ]
    )

    def agreement(matrix: np.ndarray) -> float:
        return float(np.asarray(spearmanr(matrix[inside].ravel(), truth[inside].ravel()))[0])

    for method in ("integrated-jacobian", "fade"):
        ours = seconds(lambda m=method: lens.explain(A, B, method=m, level="token"), 1)
        reached = agreement(lens.explain(A, B, method=method, level="token").matrix)
        passes = 8
        while (
            agreement(lens.explain(A, B, method=Shapley(passes=passes, seed=1), level="token").matrix) < reached
            and passes < 2000
        ):
            passes = int(passes * 1.5)
        sampled = seconds(lambda p=passes: lens.explain(A, B, method=Shapley(passes=p, seed=1), level="token"), 1)
        note(
            "speed",
            f"shapley, {method}",
            {"agreement": reached, "passes": passes, "shapley": sampled, "pairlens": ours, "ratio": sampled / ours},
        )


def main() -> None:
    """Run the parts that were asked for."""
    parts = ("versus", "share", "planning", "growth", "pairs", "alternatives")
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="*", default=parts, choices=parts)
    parser.add_argument(
        "--data", help="a CSV file with sentences in its first two columns, for the pairs and the planning"
    )
    parser.add_argument("--texts", type=int, default=100, help="how many texts to compare each with each")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from sentence_transformers import SentenceTransformer

    from pairlens.model.bundled import offline_model

    model = SentenceTransformer(str(offline_model()), device="cpu").eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    lens = Lens(model)
    runs: dict[str, Callable[[], None]] = {
        "versus": lambda: versus(model, lens),
        "share": lambda: share(lens),
        "planning": lambda: planning(lens, options.data),
        "growth": lambda: growth(lens),
        "pairs": lambda: pairs(lens, options.data, options.texts),
        "alternatives": lambda: alternatives(lens),
    }
    for part in options.parts:
        runs[part]()


if __name__ == "__main__":
    main()
