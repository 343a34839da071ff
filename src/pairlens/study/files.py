"""What every study leaves in its folder: summary.json, a table as CSV, the raw values as Parquet, and pictures."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Mapping, Sequence
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlens.errors import InputError, MissingExtra
from pairlens.io.documents import require_pyarrow, whole_file

if TYPE_CHECKING:
    from matplotlib.figure import Figure

Row = dict[str, Any]


def open_folder(out: Path, name: str) -> Path:
    """The folder of a study inside the user's one, made where it does not exist."""
    folder = out / name
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"the folder {folder} cannot be made: {error.strerror}. Give another --out.") from error
    return folder


def versions(*more: str) -> dict[str, str]:
    """The versions of what results may depend on; packages that are not installed are left out."""
    found = {}
    for name in ("pairlens", "torch", "transformers", "sentence-transformers", "numpy", *more):
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def write_summary(folder: Path, summary: Mapping[str, Any]) -> Path:
    """Write summary.json."""
    content = json.dumps(summary, ensure_ascii=False, indent=2, allow_nan=False)
    return _write(folder / "summary.json", content.encode() + b"\n")


def write_table(folder: Path, rows: Sequence[Row]) -> Path:
    """Write table.csv; the first row names the columns."""
    text = io.StringIO(newline="")
    writer = csv.DictWriter(text, list(rows[0]))
    writer.writeheader()
    writer.writerows(rows)
    return _write(folder / "table.csv", text.getvalue().encode())


def write_raw(folder: Path, stem: str, rows: Sequence[Row]) -> Path:
    """Write the raw values as Parquet; the rows may have different fields."""
    pa, parquet = require_pyarrow()
    columns = list(dict.fromkeys(name for row in rows for name in row))
    table = pa.table({name: [row.get(name) for row in rows] for name in columns})
    with whole_file(path := folder / f"{stem}.parquet") as file:
        parquet.write_table(table, file)
    return path


def write_picture(folder: Path, stem: str, figure: Figure) -> list[Path]:
    """Write a picture as PNG and SVG."""
    from matplotlib import rc_context

    paths = []
    for suffix in ("png", "svg"):
        content = io.BytesIO()
        # No date and no random names, so that the same picture is the same file.
        metadata = {"Date": None} if suffix == "svg" else {"Software": None}
        with rc_context({"svg.hashsalt": "pairlens"}):
            figure.savefig(content, format=suffix, dpi=200, metadata=metadata)
        paths.append(_write(folder / f"{stem}.{suffix}", content.getvalue()))
    return paths


def require_matplotlib() -> Any:
    """The class of figures, which needs no display and changes nothing outside of itself."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise MissingExtra("matplotlib", "study") from error
    return Figure


def _write(path: Path, content: bytes) -> Path:
    with whole_file(path) as file:
        file.write(content)
    return path
