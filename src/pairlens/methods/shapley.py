"""Shapley values of real deletions, for every dimension of the embedding at once.

The value of unit s is what it adds to the embedding, averaged over all orders in which the units could be put back.
A text of n units has 2ⁿ subsets. Where those are too many, some are tried (coalitions.py) and the rest are predicted
(kriging.py). With `near` above 1, sets near the whole text count more than a word or two alone.
"""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from pairlens import progress
from pairlens.errors import InputError, NotConverged, whole
from pairlens.model.tokenize import Text
from pairlens.quadrature.integrate import Integral, spread
from pairlens.quadrature.rules import Rule
from pairlens.shapes import Array
from pairlens.subsets.kriging import exact, kriged
from pairlens.subsets.sampling import allot, draw

FEWEST, PER_UNIT, MOST = 160, 8, 400
"""Subsets tried by default: so many for each unit, within bounds. Half of the tokens are gone in the average subset, so
a text costs less than 250 forward passes, and a pair of sentences of 15 tokens half a second on two cores."""
NEAR, MOST_NEAR = 1.5, 1000
"""The default of a lens, and the most there is. With 1.5, what a unit does in all agrees better with leaving it out,
and what two units do with deleting both, than Shapley values do (docs/faithfulness.md)."""
MOST_PASSES = 8192
"""Where `error` asks for more, the method gives up: prediction takes a matrix of this size squared."""


@dataclass(frozen=True)
class Shapley:
    """Shapley values of deletions: complete, exact for short texts, else with standard errors.

    Attributes:
        permutations: spend the forward passes of so many permutations, that is n for each; excludes `passes`.
        seed: which subsets are tried.
        passes: forward passes a text, at least 4; by default 8 a unit, 160 to 400 in all. A text with fewer subsets
            than that is solved exactly.
        near: how much more it counts what deleting does to the whole text than to a few words of it. 1 gives Shapley
            values; 2 lets the chance of a set grow with its size; ever larger ones end at leaving one unit out.
        error: go on until no unit's standard error, relative to the norm of what is explained, is above this.
    """

    permutations: int | None = None
    seed: int = 0
    passes: int | None = None
    near: float = 1.0
    error: float | None = None
    name = "shapley"

    def __post_init__(self) -> None:
        if self.permutations is not None and self.passes is not None:
            raise InputError("permutations and passes say the same thing twice: give one of them.")
        for name, fewest in (("permutations", 1), ("passes", 4)):
            if getattr(self, name) is not None:
                whole(f"Shapley's {name}", getattr(self, name), fewest)
        whole("Shapley's seed", self.seed, 0)
        near, error = self.near, self.error
        if isinstance(near, bool) or not isinstance(near, int | float) or not 1 <= near <= MOST_NEAR:
            raise InputError(f"Shapley's near must lie between 1 and {MOST_NEAR}, for example 1.5; it is {near!r}.")
        if error is not None and (isinstance(error, bool) or not isinstance(error, int | float) or not 0 < error < 1):
            raise InputError(f"Shapley's error must lie between 0 and 1, for example 0.02; it is {error!r}.")

    def describe(self, encoder: Any, role: str | None) -> dict[str, Any]:
        """What of this method belongs into a result's settings."""
        asked = {"permutations": self.permutations, "passes": self.passes, "error": self.error}
        given = {name: value for name, value in asked.items() if value is not None}
        given |= {"near": self.near} if self.near != 1 else {}
        return {"layer": None, "reference": "empty", "rule": None, **given, "seed": self.seed}

    def decompose(
        self,
        encoder: Any,
        texts: Sequence[Text],
        labels: Sequence[Sequence[int]],
        counts: Sequence[int],
        *,
        space: str,
        rule: Rule,
    ) -> list[tuple[Integral, Array]]:
        """Contributions of groups of tokens, for texts of one role; `rule` is for integrals and not used here.

        Returns:
            One result a text, in the form of an integral, with the model's own output for it. `nodes` counts passes.
        """
        games = encoder.games(texts, labels, space)
        studies = [
            _Study(len(players), self.near, zlib.crc32(text.text.encode()) ^ self.seed * 2654435761 % 2**32)
            for text, players in zip(texts, games.players, strict=True)
        ]
        budgets = [self._budget(study.players) for study in studies]
        waiting = list(range(len(texts)))
        reached, until = 0.0, 0.9 if self.error is None else 0.5
        while waiting:
            fresh = [study.grow(budgets[i] if i in waiting else 0) for i, study in enumerate(studies)]
            with progress.share(reached, until):
                found = games.values(fresh)
            for study, coalitions, values in zip(studies, fresh, found, strict=True):
                study.learn(coalitions, values)
                progress.report(until)
            reached, until = until, (until + 0.9) / 2
            waiting = [i for i in waiting if not self._done(studies[i], texts[i].text)]
            budgets = [2 * budget for budget in budgets]
        with progress.share(0.9, 1):
            outputs = encoder.outputs(texts)
        rows = [
            spread(study.solution, players, count)
            for study, players, count in zip(studies, games.players, counts, strict=True)
        ]
        return list(zip(rows, outputs, strict=True))

    def _budget(self, players: int) -> int:
        if self.permutations is not None:
            return self.permutations * players
        return min(max(FEWEST, PER_UNIT * players), MOST) if self.passes is None else self.passes

    def _done(self, study: _Study, text: str) -> bool:
        solution = study.solution
        size = float(np.linalg.norm(solution.embedding - solution.reference))
        if self.error is None or not solution.error.any() or solution.error.max() <= self.error * size:
            return True
        if 2 * len(study.tried) > MOST_PASSES:
            reached = solution.error.max() / size
            raise NotConverged(
                f"the standard error of {text!r:.60} is {reached:.1e} after {len(study.tried)} forward passes, and "
                f"{self.error:.0e} was asked for. What helps: ask for less (error={reached * 1.2:.0e}), or for a "
                "coarser level.",
                gap=reached,
                tol=self.error,
            )
        return False


