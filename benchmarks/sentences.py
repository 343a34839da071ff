"""Which decomposition of long texts into sentences? Several, compared with Banzhaf values from 400 forward passes.

    python benchmarks/sentences.py DATA --abstracts 12 --write

DATA as for corpus.py. For every abstract of at least four sentences and every one of eight claims: how well the
sentences' whole effects agree (Pearson's correlation), and whether the strongest sentence is the same.
"""

from __future__ import annotations

import argparse
import random
import time
import warnings
from pathlib import Path
from typing import Any

import numpy as np
from _scifact import default_data, read_abstracts, read_claims, write_down

from pairlens import Banzhaf, Explanation, Lens
from pairlens.attribution.contributions import Contributions
from pairlens.corpus.settings import IndexSettings
from pairlens.shapes import Array

QUERIES, LEAST, TRUTH = 8, 4, 400


CHOICES: dict[str, dict[str, Any]] = {
    "--method output": {"method": "output"},
    "--method occlusion": {"method": "occlusion"},
    "--passes 16": {"method": Banzhaf(passes=16)},
    "--passes 24": {"method": Banzhaf(passes=24)},
    "the default": {},
    "--passes 32": {"method": Banzhaf(passes=32)},
    "--passes 160": {"method": Banzhaf(passes=160)},
    "--layer 5": {"layer": 5},
}


def whole_effects(e: Explanation) -> Array:
    """What each unit of text b contributes in all."""
    return e.column + e.effects_b


def agreement(
    lens: Lens, queries: list[Contributions], found: list[Contributions], truth: list[Contributions]
) -> tuple[float, float]:
    """The mean correlation of the sentences' shares, and how often the strongest sentence is the same."""
    rows = []
    for own, true in zip(found, truth, strict=True):
        kept = [i for i, unit in enumerate(true.units) if unit.kind == "text"]
        for query in queries:
            a, b = (whole_effects(lens.compare(query, c))[kept] for c in (own, true))
            rows.append((np.corrcoef(a, b)[0, 1], np.argmax(a) == np.argmax(b)))
    shares, same = np.mean(rows, axis=0)
    return float(shares), float(same)


def main() -> None:
    """Print a line for every decomposition."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", nargs="?", type=Path, default=default_data())
    parser.add_argument("--abstracts", type=int, default=2)
    parser.add_argument("--write", action="store_true", help="write the figures to results/sentences.json")
    options = parser.parse_args()
    if not (options.data / "corpus_train.csv").is_file():
        print(f"no SciFact in {options.data}: give its folder")
        return
    warnings.simplefilter("ignore")
    lens = Lens()
    abstracts = read_abstracts(options.data)
    random.Random(1).shuffle(abstracts)
    texts = [abstract["text"] for abstract in abstracts[: 2 * options.abstracts]]
    count = [
        sum(unit.kind == "text" for unit in c.units) for c in lens.decompose(texts, level="sentence", method="output")
    ]
    texts = [text for text, units in zip(texts, count, strict=True) if units >= LEAST][: options.abstracts]
    truth = list(lens.decompose(texts, level="sentence", method=Banzhaf(passes=TRUTH), progress=False))
    queries = list(lens.decompose(list(read_claims(options.data))[:QUERIES], level="word", progress=False))
    figures: dict[str, Any] = {}
    for name, choice in CHOICES.items():
        start = time.process_time()
        found = list(lens.decompose(texts, progress=False, **IndexSettings.of(lens, **choice).options()))
        seconds = (time.process_time() - start) / len(texts)
        shares, same = agreement(lens, queries, found, truth)
        figures[name] = {"cpu_seconds": seconds, "agreement": shares, "same_strongest": same}
        print(
            f"{name:25} {seconds:6.2f} CPU seconds a text, agreement {shares:.2f}, same strongest {same:.0%}",
            flush=True,
        )
    if options.write:
        write_down("sentences", {"abstracts": len(texts), "queries": len(queries), "choices": figures})


if __name__ == "__main__":
    main()
