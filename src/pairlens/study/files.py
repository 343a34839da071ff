"""The files that a study writes to its folder: summary.json, a table as CSV, raw values as Parquet, and pictures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlens.io import require, require_pyarrow, whole_file, write_file
from pairlens.study.statistics import Record

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def write_summary(folder: Path, summary: Mapping[str, Any]) -> Path:
    """Write summary.json and return its path."""
    content = json.dumps(summary, ensure_ascii=False, indent=2, allow_nan=False)
    return write_file(folder / "summary.json", content.encode() + b"\n")


def write_table(folder: Path, rows: Sequence[Record], stem: str = "table") -> Path:
    """Write STEM.csv and return its path; the first row names the columns."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return write_file(folder / f"{stem}.csv", text.getvalue().encode())


def write_raw(folder: Path, stem: str, rows: Sequence[Record]) -> Path:
    """Write raw values to STEM.parquet and return its path; rows may lack columns of others."""
    pa, parquet = require_pyarrow()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.table({name: [row.get(name) for row in rows] for name in columns})
    with whole_file(path := folder / f"{stem}.parquet") as file:
        parquet.write_table(table, file)
    return path


def write_picture(folder: Path, stem: str, figure: Figure) -> list[Path]:
    """Write a picture to STEM.png and STEM.svg and return their paths."""
    from matplotlib import rc_context

    paths = []
    for suffix in ("png", "svg"):
        content = io.BytesIO()
        # No date and no random names: the same picture gives the same bytes.
        metadata = {"Date": None} if suffix == "svg" else {"Software": None}
        with rc_context({"svg.hashsalt": "pairlens"}):
            figure.savefig(content, format=suffix, dpi=200, metadata=metadata)
        paths.append(write_file(folder / f"{stem}.{suffix}", content.getvalue()))
    return paths


def require_matplotlib() -> Any:
    """Matplotlib's class of figures, which needs no display; an error names the extra to install."""
    return require("matplotlib.figure", "study").Figure
