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
from pairlens.study.faithfulness.random_deletions import DRAWS, FEWEST
from pairlens.study.statistics import Record, mean_of

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MEDIAN = "_median"
MEASURES = {
    "r2_75": "Prediction. An explanation is read as a model of the score, g(S, T) = base + effects of S and T + "
    "entries of S with T, for the units S and T that are left; a compound is left while all its units are. R² of g "
    f"against the model's real scores over {DRAWS} random deletions that keep each unit with probability 0.75. 1 is "
    "perfect, 0 as good as the mean, and below 0 worse. Only deletions count of which the candidate has not tried both "
    f"sides; a pair with fewer than {FEWEST} of them has no value. Rivals have nothing but entries: their base is the "
    "score less the sum of all entries.",
    "r2_75_median": "Its median over pairs, which a few pairs cannot spoil.",
    "r2_75_all": "R² over all of these deletions, also those that were tried. A short text has few deletions, and a "
    "candidate that has tried the likely ones is judged by r2_75 on the rest, where more units are deleted: the next "
    "line is how much that rest is. Where it is small, this one says more.",
    "untried_75": "The part of the random deletions that the candidate has not tried, and that r2_75 is about.",
    "r2_50": "As r2_75, for deletions that keep half of the units.",
    "r2_90": "As r2_75, for deletions that keep nine of ten units.",
    "r2_90_all": "As r2_75_all, for deletions that keep nine of ten units.",
    "untried_90": "As untried_75, for deletions that keep nine of ten units.",
    "correlation_50": "Pearson's correlation of the same numbers, which forgives a wrong scale and a wrong constant.",
    "correlation_75": "The same for deletions that keep three of four units.",
    "correlation_90": "The same for deletions that keep nine of ten units.",
    "leave_one_out": "Spearman over units between what g loses when the unit alone is deleted and what the score "
    "really loses; the mean of both texts. Leave-one-out itself must reach 1. More is better.",
    "claimed": "Claimed by real losses: the sum over the units of both texts of what g loses without each, by that of "
    "what the score really loses, without signs. 1 is right; above 1 an explanation exaggerates.",
    "deletion": "Pair-deletion curve: the strongest pairs' units are deleted first, until half of the units of both "
    "texts are gone; the mean fall of the score on the way, less that of random orders. More is better.",
    "deletion_reverse": "The same, less that of the opposite order. More is better.",
    "deletion_whole": "The same, with pairs in the order of what g loses without both units. More is better.",
    "insertion": "Pair-insertion curve: from a random half of both texts, the same for all candidates, the strongest "
    "pairs' units are put back first; the mean rise of the score on the way, less that of random orders.",
    "insertion_whole": "The same, with pairs in the order of `deletion_whole`.",
    "shapley": "Spearman over pairs of units (special tokens left out) with Shapley values of real deletions in both "
    "texts. More is better. Shapley values have a home advantage here: the yardstick is of their kind, and where it is "
    "sampled it predicts untried subsets with the same kernel. It ranks mostly entries near 0.",
    "shapley_pearson": "Pearson's correlation with the same values, which the strong entries decide.",
    "shapley_top": "The part of these values' strongest fifth that is in the explanation's strongest fifth too, with "
    "the same sign; at random a tenth.",
    "sanity": "Spearman between the matrices of the model and of a copy whose layers all have random weights, on the "
    "checked pairs. Should be near 0; not quite, since the embedding layer stays and equal words stay alike.",
    "stability": "Spearman over pairs of words before and after a change of wording that leaves the embedding almost "
    "unchanged, on the checked pairs that have one. More is better.",
    "gap": "Relative error of the sum: the mean of the two texts' gaps; for rivals |score - sum| / |score|.",
    "passes": "Deletions tried per text, for methods that delete; a text with fewer subsets tries them all.",
    "cost": "Forward-pass equivalents per text: floating-point operations of an explanation, divided by those of one "
    "pass over both texts, on the checked pairs. A pass over a shortened text costs less than one.",
    "seconds": "Seconds for one pair alone, on the machine that ran this.",
}
MAIN = ("r2_50", "r2_75", "r2_90", "leave_one_out", "shapley", "deletion_whole", "insertion_whole")
"""The measures of faithfulness, for which differences from the best candidate are given."""
BY_LENGTH = (
    *("r2_50", "r2_75", "r2_75_median", "r2_75_all", "untried_75", "r2_90", "r2_90_all", "untried_90"),
    *("leave_one_out", "claimed", "passes"),
)
"""The measures that are also given by length."""
LENGTHS = ((1, 10), (11, 15), (16, None))
"""The fewest and the most units that both texts of a pair have."""


