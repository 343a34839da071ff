"""The interactive picture: one explanation, or several on one colour scale, as a self-contained web page.

`payload` returns the data and `asset` the script and the style sheet that draw it; `document` puts them into one page.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping, Sequence
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

import numpy as np

from pairlens.attribution.contributions import deletes, predicts
from pairlens.attribution.explanation import Explanation
from pairlens.errors import InputError, choose
from pairlens.io import check_folder, documents, write_file
from pairlens.render.deletion import Without, without_each
from pairlens.render.headline import colour_floor, headline, unknown
from pairlens.render.names import label, noun
from pairlens.render.running import cut
from pairlens.render.text import SAMPLED, forecast, has_gap, provenance, summary
from pairlens.text import LEVELS, Unit, both_levels, parts, rows_without

Shown = Explanation | Mapping[str, Explanation]
ARRANGEMENTS = ("slider", "side", "list")
_PARTS = ("nodes", "grid", "colours", "texts", "links", "matrix", "tables", "controls", "show")
_FIELDS = ("text_a", "text_b", "score", "base", "gap", "gap_a", "gap_b", "truncated_a", "truncated_b")
"""The fields of an explanation that the picture takes as they are."""
TITLE = "Why are these two texts this similar?"


def payload(explanations: Shown) -> dict[str, Any]:
    """The data of the picture, ready for JSON.

    Args:
        explanations: an explanation, or several under their labels: layers, models or hits, in this order.

    Returns:
        A dict with `views`, one for every explanation: its label, texts, score and other terms, settings, and `levels`:
        the level of the explanation and every coarser one, finest first, each with units, matrix, errors, effects, and
        the score without each unit.
    """
    return {"version": 1, "views": [_view(label, e) for label, e in _labelled(explanations).items()]}


def document(explanations: Shown, *, title: str | None = None, arrange: str = "slider") -> str:
    """The picture as one HTML page that loads nothing from anywhere else.

    Args:
        explanations: an explanation, or several under their labels: layers, models or hits, in this order.
        title: the heading and the title of the window; "" for none.
        arrange: how several explanations are shown: "slider", one at a time; "side", side by side; "list", a ranked
            list to choose from.

    Example:
        >>> from pairlens import Lens
        >>> page = document(Lens().explain("A cat.", "A dog.", level="word"))
        >>> page[:15], "</script><script" in page
        ('<!doctype html>', False)
    """
    shown = _labelled(explanations)
    options = {"arrange": choose("arrangement", arrange, ARRANGEMENTS), "title": TITLE if title is None else title}
    script, style = asset("picture.js"), asset("picture.css")
    rules = f"default-src 'none'; script-src {_hash(script)}; style-src {_hash(style)}; img-src data:"
    plain = "\n\n".join(f"{label}\n{summary(e)}" if label else summary(e) for label, e in shown.items())
    # The script replaces the content of `main`: without scripts the page shows plain text.
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{rules}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="generator" content="pairlens">
<title>{html.escape(options["title"])}</title>
<style>{style}</style>
</head>
<body class="pairlens-page">
<main id="pairlens"><pre>{html.escape(plain)}</pre></main>
<script type="application/json" id="pairlens-payload">{_inert(payload(shown))}</script>
<script type="application/json" id="pairlens-options">{_inert(options)}</script>
<script>{script}</script>
</body>
</html>
"""


def save(explanations: Shown, path: str | Path, *, title: str | None = None, arrange: str = "slider") -> Path:
    """Write `document` to a file and return its path. The write is atomic."""
    path = Path(path)
    choose("file suffix", path.suffix.lower(), (documents.PICTURE,))
    check_folder(path)
    return write_file(path, document(explanations, title=title, arrange=arrange).encode("utf-8", "replace"))


