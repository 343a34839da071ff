"""Scored pairs from tables of every format and from lists, and the errors for rows that cannot be used."""

from __future__ import annotations

import csv
import json
from pathlib import Path
from typing import Any

import pytest

from pairlens import InputError
from pairlens.adjusted.data import check_evaluation, read_pairs
from pairlens.io.files import require_pyarrow


def write(path: Path, rows: list[Any], **options: Any) -> Path:
    with path.open("w", newline="", encoding="utf-8") as file:
        csv.writer(file, **options).writerows(rows)
    return path


def test_tables_of_every_format_are_read(tmp_path: Path):
    rows = [("A cat.", "A dog.", 2.5), ('He said "no", twice.', "Zwei Züge.", 5.0), ("x", "y", 0.0)]
    header = ["id", "sentence1", "sentence2", "score"]
    numbered = [(i, *row) for i, row in enumerate(rows)]
    write(tmp_path / "bare.csv", rows)
    write(tmp_path / "named.csv", [header, *numbered])
    write(tmp_path / "other.csv", [["links", "rechts", "urteil"], *rows])
    (tmp_path / "tabs.tsv").write_text("".join("\t".join(map(str, row)) + "\n" for row in [header, *numbered]))
    (tmp_path / "lines.jsonl").write_text("".join(json.dumps(dict(zip("abs", r, strict=True))) + "\n" for r in rows))
    pa, parquet = require_pyarrow()
    columns = dict(zip(("sentence1", "sentence2", "label"), map(list, zip(*rows, strict=True)), strict=True))
    parquet.write_table(pa.table(columns), tmp_path / "table.parquet")
    given: dict[str, dict[str, Any]] = {
        "bare.csv": {},
        "named.csv": {},
        "other.csv": {"columns": ("links", "rechts"), "score": "urteil"},
        "tabs.tsv": {},
        "lines.jsonl": {"score": "s"},
        "table.parquet": {},
    }
    for name, options in given.items():
        pairs = read_pairs(tmp_path / name, **options)
        assert (list(pairs.a), list(pairs.b)) == ([row[0] for row in rows], [row[1] for row in rows]), name
        assert list(pairs.scores) == [0.5, 1.0, 0.0], name
        assert pairs.max_score == 5.0
    assert list(read_pairs(tmp_path / "bare.csv", max_score=10).scores) == [0.25, 0.5, 0.0]
    assert list(read_pairs([("a", "b", 0.3)]).scores) == [0.3]  # from 0 to 1 already


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([("cat", "dog", 1), ("cat", "dog", "high")], "line 2"),
        ([("cat", "dog", 1), ("cat", "", 2)], "line 2"),
        ([("cat", "dog", 1), ("cat", "dog", 7)], "line 2: the score 7 is not between 0 and 5"),
        ([("cat", "dog", -1)], "line 1: the score -1"),
        (
            [("cat", "dog", "x"), ("cat", "dog", ""), ("cow", "", 1), ("", "pig", 1)],
            "line 1.*line 2.*line 3.*and 1 more",
        ),
        ([("cat", "dog"), ("cow", "pig")], "line 1: the score is missing"),
        ([], "holds no pairs"),
    ],
)
def test_errors_name_the_line(tmp_path: Path, rows, message):
    with pytest.raises(InputError, match=message):
        read_pairs(write(tmp_path / "bad.csv", rows))


def test_pairs_whose_scores_are_all_the_same_cannot_evaluate():
    with pytest.raises(InputError, match="all scores of given pairs are the same"):
        check_evaluation(read_pairs([("a", "b", 1), ("c", "d", 1)]))
    with pytest.raises(InputError, match="pair 2 is not two texts and a score"):
        read_pairs([("a", "b", 1.0), ("a", "b")])  # pyright: ignore[reportArgumentType]
