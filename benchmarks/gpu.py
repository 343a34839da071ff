"""What a CUDA device makes of integrated-jacobian: one pair, a batch, and how far both are from the device's limit.

Three parts, all in one run: single pairs with all-MiniLM-L6-v2, with and without captured graphs; a batch through a
model of 12 layers x 768 with random weights, in each precision, beside the rate of matrix products of the same
shapes; and the papers' algorithm with 50 steps for the same model. Results go to benchmarks/results/gpu.json.
"""

from __future__ import annotations

import argparse
import csv
import json
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F  # noqa: N812
from torch.utils.flop_counter import FlopCounterMode

from pairlens import Adaptive, GaussLegendre, Lens
from pairlens.autodiff import Groups, differentiable
from pairlens.model import Encoder

A = "A man is playing a guitar on the stage and a woman sings."
B = "The woman sings while a man plays the guitar near a stage."
C = "The woman sings loudly while a man plays the guitar near a stage."
NODES, TOKENS, LAYER = 16, 16, 6


def milliseconds(run: Callable[[], object], times: int = 20, warm: int = 4) -> float:
    """The median of several timings, the device waited for."""
    for _ in range(warm):
        run()
    found = []
    for _ in range(times):
        torch.cuda.synchronize()
        start = time.perf_counter()
        run()
        torch.cuda.synchronize()
        found.append((time.perf_counter() - start) * 1e3)
    return statistics.median(found)


def apart(run: Callable[[], object], encoder: Any, times: int, warm: int) -> tuple[float, float]:
    """The median of several timings without the tokenisation in each of them, and the median of that."""
    plain, spent, found = encoder.read, [0.0], []

    def read(*args: Any) -> Any:
        start = time.perf_counter()
        try:
            return plain(*args)
        finally:
            spent[0] += (time.perf_counter() - start) * 1e3

    encoder.read = read
    try:
        for _ in range(warm + times):
            torch.cuda.synchronize()
            spent[0], start = 0.0, time.perf_counter()
            run()
            torch.cuda.synchronize()
            whole = (time.perf_counter() - start) * 1e3
            found.append((whole - spent[0], spent[0]))
    finally:
        del encoder.read
    net, reading = zip(*found[warm:], strict=True)
    return statistics.median(net), statistics.median(reading)


def product_rate(rows: int, width: int, inner: int, dtype: torch.dtype, tf32: bool) -> dict[str, float]:
    """TFLOP/s of a layer's matrix products, each shape by itself and all together."""
    torch.backends.cuda.matmul.fp32_precision = "tf32" if tf32 else "ieee"
    seconds, work, rates = 0.0, 0.0, {}
    for name, k, n, times in (("width-width", width, width, 4), ("in", width, inner, 1), ("out", inner, width, 1)):
        x, w = (torch.randn(a, k, device="cuda", dtype=dtype) for a in (rows, n))
        own = milliseconds(lambda x=x, w=w: [F.linear(x, w) for _ in range(10)], times=5) / 1e4
        rates[name] = 2 * rows * k * n / own / 1e12
        seconds, work = seconds + times * own, work + times * 2 * rows * k * n
    torch.backends.cuda.matmul.fp32_precision = "ieee"
    return {**rates, "layer": work / seconds / 1e12}


def single_pair(model: Any) -> list[dict[str, Any]]:
    """Pairs, texts to matrix, tokenisation aside."""
    found = []
    for precision in ("highest", "high"):
        lens = Lens(model, device="cuda", precision=precision)
        for layer, other in ((5, B), (5, C), (0, B), (0, C)):
            found += [_pair(lens, other, layer, precision)]
            print(found[-1], flush=True)
    return found


def _pair(lens: Lens, other: str, layer: int, precision: str) -> dict[str, Any]:
    encoder: Any = lens.encoder
    encoder._graphs.enabled = False
    plain = lens.explain(A, other, layer=layer, level="token")
    without, _ = apart(lambda: lens.explain(A, other, layer=layer, level="token"), encoder, 5, 1)
    encoder._graphs.enabled = True
    with_graphs, read = apart(lambda: lens.explain(A, other, layer=layer, level="token"), encoder, 40, 6)
    again = [lens.explain(A, other, layer=layer, level="token") for _ in range(20)]
    e = again[-1]
    kept = encoder._graphs._kept.values()
    return {
        "precision": precision,
        "layer": layer,
        "tokens": [len(e.tokens_a), len(e.tokens_b)],
        "ms": with_graphs,
        "ms_without_graphs": without,
        "tokenising_ms": read,
        "nodes": e.settings["nodes"],
        "gap": max(e.gap_a, e.gap_b),
        "off": max(float(abs(own.matrix - plain.matrix).max()) for own in again) / float(abs(plain.matrix).max()),
        "captured": sum(type(graph).__name__ == "_Captured" for graph in kept),
        "refused": sum(graph is False for graph in kept),
        "score": e.score,
    }