@cache
def asset(name: str) -> str:
    """The text of `picture.js` or `picture.css`, for pages that show a payload with `pairlens.show`.

    Example:
        >>> "window.pairlens" in asset("picture.js")
        True
    """
    folder = files("pairlens.render").joinpath("picture")
    if choose("asset", name, ("picture.js", "picture.css")) == "picture.css":
        return folder.joinpath(name).read_text(encoding="utf-8")
    parts = [folder.joinpath(f"{part}.js").read_text(encoding="utf-8") for part in _PARTS]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def _labelled(explanations: Shown) -> dict[str, Explanation]:
    if not isinstance(explanations, Mapping):
        return {"": explanations}
    if not explanations:
        raise InputError("there is no explanation to show: the mapping is empty.")
    return {str(label): e for label, e in explanations.items()}


def _view(label: str, e: Explanation) -> dict[str, Any]:
    error = "standard error" if e.settings.get("method") in SAMPLED else "estimated error"
    return {
        "label": label,
        **{name: getattr(e, name) for name in _FIELDS},
        "unknown": unknown(e),
        "has_gap": has_gap(e),
        "settings": dict(e.settings),
        "levels": [
            _level(e, name, error) if n == 0 else _level(e.at(levels), name, "at most: errors of finer units, added up")
            for n, (name, levels) in enumerate(_levels(e.settings.get("level", "token")).items())
        ],
    }


def _levels(level: Any) -> dict[str, Any]:
    """The levels to show, by the names that the picture has for them: the explanation's own and all coarser ones."""
    if "zoom" in (both := both_levels(level)):
        one, other = ("sentence" if side == "zoom" else side for side in both)
        return {"zoom": level, "sentence": (one, other)}
    if level not in LEVELS:
        return {"span": level}
    return {name: name for name in LEVELS[LEVELS.index(level) :]}


def _level(e: Explanation, name: str, error_name: str) -> dict[str, Any]:
    without_a, without_b = without_each(e)
    return {
        "name": name,
        "noun": noun(e.settings),
        "headline": headline(e),
        "floor": colour_floor(e),
        "sampled": deletes(e.settings),
        "provenance": provenance(e),
        "forecast": forecast(e),
        "poor": e.forecast is not None and e.forecast.is_low,
        "predicts": predicts(e.settings),
        "units_a": [_unit(e.units_a, index, known) for index, known in enumerate(without_a)],
        "units_b": [_unit(e.units_b, index, known) for index, known in enumerate(without_b)],
        "pieces_a": [list(part) for part in cut(e.text_a, e.units_a)],
        "pieces_b": [list(part) for part in cut(e.text_b, e.units_b)],
        "matrix": _rounded(e.matrix, 9),
        "error_name": error_name,
        "entry_error": _rounded(e.entry_error, 3) if e.entry_error.any() else None,
        "effects_a": _rounded(e.effects_a, 9),
        "effects_b": _rounded(e.effects_b, 9),
        "without_both": None if e.measured_pairs is None else _rounded(e.measured_pairs, 9),
    }


def _unit(units: Sequence[Unit], index: int, known: Without | None) -> dict[str, Any]:
    """A unit with the score without it, and with the rows that go with it."""
    unit = units[index]
    entry: dict[str, Any] = {"text": label(unit), "start": unit.start, "end": unit.end, "kind": unit.kind}
    if known is not None:
        entry |= {"without": _significant(known.score, 9), "measured": known.measured}
    if (gone := rows_without(units, [index])) != [index]:
        entry["removes"] = gone
    return entry | ({"parts": parts(units, index)} if unit.parts else {})


def _rounded(values: np.ndarray, digits: int) -> list[Any]:
    """The numbers rounded to significant digits, which makes files a third smaller."""
    if values.ndim > 1:
        return [_rounded(row, digits) for row in values]
    return [_significant(value, digits) for value in values]


def _significant(value: float, digits: int) -> float:
    return float(f"{value:.{digits}g}")


def _inert(data: dict[str, Any]) -> str:
    """ASCII JSON that cannot end a script element or begin a comment. Lone surrogates are escaped too."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(source: str) -> str:
    """The source of a Content-Security-Policy that allows exactly this inline script or style."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
