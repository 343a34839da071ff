"""Write what benchmarks measure to benchmarks/results, with the machine and the versions."""

from __future__ import annotations

import json
import os
import platform
import time
from pathlib import Path
from typing import Any

import torch

from pairlens.linalg import linear

FOLDER = Path(__file__).parent / "results"


def machine() -> dict[str, Any]:
    """The processor, its load and the versions that the numbers depend on."""
    import sentence_transformers
    import transformers

    cpu = platform.processor()
    if Path("/proc/cpuinfo").exists():
        lines = [line for line in Path("/proc/cpuinfo").read_text().splitlines() if line.startswith("model name")]
        cpu = lines[0].split(":")[1].strip() if lines else cpu
    return {
        "processor": cpu,
        "threads": torch.get_num_threads(),
        "load": os.getloadavg()[0],
        "python": platform.python_version(),
        "torch": torch.__version__,
        "transformers": transformers.__version__,
        "sentence-transformers": sentence_transformers.__version__,
        "date": time.strftime("%Y-%m-%d"),
    }


def note(name: str, case: str, result: dict[str, Any]) -> None:
    """Print one result, and keep it in benchmarks/results/<name>.json beside those of other cases."""
    print(
        case,
        ", ".join(
            f"{key} {value:.4g}" if isinstance(value, float) else f"{key} {value}" for key, value in result.items()
        ),
        flush=True,
    )
    path = FOLDER / f"{name}.json"
    FOLDER.mkdir(exist_ok=True)
    kept = json.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    kept["machine"] = machine()
    kept.setdefault("results", {})[case] = result
    path.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")


def load(name: str) -> dict[str, Any]:
    """The stored results of a benchmark."""
    return json.loads((FOLDER / f"{name}.json").read_text(encoding="utf-8"))


def rate_of_products(rows: int, width: int = 384, inner: int = 1536) -> float:
    """GFLOP/s of the matrix products of one transformer layer with this many rows, measured now."""
    seconds, work = 0.0, 0.0
    for k, n, times in ((width, width, 4), (width, inner, 1), (inner, width, 1)):
        x, w = torch.randn(rows, k), torch.randn(n, k)
        with torch.no_grad():
            linear(x, w)
            best = min(_seconds(lambda x=x, w=w: linear(x, w)) for _ in range(4))
        seconds, work = seconds + times * best, work + times * 2 * rows * k * n
    return work / seconds / 1e9


def _seconds(run: Any) -> float:
    start = time.perf_counter()
    run()
    return time.perf_counter() - start