def large_model(folder: str) -> Any:
    """12 layers x 768 with random weights and the small model's tokenizer."""
    from sentence_transformers import SentenceTransformer
    from transformers import AutoTokenizer, BertConfig, BertModel

    torch.manual_seed(0)
    tokenizer = AutoTokenizer.from_pretrained(folder)
    with tempfile.TemporaryDirectory() as own:
        BertModel(BertConfig(vocab_size=len(tokenizer), initializer_range=0.05)).save_pretrained(own)
        tokenizer.save_pretrained(own)
        return SentenceTransformer(own, device="cuda").eval()


def texts_of(encoder: Encoder, path: str, count: int) -> list[Any]:
    """Texts of exactly so many tokens."""
    rows = csv.reader(Path(path).read_text(encoding="utf-8").splitlines())
    texts = dict.fromkeys(cell for row in rows for cell in row[:2])
    return [text for text in map(encoder.read, texts) if len(text.tokens) == TOKENS][:count]


def batch(model: Any, data: str, count: int) -> list[dict[str, Any]]:
    """A batch of texts through the tail behind the middle layer: passes alone, and texts to contributions."""
    found: list[dict[str, Any]] = []
    truth = None
    for precision in ("highest", "high", "bf16"):
        encoder = Encoder(model, device="cuda", matmul=precision)
        lens = Lens(model, device="cuda", precision=precision)
        texts = texts_of(encoder, data, count)
        assert encoder.takes_duals()
        states = encoder.states(texts, LAYER, "padding", "unit")
        tail = encoder.tail(states)
        rows = torch.arange(len(texts), device="cuda").repeat_interleave(NODES)
        alphas = torch.linspace(0.05, 0.95, NODES, device="cuda").repeat(len(texts))[:, None, None]
        points, direction = torch.lerp(states.r[rows], states.x[rows], alphas), (states.x - states.r)[rows]
        labels = torch.arange(TOKENS, device="cuda").expand(len(rows), -1)
        groups = Groups.of(labels, TOKENS, torch.float32)
        with differentiable():
            with FlopCounterMode(display=False) as counter:
                tail.derivatives(points, direction, rows, groups)
            value = tail.derivatives(points, direction, rows, groups)
            passes = milliseconds(
                lambda t=tail, g=groups, d=direction, p=points, r=rows: t.derivatives(p, d, r, g), 5, 2
            )
        truth = value if truth is None else truth
        rate = counter.get_total_flops() / passes / 1e9
        kind = torch.bfloat16 if precision == "bf16" else torch.float32
        peak = product_rate(NODES * count * (TOKENS + 1) * TOKENS, 768, 3072, kind, precision != "highest")
        strings = [text.text for text in texts]

        tol = {"highest": 1e-3, "high": 2e-3, "bf16": 2e-2}[precision]

        def whole(rule: Any = None, lens: Lens = lens, strings: list[str] = strings, tol: float = tol) -> list[Any]:
            rule = Adaptive(tol) if rule is None else rule
            return list(lens.decompose(strings, layer=LAYER, rule=rule, progress=False, level="token"))

        fixed = milliseconds(lambda: whole(GaussLegendre(NODES)), 5, 3) / len(texts)
        try:
            done = whole()
            adaptive: dict[str, Any] = {
                "adaptive_tol": tol,
                "adaptive_ms": milliseconds(whole, 5, 3) / len(texts),
                "adaptive_nodes": statistics.mean(c.settings["nodes"] for c in done),
                "adaptive_gap": max(c.gap for c in done),
            }
        except Exception as error:  # noqa: BLE001
            adaptive = {"adaptive_error": str(error)}
        gaps = [c.gap for c in whole(GaussLegendre(NODES))]
        found.append(
            {
                "precision": precision,
                "texts": len(texts),
                "passes_ms": passes / len(texts),
                "text_ms": fixed,
                "tflops": rate,
                "peak": peak,
                "share": rate / peak["layer"],
                "gap": max(gaps),
                "off": float((value - truth).norm() / truth.norm()),
                **adaptive,
            }
        )
        print(found[-1], flush=True)
    return found


