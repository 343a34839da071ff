"""Whether the errors of long texts hold, and whether long texts are predicted as well as short ones.

Claims of SciFact against abstracts cut at about 15, 50, 100 and 200 words, each at the end of a sentence. The errors:
explanations with other seeds against one with many passes; "spread" is the error claimed over the standard deviation
over seeds, "off" the root mean square of the difference from the many passes in claimed errors, and "covered" the part
of the entries within 1.96 of them. The prediction: R² of fresh deletions of the claim's words together with the text's
sentences, or with the words inside the opened sentences, keeping 0.75 and 0.9.

    python benchmarks/passage_errors.py [--lengths 15 200] [--texts 4] [--seeds 30] [--model FOLDER] [--device cuda]
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from _results import note
from passages import pairs_of

from pairlens import Banzhaf, Explanation, Lens, Unit
from pairlens.model import FIXED
from pairlens.study.faithfulness.random_deletions import r2
from pairlens.text import sentences

LENGTHS = 15, 50, 100, 200
KEEPS = 0.75, 0.9
DRAWS = 300


def cut(text: str, length: int) -> str:
    """The first sentences of a text with at least this many words; for 15 words the sentence nearest to that."""
    ends = sentences(text)
    if length == LENGTHS[0]:
        start, end = min(ends, key=lambda span: abs(len(text[span[0] : span[1]].split()) - length))
        return text[start:end]
    return next((text[:end] for _, end in ends if len(text[:end].split()) >= length), text)


def errors(lens: Lens, claim: str, text: str, seeds: int, passes: int) -> dict[str, float]:
    """How the errors claimed compare with those made, over the entries of words and sentences."""
    runs = [lens.explain(claim, text, method=Banzhaf(seed=seed)) for seed in range(seeds)]
    truth = lens.explain(claim, text, method=Banzhaf(passes=passes, seed=seeds))
    assert all(run.units_b == truth.units_b for run in runs)
    units = (truth.units_a, truth.units_b)
    shown = np.ix_(*([i for i, unit in enumerate(side) if unit.kind != "special"] for side in units))
    entries, claimed = (np.array([getattr(run, name)[shown] for run in runs]) for name in ("matrix", "entry_error"))
    off = (entries - truth.matrix[shown]) / np.maximum(claimed, 1e-12)
    return {
        "spread": float(np.sqrt((claimed**2).mean() / entries.var(axis=0, ddof=1).mean())),
        "off": float(np.sqrt((off**2).mean())),
        "covered": float((np.abs(off) <= 1.96).mean()),
    }


def labels_of(lens: Lens, text: str, units: Sequence[Unit]) -> tuple[Any, list[int]]:
    """The text as the model reads it, and for every token the unit of an explanation that it belongs to."""
    read = lens.encoder.read(text)
    homes = [(i, unit) for i, unit in enumerate(units) if unit.kind == "text"]
    return read, [
        next((i for i, unit in homes if token.kind == "text" and unit.start <= token.start < unit.end), FIXED)
        for token in read.units
    ]


def prediction(lens: Lens, e: Explanation, groups: Sequence[Sequence[int]], keep: float) -> float:
    """R² of the explanation over random deletions of the words of a and of groups of units of b."""
    random = np.random.default_rng(0)
    gone: list[list[list[int]]] = []
    embeddings = []
    players = [[[i] for i, unit in enumerate(e.units_a) if unit.kind == "text"], groups]
    for text, units, parts in zip((e.text_a, e.text_b), (e.units_a, e.units_b), players, strict=True):
        read, labels = labels_of(lens, text, units)
        deletions = lens.encoder.deletions([read], [labels], lens.encoder.space(None, "unit"))
        lost = [[i for part in parts if random.random() > keep for i in part] for _ in range(DRAWS)]
        left = np.array([[player not in drawn for player in deletions.players[0]] for drawn in lost])
        gone.append(lost)
        embeddings.append(deletions.embeddings([left])[0])
    real = (embeddings[0] * embeddings[1]).sum(1)
    return r2(real, np.array([e.without(a, b) for a, b in zip(*gone, strict=True)])) or 0.0


def predictions(lens: Lens, claim: str, text: str) -> dict[str, float]:
    """R² for sentences, and for words inside those that are opened."""
    e = lens.explain(claim, text)
    units = [(i, unit) for i, unit in enumerate(e.units_b) if unit.kind == "text"]
    spans = sentences(text)
    groups = [[i for i, unit in units if start <= unit.start < end] for start, end in spans]
    opened = [[i] for group in groups if len(group) > 1 for i in group]
    ways = {"words": opened} if len(spans) == 1 else {"sentences": groups, "words": opened}
    return {f"r2_{name}_{keep}": prediction(lens, e, parts, keep) for name, parts in ways.items() for keep in KEEPS}


def main() -> None:
    """Print one line per length, with means over the texts."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--lengths", type=int, nargs="+", default=LENGTHS, help="words of the texts")
    parser.add_argument("--texts", type=int, default=4)
    parser.add_argument("--seeds", type=int, default=30)
    parser.add_argument("--passes", type=int, default=1000, help="of the explanation that others are compared with")
    parser.add_argument("--model", help="a folder; by default the bundled model")
    parser.add_argument("--device")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    lens = Lens(options.model, options.device)
    for length in options.lengths:
        rows = []
        for claim, text in pairs_of(lens, options.texts):
            shortened = cut(text, length)
            found = errors(lens, claim, shortened, options.seeds, options.passes)
            rows.append({"words": len(shortened.split()), **found, **predictions(lens, claim, shortened)})
        means = {key: float(np.mean([row[key] for row in rows])) for key in rows[0]}
        note("passage_errors", f"{length} words", {"texts": len(rows), **means})


if __name__ == "__main__":
    main()