class _Study:
    """What is known of one text's game."""

    def __init__(self, players: int, near: float, seed: int) -> None:
        self.players = players
        self._near = near
        self._random = np.random.default_rng(seed)
        self._strata: dict[int, dict[bytes, None]] = {}
        self.tried = np.zeros((0, players), dtype=bool)
        self._values = np.zeros((0, 0))
        self.solution: Integral

    def grow(self, passes: int) -> Array:
        """New coalitions, so that about `passes` are tried in all, the two ends among them."""
        n = self.players
        if not passes:
            return np.zeros((0, n), dtype=bool)
        if 2**n <= max(passes, 2):
            everything = (np.arange(2**n)[:, None] >> np.arange(n) & 1).astype(bool)
            known = {row.tobytes() for row in self.tried}
            return np.array([row for row in everything if row.tobytes() not in known]).reshape(-1, n)
        fresh = [] if len(self.tried) else [np.zeros((1, n), dtype=bool), np.ones((1, n), dtype=bool)]
        for size, pairs in allot(n, max(1, passes // 2 - 1)).items():
            stratum = self._strata.setdefault(size, {})
            drawn = draw(n, size, pairs - len(stratum), stratum, self._random)
            fresh += [drawn, ~drawn]
        return np.concatenate(fresh)

    def learn(self, coalitions: Array, values: Array) -> None:
        """Take in the values of new coalitions, and solve."""
        if not len(coalitions):
            return
        self.tried = np.concatenate([self.tried, coalitions])
        self._values = np.concatenate([self._values.reshape(-1, values.shape[1]), values])
        solve = exact if self.exact else kriged
        self.solution = solve(self.tried, self._values, self._near)

    @property
    def exact(self) -> bool:
        """Whether every coalition was tried."""
        return self.players < 20 and len(self.tried) == 2**self.players
