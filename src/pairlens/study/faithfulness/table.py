"""The judge's result: a table of all measures with intervals, a summary, raw values and a picture."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.io import require, versions
from pairlens.shapes import Array
from pairlens.study import files
from pairlens.study.faithfulness.candidates import Candidate
from pairlens.study.faithfulness.ground_truth import AGREEMENT, EXACT
from pairlens.study.faithfulness.measures import RESAMPLES, bootstrap
from pairlens.study.faithfulness.picture import draw
from pairlens.study.statistics import Record, mean_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEASURES = {
    "shapley": "Spearman over pairs of text units (special tokens left out) with Shapley values of real deletions. "
    "More is better. Sampled Shapley values have a home advantage here: the yardstick is of their kind, and where it "
    "is sampled it predicts untried subsets with the same kernel.",
    "leave_one_out": "Spearman over units between their whole effects (sums of rows and columns, and effects) and what "
    "the score really loses when the unit alone is deleted; the mean of both texts. More is better.",
    "deletion": "Pair-deletion curve: the strongest pairs' units are deleted first, until half of the units of both "
    "texts are gone; the mean fall of the score on the way, less that of random orders. More is better.",
    "deletion_reverse": "The same, less that of the opposite order. More is better.",
    "deletion_whole": "The same, with pairs in the order of what the explanation says that the score loses with both "
    "units: their whole effects, less the pair's own entry, which is in both. More is better.",
    "sanity": "Spearman between the matrices of the model and of a copy whose layers all have random weights, on the "
    "checked pairs. Should be near 0; not quite, since the embedding layer stays and equal words stay alike.",
    "stability": "Spearman over pairs of words before and after a change of wording that leaves the embedding almost "
    "unchanged, on the checked pairs that have one. More is better.",
    "gap": "Relative error of the sum: the mean of the two texts' gaps; for rivals |score - sum| / |score|.",
    "cost": "Forward-pass equivalents per text: floating-point operations of an explanation, divided by those of one "
    "pass over both texts, on the checked pairs.",
    "seconds": "Seconds for one pair alone, on the machine that ran this.",
}
MAIN = ("shapley", "leave_one_out", "deletion", "deletion_whole")
"""The measures of faithfulness."""


class FaithfulnessResult:
    """The judge's result.

    Args:
        records: one record per pair, from `PairEvaluator.evaluate`.
        candidates: the explanations that were compared.
        settings: the settings of the run and the model.

    Attributes:
        table: one row per candidate, the best by `shapley` first: every measure with the ends of its 95 % interval.
        summary: the table, the settings and what the measures mean, ready for JSON.
    """

    def __init__(self, records: Sequence[Record], candidates: Sequence[Candidate], settings: Mapping[str, Any]) -> None:
        self.records = list(records)
        self.candidates = list(candidates)
        self.settings = dict(settings)

    @cached_property
    def judged(self) -> list[Record]:
        """The records of the pairs that were not skipped."""
        return [record for record in self.records if "skipped" not in record]

    def values(self, candidate: str, measure: str) -> Array:
        """A measure of a candidate on every judged pair, (pairs,); NaN where the pair has no value."""
        numbers = []
        for record in self.judged:
            value = record["candidates"][candidate].get(measure)
            if measure == "sanity" and value:
                value = value[max(value, key=int)]  # all layers random
            numbers.append(np.nan if value is None or value == {} else value)
        return np.array(numbers, dtype=float)

    @cached_property
    def table(self) -> list[Record]:
        """One row per candidate, the best by `shapley` first, skipped ones last."""
        rows = [self._row(candidate) for candidate in self.candidates]
        return sorted(rows, key=lambda row: -2.0 if row["shapley"] is None else row["shapley"], reverse=True)

    def _row(self, candidate: Candidate) -> Record:
        records = [record["candidates"][candidate.name] for record in self.judged]
        reasons = [record["skipped"] for record in records if "skipped" in record]
        row: Record = {
            "candidate": candidate.name,
            "family": candidate.family,
            "rival": candidate.rival,
            "pairs": len(records) - len(reasons),
        }
        for measure in MEASURES:
            interval = self._interval(self.values(candidate.name, measure))
            row |= dict(zip((measure, f"{measure}_low", f"{measure}_high"), interval, strict=True))
        gaps = self.values(candidate.name, "gap")
        row["gap_max"] = None if np.isnan(gaps).all() else float(np.nanmax(gaps))
        row["skipped"] = reasons[0] if reasons else ""
        return row

    def _interval(self, values: Array) -> tuple[float, float, float] | tuple[None, None, None]:
        """The mean of the values that are not NaN and the ends of its 95 % interval; None each if there are none."""
        values = values[~np.isnan(values)]
        return bootstrap(values, self.settings["seed"]) if len(values) else (None, None, None)

    @cached_property
    def behind(self) -> dict[str, dict[str, Record]]:
        """For each of the main measures, every candidate's paired difference from the best candidate."""
        differences: dict[str, dict[str, Record]] = {}
        for measure in MAIN:
            rows = [row for row in self.table if row[measure] is not None]
            if not rows:
                continue
            first = max(rows, key=lambda row: row[measure])["candidate"]
            differences[measure] = {}
            for row in rows:
                lead = self.values(first, measure) - self.values(row["candidate"], measure)
                mean, low, high = self._interval(lead)
                if mean is not None:
                    differences[measure][row["candidate"]] = {"first": first, "behind": mean, "low": low, "high": high}
        return differences

    @cached_property
    def summary(self) -> Record:
        """The content of summary.json."""
        skipped = [{"pair": r["pair"], "reason": r["skipped"]} for r in self.records if "skipped" in r]
        checked = self._checked()
        sanity = {candidate.name: self._sanity(candidate.name) for candidate in self.candidates if checked}
        return {
            "study": "faithfulness",
            "versions": versions("captum", "scipy"),
            "settings": self.settings,
            "pairs": {
                "asked": len(self.records),
                "judged": len(self.judged),
                "checked": len(checked),
                "reworded": sum(bool(record.get("reworded")) for record in checked),
                "skipped": skipped,
            },
            "candidates": {candidate.name: candidate.settings() for candidate in self.candidates},
            "measures": MEASURES,
            "intervals": f"95 %, percentiles of {RESAMPLES} bootstrap draws of pairs",
            "yardstick": self._yardstick(),
            "table": self.table,
            "behind": self.behind,
            "sanity": sanity,
        }

    def _checked(self) -> list[Record]:
        """The records of the pairs that also have the expensive measures."""
        return [record for record in self.judged if record["check"]]

    def _sanity(self, candidate: str) -> dict[str, float | None]:
        """The mean of the sanity measure, by the number of last layers with random weights."""
        by_depth: dict[str, list[float | None]] = {}
        for record in self._checked():
            for depth, value in record["candidates"][candidate].get("sanity", {}).items():
                by_depth.setdefault(depth, []).append(value)
        return {depth: mean_of(values) for depth, values in by_depth.items()}

    def _yardstick(self) -> Record:
        """How precise the Shapley values are that candidates are compared with."""
        records = [record["yardstick"] for record in self.judged]
        sampled = [record for record in records if not record["exact"]]
        agreed = [record["agreement"] for record in sampled if record["agreement"] is not None]
        known = [r["sampled_yardstick"] for r in self._checked() if r.get("sampled_yardstick") is not None]
        return {
            "what": "Shapley values of real deletions (token ids removed, positions closed up, special tokens alone as "
            "the empty text), projected as reference_terms='project' does. Exact where a text has at most "
            f"{EXACT} subsets of units; else the mean of two runs as pairlens.Shapley has them, with different "
            f"seeds, which go on until the two agree with Spearman {AGREEMENT}.",
            "exact": len(records) - len(sampled),
            "sampled": len(sampled),
            "agreement_mean": mean_of(agreed),
            "agreement_min": min(agreed) if agreed else None,
            "below": sum(value < AGREEMENT for value in agreed),
            "passes_mean": mean_of(record["passes"] for record in sampled) if agreed else None,
            "sampled_against_exact": mean_of(known),
            "sampled_against_exact_pairs": len(known),
        }

    def plot(self) -> Figure:
        """A picture of faithfulness against cost with the Pareto front, and of two other measures."""
        return draw(self.table, self.settings["model"], len(self.judged))

    def to_pandas(self) -> Any:
        """The table as a pandas DataFrame."""
        return require("pandas", "study").DataFrame(self.table)

    def raw(self) -> list[Record]:
        """One row per pair and candidate, with the values that the table averages."""
        rows = []
        for record in self.judged:
            pair = {name: record[name] for name in ("pair", "a", "b", "score")}
            pair |= {"units_a": record["units"][0], "units_b": record["units"][1]}
            pair |= {f"yardstick_{name}": value for name, value in record["yardstick"].items()}
            for name, values in record["candidates"].items():
                sanity = {f"sanity_{depth}": value for depth, value in values.get("sanity", {}).items()}
                plain = {key: value for key, value in values.items() if key != "sanity"}
                rows.append({**pair, "candidate": name, **plain, **sanity})
        return rows

    def save(self, folder: Path) -> list[Path]:
        """Write summary.json, table.csv, pairs.parquet, pareto.png and pareto.svg into a folder that exists."""
        return [
            files.write_summary(folder, self.summary),
            files.write_table(folder, self.table),
            files.write_raw(folder, "pairs", self.raw()),
            *files.write_picture(folder, "pareto", self.plot()),
        ]
