"""One HTML report of all studies in a folder, with every picture and its sentences; it loads nothing else."""

from __future__ import annotations

import base64
import csv
import json
from collections.abc import Iterable, Iterator, Sequence
from html import escape
from importlib.resources import files
from pathlib import Path
from typing import Any

from pairlens.errors import InputError
from pairlens.io import write_file
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.result import short_name

ROWS = 40
"""Rows of a table in the report; table.csv has them all."""


WAYS = (
    "A name such as “banzhaf, keep” says how pairs were explained: the method, or the layer whose states integrated "
    "Jacobians explain, and what became of the references' part of the score. “Keep” shows it as a base and as effects "
    "of single words, which are not among the pairs; “project” takes it out; “ignore” leaves it where it falls, as the "
    "papers do for models off the shelf; “shift” is exact for adjusted models. The library's default is named first: "
    "“banzhaf, keep”, weighted Banzhaf values, predicts best what deleting words does to the score."
)
POLICY = "default-src 'none'; img-src data:; style-src 'unsafe-inline'"


def write(out: Path, names: Sequence[str] | None = None) -> Path:
    """Write OUT/report.html from the results in OUT and return its path.

    Args:
        out: the folder of the studies, each of which has a folder of its name.
        names: the studies; all that are there by default.
    """
    chosen = [name for name in CATALOGUE if (out / name / "summary.json").is_file()] if names is None else list(names)
    summaries = {name: _read(out / name / "summary.json") for name in chosen}
    if not summaries:
        raise InputError(f"{out} holds no study to report on.")
    return write_file(out / "report.html", "\n".join(_page(out, summaries)).encode())


def _read(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise InputError(f"{path} cannot be read as a study's summary: {error}.") from error


def _page(out: Path, summaries: dict[str, dict[str, Any]]) -> Iterator[str]:
    first = next(
        (summary for summary in summaries.values() if "skipped" not in summary), next(iter(summaries.values()))
    )
    settings = first["settings"]
    title = f"What {short_name(settings['model'])} looks at"
    style = files("pairlens.study").joinpath("report.css").read_text(encoding="utf-8")
    yield '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escape(title)}</title>\n<style>\n{style}</style>\n</head>\n<body>\n<header>"
    yield f"<h1>{escape(title)}</h1>"
    yield '<p class="what">Every figure of two papers on attributions for Siamese encoders, with pairlens.</p>\n<dl>'
    facts = {
        "model": settings["model"],
        "data": settings["data"] or "given",
        "pairs": f"{settings['pairs_asked']:,}, drawn with seed {settings['seed']}",
        "similarity": settings["measure"],
        "layers": settings["layers"],
        "adjusted": "yes" if settings["adjusted"] else "no",
        "versions": ", ".join(f"{name} {number}" for name, number in first.get("versions", {}).items()),
    }
    yield from (f"<dt>{escape(name)}</dt><dd>{escape(str(value))}</dd>" for name, value in facts.items() if value != "")
    yield f'</dl>\n<p class="what">{WAYS}</p>\n<nav aria-label="Studies">\n<ol>'
    for name, summary in summaries.items():
        note = ' <span class="faint">(skipped)</span>' if "skipped" in summary else ""
        yield f'<li><a href="#{escape(name)}">{escape(summary["title"])}</a>{note}</li>'
    yield "</ol>\n</nav>\n</header>\n<main>"
    for name, summary in summaries.items():
        yield from _section(out / name, name, summary)
    yield '</main>\n<footer>\n<p class="faint">Raw values, tables and pictures are beside this file, in a folder for '
    yield "each study. Means are ± one standard deviation over pairs of texts unless it says otherwise.</p>"
    yield "</footer>\n</body>\n</html>\n"


def _section(folder: Path, name: str, summary: dict[str, Any]) -> Iterator[str]:
    yield f'<section id="{escape(name)}">\n<h2>{escape(summary["title"])}</h2>'
    yield f'<p class="what">{escape(CATALOGUE[name].does)}</p>'
    if "skipped" in summary:
        yield f'<aside class="skipped"><p>Skipped: {escape(summary["skipped"])}</p></aside>'
    else:
        picture = folder / f"{name}.svg"
        data = base64.b64encode(picture.read_bytes()).decode()
        alt = escape(f"{summary['title']}. {' '.join(summary['sentences'])}", quote=True)
        image = f'<img alt="{alt}" src="data:image/svg+xml;base64,{data}">'
        yield f'<figure><div class="picture" tabindex="0">{image}</div>'
        yield f"<figcaption>{_caption(summary['settings'])}</figcaption></figure>\n<ul>"
        yield from (f"<li>{escape(sentence)}</li>" for sentence in summary["sentences"])
        yield "</ul>"
    paper = summary["paper"]
    yield f"<aside><p>The paper: {escape(paper['says'])}</p>"
    yield f'<p class="faint">{escape(paper["title"])}, {escape(paper["where"])}</p></aside>'
    if "skipped" not in summary:
        yield from _table(folder / "table.csv")
    yield "</section>"


def _caption(settings: dict[str, Any]) -> str:
    pairs = settings["pairs"]
    ways = settings["explained_by"]
    shown = "; ".join(ways[:3]) + (f" and {len(ways) - 3} more" if len(ways) > 3 else "")
    out = sum(len(left) for left in settings["left_out"].values())
    text = f"{pairs:,} {'pair' if pairs == 1 else 'pairs'}; explained by {shown}"
    return escape(text + (f"; {out} explanations could not be made" if out else "") + ".")


def _table(path: Path) -> Iterator[str]:
    with path.open(encoding="utf-8", newline="") as file:
        rows = list(csv.reader(file))
    shown = rows[1 : ROWS + 1]
    more = f" (the first {ROWS} of {len(rows) - 1:,} rows)" if len(rows) - 1 > ROWS else ""
    yield f'<details><summary>The numbers{more}</summary>\n<div class="table" tabindex="0">\n<table>\n<thead>'
    yield _line(rows[0], "th")
    yield "</thead>\n<tbody>"
    yield from (_line(row, "td") for row in shown)
    yield "</tbody>\n</table>\n</div></details>"


def _line(cells: Iterable[str], tag: str) -> str:
    return "<tr>" + "".join(f"<{tag}>{escape(_short(cell))}</{tag}>" for cell in cells) + "</tr>"


def _short(cell: str) -> str:
    """A number with four digits; other cells unchanged except for underscores."""
    try:
        value = float(cell)
    except ValueError:
        return cell.replace("_", " ")
    return cell if value.is_integer() and "." not in cell else f"{value:.4g}"