def profile_batch(model: Any, data: str, count: int, precision: str = "high") -> str:
    """Where the time of a batch goes, on the device and on the host."""
    import cProfile
    import io
    import pstats

    from torch.profiler import ProfilerActivity, profile

    lens = Lens(model, device="cuda", precision=precision)
    strings = [text.text for text in texts_of(lens.encoder, data, count)]  # pyright: ignore[reportArgumentType]

    def run() -> None:
        list(lens.decompose(strings, layer=LAYER, tol=2e-3, progress=False, level="token"))

    for _ in range(3):
        run()
    with profile(activities=[ProfilerActivity.CUDA]) as seen:
        run()
        torch.cuda.synchronize()
    written = io.StringIO()
    written.write(seen.key_averages().table(sort_by="self_device_time_total", row_limit=22, max_name_column_width=60))
    host = cProfile.Profile()
    host.enable()
    for _ in range(5):
        run()
    host.disable()
    pstats.Stats(host, stream=written).sort_stats("tottime").print_stats(30)
    return written.getvalue()


def profile_single(model: Any) -> str:
    """Where the time of a single pair goes, on the host and on the device."""
    import cProfile
    import io
    import pstats

    from torch.profiler import ProfilerActivity, profile

    written = io.StringIO()
    lens = Lens(model, device="cuda", precision="high")
    for layer in (5, 0):
        for _ in range(5):
            lens.explain(A, B, layer=layer, level="token")
        with profile(activities=[ProfilerActivity.CUDA]) as seen:
            lens.explain(A, B, layer=layer, level="token")
            torch.cuda.synchronize()
        events = seen.key_averages()
        busy, count = sum(event.self_device_time_total for event in events), sum(event.count for event in events)
        written.write(f"layer {layer}: the device is busy for {busy / 1e3:.2f} ms in {count} kernels\n")
        written.write(events.table(sort_by="self_device_time_total", row_limit=12, max_name_column_width=60))
    host = cProfile.Profile()
    host.enable()
    for _ in range(50):
        lens.explain(A, B, layer=5, level="token")
    host.disable()
    pstats.Stats(host, stream=written).sort_stats("tottime").print_stats(40)
    return written.getvalue()


def papers(model: Any, text: str, steps: int = 50, dims: int = 24) -> float:
    """Milliseconds of the papers' algorithm for one text: one backward pass a dimension, some timed, scaled to all."""
    tokenizer, transformer = model.tokenizer, model[0].auto_model
    batch = {key: value.cuda() for key, value in tokenizer(text, return_tensors="pt").items()}
    reference = batch["input_ids"].clone()
    reference[:, 1:-1] = tokenizer.pad_token_id
    kept: dict[str, torch.Tensor] = {}

    def interpolate(_: torch.nn.Module, args: tuple) -> tuple:
        x, r = args[0]
        alphas = torch.arange(steps, 0, -1, device="cuda")[:, None, None] / steps
        kept["points"] = (r + alphas * (x - r)).detach().requires_grad_()
        return kept["points"], *args[1:]

    def run() -> None:
        handle = transformer.encoder.layer[LAYER].register_forward_pre_hook(interpolate)
        try:
            states = transformer(input_ids=torch.cat([batch["input_ids"], reference])).last_hidden_state
        finally:
            handle.remove()
        embedding = states.mean(1)
        for d in range(dims):
            torch.autograd.grad(list(embedding[:, d]), kept["points"], retain_graph=True)

    return milliseconds(run, 3, 1) * transformer.config.hidden_size / dims


def main() -> None:
    """Run everything and write the results down."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", required=True, help="folder of all-MiniLM-L6-v2")
    parser.add_argument("--data", required=True, help="a CSV file with sentences in its first two columns")
    parser.add_argument("--texts", type=int, default=128)
    parser.add_argument("--out", default="benchmarks/results/gpu.json")
    parser.add_argument("--profile", action="store_true")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    import transformers

    results: dict[str, Any] = {
        "device": torch.cuda.get_device_name(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }
    large = large_model(options.model)
    for name, run in (
        ("single", lambda: single_pair(options.model)),
        ("batch", lambda: batch(large, options.data, options.texts)),
        ("papers_ms", lambda: papers(large, A)),
    ):
        try:
            results[name] = run()
        except Exception as error:  # noqa: BLE001
            import traceback

            traceback.print_exc()
            results[name] = repr(error)
        Path(options.out).parent.mkdir(parents=True, exist_ok=True)
        Path(options.out).write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")
    if options.profile:
        print(profile_single(options.model))
        print(profile_batch(large, options.data, options.texts))
    print(json.dumps(results.get("papers_ms")))


if __name__ == "__main__":
    main()
