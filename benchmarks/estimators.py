"""How right estimates are at equal forward passes, each against its own exact target: ours, shapiq's, plain regression.

The score of a text with units deleted against another text is the game. "sentences" are pairs of the STS benchmark, of
which the words of one text are the players; "passages" are abstracts of SciFact, whose sentences are, against a claim.
All subsets are tried once, for the exact values. An estimate's error is the squared distance from them, over their
squared length, as a mean over texts and seeds.

    pip install shapiq
    python benchmarks/estimators.py --data stsb-en-train.csv [--texts 6] [--seeds 5]
"""

from __future__ import annotations

import argparse
import importlib
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
from _results import note
from passages import pairs_of

from pairlens import Banzhaf, Lens, Shapley
from pairlens.cli.study.papers import sample_pairs
from pairlens.io import PairTable
from pairlens.methods.banzhaf import KEEP
from pairlens.subsets import banzhaf, shapley
from pairlens.subsets.fit import deletion_weights
from pairlens.subsets.sampling import every_subset
from pairlens.text import group, sentences, words

PASSES = 32, 48, 96
RIVALS = (
    "PermutationSamplingSV",
    "StratifiedSamplingSV",
    "OwenSamplingSV",
    "KernelSHAP",
    "UnbiasedKernelSHAP",
    "SVARM",
)


class Game:
    """The embeddings of all subsets of a text's units, and the embedding of the other text.

    Args:
        lens: the model.
        text: the text whose units are the players.
        other: the other text.
        level: "word" or "sentence".
    """

    def __init__(self, lens: Lens, text: str, other: str, level: str) -> None:
        encoder = lens.encoder
        read = [encoder.read(one) for one in (text, other)]
        space = encoder.space(None, "unit")
        labels = group(text, read[0].units, level, finest=True)[1]
        deletions = encoder.deletions(read[:1], [labels], space)
        self.players = len(deletions.players[0])
        self.subsets = every_subset(self.players)
        self.embeddings = deletions.embeddings([self.subsets])[0]
        self.other = encoder.deletions(read[1:], [[0] * len(read[1].units)], space).embeddings([np.ones((1, 1), bool)])[
            0
        ][0]
        self._places = 2 ** np.arange(self.players)

    def embed(self, subsets: np.ndarray) -> np.ndarray:
        """The embeddings of some subsets, (subsets, dim)."""
        return self.embeddings[np.atleast_2d(subsets).astype(bool) @ self._places]

    def score(self, subsets: np.ndarray) -> np.ndarray:
        """The scores of some subsets, (subsets,)."""
        return self.embed(subsets) @ self.other


def ours(game: Game, method: Shapley | Banzhaf, passes: int, seed: int) -> np.ndarray:
    """The estimate of one of our methods, projected on the other text."""
    sampler = method.sampler(game.players, np.random.default_rng(seed))
    sampler.grow(passes)
    return method.fit(sampler.tried, game.embed(sampler.tried)).values @ game.other


def regression(game: Game, passes: int, seed: int) -> np.ndarray:
    """Plain least squares through the whole text, on the deletions that the default tries."""
    sampler = Banzhaf().sampler(game.players, np.random.default_rng(seed))
    sampler.grow(passes)
    lost = (~sampler.tried).astype(float)
    weights = deletion_weights(sampler.tried, KEEP)[:, None] ** 0.5
    losses = game.score(np.ones((1, game.players))) - game.score(sampler.tried)
    return np.linalg.lstsq(weights * lost, weights[:, 0] * losses, rcond=None)[0]


def rival(game: Game, name: str, passes: int, seed: int) -> np.ndarray:
    """The estimate of one of shapiq's estimators of Shapley values."""
    approximator = getattr(importlib.import_module("shapiq.approximator"), name)(n=game.players, random_state=seed)
    return approximator.approximate(budget=passes, game=game.score).get_n_order_values(1)


def estimates(passes: int) -> Iterator[tuple[str, str, Callable[[Game, int], np.ndarray]]]:
    """The target, the name and the function of every estimate."""
    yield "Banzhaf", "the default", lambda game, seed: ours(game, Banzhaf(), passes, seed)
    yield "Banzhaf", "plain regression", lambda game, seed: regression(game, passes, seed)
    yield "Shapley", "Shapley()", lambda game, seed: ours(game, Shapley(), passes, seed)
    for name in RIVALS:
        yield "Shapley", f"shapiq {name}", lambda game, seed, name=name: rival(game, name, passes, seed)


def games(lens: Lens, kind: str, data: Path, count: int) -> Iterator[Game]:
    """The games of one kind: texts of 10 to 12 words, or abstracts of 7 to 10 sentences."""
    found = 0
    if kind == "sentences":
        pairs = [(row.a, row.b) for row in sample_pairs(PairTable(data), 400, 0)]
        level, fits = "word", (lambda text: 10 <= len(words(text)) <= 11)
    else:
        pairs = [(text, claim) for claim, text in pairs_of(lens, 20)]
        level, fits = "sentence", (lambda text: 7 <= len(sentences(text)) <= 10)
    for text, other in pairs:
        if fits(text) and found < count:
            found += 1
            yield Game(lens, text, other, level)


def main() -> None:
    """Print the error of every estimate, by kind of text and passes."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", type=Path, required=True, help="a table of pairs")
    parser.add_argument("--texts", type=int, default=6)
    parser.add_argument("--seeds", type=int, default=5)
    given = parser.parse_args()
    warnings.simplefilter("ignore")
    lens = Lens()
    for kind in ("sentences", "passages"):
        played = list(games(lens, kind, given.data, given.texts))
        exact = {
            "Shapley": [shapley(game.subsets, game.embeddings).values @ game.other for game in played],
            "Banzhaf": [banzhaf(game.subsets, game.embeddings, KEEP).values @ game.other for game in played],
        }
        for passes in PASSES:
            errors: dict[str, float] = {}
            for target, name, estimate in estimates(passes):
                errors[name] = float(
                    np.mean(
                        [
                            ((estimate(game, seed) - true) ** 2).sum() / (true**2).sum()
                            for game, true in zip(played, exact[target], strict=True)
                            for seed in range(given.seeds)
                        ]
                    )
                )
            note("estimators", f"{kind}, {passes} passes", {"texts": len(played), **errors})


if __name__ == "__main__":
    main()
