"""Time of encoding 1,000 sentences with an adjusted model and with the plain one: the best of several alternating runs.

"cold" clears the cached references before every run, so that each length is computed once; "warm" keeps them. A table
as the argument (.csv, .tsv, .parquet, as for `pairlens batch`) replaces the generated sentences.
"""

from __future__ import annotations

import random
import sys
import time
from pathlib import Path

import torch

from pairlens.adjusted.wrapping import wrap
from pairlens.io.pairs import PairTable
from pairlens.model.loading import load

COUNT, TURNS = 1000, 5
WORDS = "the a coffee tea is not good bad man woman plays runs guitar music dog house red over with and in city".split()


def sentences() -> list[str]:
    """Texts of a table, or generated ones, most of 5 to 20 words."""
    if len(sys.argv) > 1:
        texts = [text for row in PairTable(Path(sys.argv[1])).rows() if not row.reason for text in (row.a, row.b)]
        return list(dict.fromkeys(texts))[:COUNT]
    draw = random.Random(0)
    return [" ".join(draw.choices(WORDS, k=max(3, round(draw.gauss(11, 5))))) for _ in range(COUNT)]


def seconds(model, texts: list[str]) -> float:
    """Seconds of encoding the texts."""
    start = time.perf_counter()
    model.encode(texts, show_progress_bar=False)
    return time.perf_counter() - start


def main() -> None:
    """Print the times and their ratios."""
    device = "cuda" if torch.cuda.is_available() else "cpu"
    plain, adjusted = load(None, device)[0], wrap(load(None, device)[0])
    texts = sentences()
    times: dict[str, list[float]] = {"plain": [], "cold": [], "warm": []}
    seconds(plain, texts[:64])
    for _ in range(TURNS):
        times["plain"].append(seconds(plain, texts))
        adjusted[0].train().eval()  # clears the cached references
        times["cold"].append(seconds(adjusted, texts))
        times["warm"].append(seconds(adjusted, texts))
    best = {name: min(seconds) for name, seconds in times.items()}
    lengths = len(adjusted[0].references)
    print(f"{len(texts)} sentences of {lengths} lengths on {device}: plain {best['plain']:.2f} s")
    for name in ("cold", "warm"):
        print(f"adjusted, {name}: {best[name]:.2f} s, {best[name] / best['plain']:.2f} times plain (goal: at most 1.1)")


if __name__ == "__main__":
    main()
