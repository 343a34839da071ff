"""The result: the order of its table, differences from the best candidate, and the files it writes."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import numpy as np
import pytest

from pairlens.io.files import require_pyarrow


@pytest.fixture(scope="module")
def saved(result, tmp_path_factory) -> dict[str, Path]:
    """The paths of the files that a result writes, by name."""
    pytest.importorskip("pyarrow")
    return {path.name: path for path in result.save(tmp_path_factory.mktemp("result"))}


def test_table_ranks_candidates_by_prediction(known_result, result):
    for table in (known_result.table, result.table):
        values = [row["r2_75"] for row in table if row["r2_75"] is not None]
        assert values == sorted(values, reverse=True)
        assert all(row["r2_75"] is None for row in table[len(values) :])


def test_by_length_averages_the_pairs_whose_texts_are_both_of_that_length(result):
    rows = [row for row in result.by_length if row["candidate"] == "banzhaf"]
    assert [(row["units"], row["pairs"]) for row in rows] == [("1 to 10", 3)]
    table = {row["candidate"]: row for row in result.table}
    assert rows[0]["r2_75"] == table["banzhaf"]["r2_75"]
    assert rows[0]["passes"] == table["banzhaf"]["passes"]


def test_behind_is_the_paired_difference_from_the_best_candidate(known_result):
    expected = {"first": "perfect", "behind": 2.0, "low": 2.0, "high": 2.0}
    assert known_result.behind["shapley"]["negated"] == expected


def test_save_writes_summary_table_pairs_and_picture(saved):
    assert list(saved) == ["summary.json", "table.csv", "lengths.csv", "pairs.parquet", "pareto.png", "pareto.svg"]


def test_summary_holds_pairs_measures_ground_truth_and_versions(result, saved):
    summary = json.loads(saved["summary.json"].read_text())
    reworded = sum(record["reworded"] is not None for record in result.judged[:2])
    assert summary["pairs"] == {"asked": 3, "judged": 3, "checked": 2, "reworded": reworded, "skipped": []}
    assert "home advantage" in summary["measures"]["shapley"]
    assert summary["yardstick"]["exact"] + summary["yardstick"]["sampled"] == 3
    assert {"pairlens", "torch", "captum"} <= set(summary["versions"])


def test_csv_holds_the_rows_of_the_table(result, saved):
    with saved["table.csv"].open() as file:
        rows = list(csv.DictReader(file))
    assert [row["candidate"] for row in rows] == [row["candidate"] for row in result.table]
    assert float(rows[0]["r2_75"]) == result.table[0]["r2_75"]


def test_parquet_holds_the_values_that_the_table_averages(result, saved):
    rows = require_pyarrow()[1].read_table(saved["pairs.parquet"]).to_pylist()
    assert len(rows) == 3 * len(result.table)
    values = [row["shapley"] for row in rows if row["candidate"] == "shapley/keep"]
    expected = next(row["shapley"] for row in result.table if row["candidate"] == "shapley/keep")
    assert np.mean(values) == pytest.approx(expected)


def test_to_pandas_has_one_row_per_candidate_in_the_tables_order(result):
    pytest.importorskip("pandas")
    assert list(result.to_pandas()["candidate"]) == [row["candidate"] for row in result.table]