class FaithfulnessResult:
    """The judge's result.

    Args:
        records: one record per pair, from `PairEvaluator.evaluate`.
        candidates: the explanations that were compared.
        settings: the settings of the run and the model.

    Attributes:
        table: one row per candidate, the best by `r2_75` first: every measure with the ends of its 95 % interval.
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
        return self._values(self.judged, candidate, measure)

    def _values(self, records: Sequence[Record], candidate: str, measure: str) -> Array:
        numbers = [record["candidates"][candidate].get(measure.removesuffix(MEDIAN)) for record in records]
        return np.array([np.nan if value is None else value for value in numbers], dtype=float)

    @cached_property
    def table(self) -> list[Record]:
        """One row per candidate, the best by `r2_75` first, those without a value last."""
        rows = [self._row(candidate) for candidate in self.candidates]
        return sorted(rows, key=lambda row: -np.inf if row["r2_75"] is None else row["r2_75"], reverse=True)

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
            interval = self._interval(self.values(candidate.name, measure), measure.endswith(MEDIAN))
            row |= dict(zip((measure, f"{measure}_low", f"{measure}_high"), interval, strict=True))
        gaps = self.values(candidate.name, "gap")
        row["gap_max"] = None if np.isnan(gaps).all() else float(np.nanmax(gaps))
        row["skipped"] = reasons[0] if reasons else ""
        return row

    def _interval(self, values: Array, median: bool = False) -> tuple[float, float, float] | tuple[None, None, None]:
        """The mean of the values that are not NaN and the ends of its 95 % interval; None each if there are none."""
        values = values[~np.isnan(values)]
        return bootstrap(values, self.settings["seed"], median=median) if len(values) else (None, None, None)

    @cached_property
    def by_length(self) -> list[Record]:
        """Means over pairs of which both texts have few, some or many units: one row per length and candidate."""
        rows: list[Record] = []
        for fewest, most in LENGTHS:
            records = [r for r in self.judged if fewest <= min(r["units"]) and max(r["units"]) <= (most or np.inf)]
            units = f"{fewest} to {most}" if most else f"{fewest} and more"
            for row in self.table if records else ():
                entry: Record = {"units": units, "pairs": len(records), "candidate": row["candidate"]}
                for name in BY_LENGTH:
                    values = self._values(records, row["candidate"], name)
                    mean, low, high = self._interval(values, name.endswith(MEDIAN))
                    entry |= {name: mean, f"{name}_low": low, f"{name}_high": high}
                rows.append(entry)
        return rows

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
            "by_length": self.by_length,
        }

    def _checked(self) -> list[Record]:
        """The records of the pairs that also have the expensive measures."""
        return [record for record in self.judged if record["check"]]

    def _yardstick(self) -> Record:
        """How precise the Shapley values are that candidates are compared with."""
        records = [record["yardstick"] for record in self.judged]
        sampled = [record for record in records if not record["exact"]]
        agreed = [record["agreement"] for record in sampled if record["agreement"] is not None]
        known = [r["sampled_yardstick"] for r in self._checked() if r.get("sampled_yardstick") is not None]
        return {
            "what": "Shapley values of the score in both texts, of real deletions (token ids removed, positions closed "
            f"up, special tokens alone as the empty text). Exact where a text has at most {EXACT} subsets of units; "
            "else the mean of two runs as pairlens.Shapley has them, with different seeds, which go on until the two "
            f"agree with Spearman {AGREEMENT}.",
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
        """A picture of prediction against cost, with the Pareto front."""
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
                rows.append({**pair, "candidate": name, **values})
        return rows

    def save(self, folder: Path) -> list[Path]:
        """Write summary.json, table.csv, lengths.csv, pairs.parquet and pareto.png and .svg into an existing folder."""
        return [
            files.write_summary(folder, self.summary),
            files.write_table(folder, self.table),
            files.write_table(folder, self.by_length, "lengths"),
            files.write_raw(folder, "pairs", self.raw()),
            *files.write_picture(folder, "pareto", self.plot()),
        ]
