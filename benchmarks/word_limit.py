"""How well any explanation with one row per word can predict deletions, beside how well the default does.

The best model of the form base + effects + pairs that gives the score of the whole texts is fitted to a pair's own
scores by least squares, at any number of passes, and tested on other deletions. R² at keep 0.75 and at keep 0.9 pull it
in different directions: more weight for deletions that keep 0.9 raises the second and lowers the first. A target for
both can be reached by single words only if some row of the table reaches both.

    python benchmarks/word_limit.py --data stsb-en-dev.csv [--limit 200] [--shortest 1] [--longest 10] [--passes N]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np
from _results import note

from pairlens import Lens
from pairlens.cli.study.papers import sample_pairs
from pairlens.io import PairTable
from pairlens.methods.banzhaf import Banzhaf
from pairlens.model import Encoder
from pairlens.study.faithfulness.deletable_text import DeletableText
from pairlens.study.faithfulness.random_deletions import r2
from pairlens.study.faithfulness.score_model import ScoreModel

KEEPS = 0.75, 0.9
WEIGHTS = 0.5, 1, 2, 3, 4, 8
"""Weights of deletions that keep 0.9, relative to those that keep 0.75."""
SUBSETS = 1500
"""Random subsets of each text, for each of `KEEPS`, to fit to; half as many others to test on."""
PAIRINGS = 6
"""How often each subset of one text is paired with one of the other."""


class Pair:
    """A pair of texts with random deletions of both.

    Args:
        lens: the model.
        a: one text.
        b: the other.
    """

    def __init__(self, lens: Lens, a: str, b: str) -> None:
        encoder = lens.encoder
        assert isinstance(encoder, Encoder), "the model must be able to delete tokens"
        self.texts = [DeletableText(encoder, encoder.read(text), "cosine", "word") for text in (a, b)]
        self.counts = [text.count for text in self.texts]

    def draw(self, keep: float, subsets: int, random: np.random.Generator) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Random deletions: the units left of a and of b, (draws, count), and the scores of what is left, (draws,)."""
        left, embeddings = [], []
        for text in self.texts:
            pool = random.random((subsets, text.count)) < keep
            chosen = random.integers(subsets, size=subsets * PAIRINGS)
            vectors = text.embed(pool).astype(float)
            left.append(pool[chosen])
            embeddings.append((vectors / np.linalg.norm(vectors, axis=1, keepdims=True))[chosen])
        return left[0], left[1], (embeddings[0] * embeddings[1]).sum(1)

    def score(self) -> float:
        """The score of the whole texts."""
        one, other = (text.whole() for text in self.texts)
        return float(one @ other / np.linalg.norm(one) / np.linalg.norm(other))


def features(left_a: np.ndarray, left_b: np.ndarray) -> np.ndarray:
    """What is deleted: each unit, and each unit of a with each of b; all zero for the whole texts."""
    one, other = (~left_a).astype(float), (~left_b).astype(float)
    both = (one[:, :, None] * other[:, None, :]).reshape(len(one), -1)
    return np.concatenate([one, other, both], axis=1)


def limits(pair: Pair, random: np.random.Generator) -> dict[float, list[float | None]]:
    """For each of `WEIGHTS`, R² at each of `KEEPS` of the best model of this pair."""
    whole = pair.score()
    fitted = [pair.draw(keep, SUBSETS, random) for keep in KEEPS]
    tested = [pair.draw(keep, SUBSETS // 2, random) for keep in KEEPS]
    designs = [features(*drawn[:2]) for drawn in fitted]
    grams = [design.T @ design for design in designs]
    moments = [design.T @ (drawn[2] - whole) for design, drawn in zip(designs, fitted, strict=True)]
    reached = {}
    for weight in WEIGHTS:
        gram, moment = grams[0] + weight * grams[1], moments[0] + weight * moments[1]
        model = np.linalg.solve(gram + 1e-6 * np.eye(len(gram)), moment)
        reached[weight] = [r2(drawn[2], whole + features(*drawn[:2]) @ model) for drawn in tested]
    return reached


def default(lens: Lens, pair: Pair, passes: int | None, random: np.random.Generator) -> list[float | None]:
    """R² at each of `KEEPS` of the default explanation."""
    a, b = pair.texts
    e = lens.explain(a.text.text, b.text.text, method=Banzhaf(passes=passes), level="word")
    model = ScoreModel(e, a, b)
    tested = [pair.draw(keep, SUBSETS // 2, random) for keep in KEEPS]
    return [r2(scores, model.predict(left_a, left_b)) for left_a, left_b, scores in tested]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a table of pairs")
    parser.add_argument("--limit", type=int, default=200, help="pairs drawn from the table, as the judge draws them")
    parser.add_argument("--shortest", type=int, default=1, help="the fewest words of a text")
    parser.add_argument("--longest", type=int, default=10, help="the most words of a text")
    parser.add_argument("--passes", type=int, help="passes per text of the default explanation")
    parser.add_argument("--model", help="a folder; by default the bundled model")
    given = parser.parse_args()
    lens = Lens(given.model) if given.model else Lens()
    pairs = [Pair(lens, row.a, row.b) for row in sample_pairs(PairTable(given.data), given.limit, 0)]
    pairs = [pair for pair in pairs if given.shortest <= min(pair.counts) and max(pair.counts) <= given.longest]
    best, reached = [], []
    for i, pair in enumerate(pairs):
        random = np.random.default_rng(i)
        best.append(limits(pair, random))
        reached.append(default(lens, pair, given.passes, random))
    case = f"{given.shortest} to {given.longest} words, {given.passes or 'default'} passes"
    rows = {"the default": np.mean(reached, axis=0)}
    rows |= {f"limit, weight {weight:g}": np.mean([one[weight] for one in best], axis=0) for weight in WEIGHTS}
    for name, (at_75, at_90) in rows.items():
        note("word_limit", f"{case}: {name}", {"pairs": len(pairs), "r2_75": float(at_75), "r2_90": float(at_90)})


if __name__ == "__main__":
    main()
