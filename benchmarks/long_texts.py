"""Two texts of 512 tokens, 25 and 11 sentences, with all-MiniLM-L6-v2: time and peak memory.

The default, which zooms: sentences, and the words of the strongest ones; and integrated Jacobians of the sentences from
layers 5 and 0. Results go to benchmarks/results/long_texts.json.
"""

from __future__ import annotations

import argparse
import itertools
import resource
import time
import warnings
from typing import Any

import torch
from _results import note, rate_of_products

from pairlens import Lens

CLAUSES = (
    "the committee met on a rainy afternoon",
    "nobody had read the report on the bridge",
    "the mayor asked for a second opinion",
    "two engineers explained the cost of steel",
    "the river had risen again in the spring",
    "a farmer complained about the noise of the road",
    "the old ferry still crosses at noon",
    "children play under the arches after school",
    "the bank refused to lend the money",
    "a newspaper printed the letters of the residents",
    "the council postponed its decision until winter",
    "traffic through the village has doubled",
    "an architect drew a lighter arch of wood",
)
TOKENS = 512


def text_of(lens: Lens, sentences: int, start: int) -> str:
    """A text with this many sentences that fills the model's 512 tokens without being cut."""
    clauses = itertools.islice(itertools.cycle(CLAUSES), start, None)
    encoder: Any = lens.encoder
    read = encoder.read
    parts: list[list[str]] = [[] for _ in range(sentences)]
    for place in itertools.cycle(range(sentences)):
        parts[place].append(next(clauses))
        text = " ".join(", and ".join(part).capitalize() + "." for part in parts if part)
        if len(read(text).tokens) > TOKENS - 12 and all(parts):
            return text
    raise AssertionError


def main() -> None:
    """Print one line per case."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--cases", nargs="*", default=["default", "5"], choices=["default", "5", "0"])
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    from sentence_transformers import SentenceTransformer

    from pairlens.model.bundled import offline_model

    model = SentenceTransformer(str(offline_model()), device="cpu")
    model.max_seq_length = TOKENS
    lens = Lens(model)
    a, b = text_of(lens, 25, 0), text_of(lens, 11, 5)
    for case in options.cases:
        start = time.perf_counter()
        e = lens.explain(a, b) if case == "default" else lens.explain(a, b, layer=int(case), level="sentence")
        seconds = time.perf_counter() - start
        note(
            "long_texts",
            case,
            {
                "seconds": seconds,
                "peak_gib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20,
                "tokens": [len(e.tokens_a), len(e.tokens_b)],
                "units": [sum(u.kind == "text" for u in us) for us in (e.units_a, e.units_b)],
                "nodes": e.settings["nodes"],
                "gap": max(e.gap_a, e.gap_b),
                "threads": torch.get_num_threads(),
                "gflops": rate_of_products(4096),
            },
        )


if __name__ == "__main__":
    main()
