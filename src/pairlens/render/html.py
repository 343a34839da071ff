"""The interactive picture: one explanation, or several on one colour scale, as a web page that needs nothing else.

`payload` is the data, the script and the style sheet of `asset` draw it, and `document` puts all of it into one file.
"""

from __future__ import annotations

import base64
import hashlib
import html
import json
from collections.abc import Mapping
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pairlens.errors import InputError, choose
from pairlens.io import documents
from pairlens.render.text import provenance, summary
from pairlens.text import LEVELS, Unit

if TYPE_CHECKING:
    import numpy as np

    from pairlens.attribution.explanation import Explanation

    Shown = Explanation | Mapping[str, Explanation]

ARRANGEMENTS = ("slider", "side", "list")
_PARTS = ("nodes", "grid", "colours", "texts", "links", "matrix", "tables", "controls", "show")
TITLE = "Why are these two texts this similar?"


def payload(explanations: Shown) -> dict[str, Any]:
    """Everything that the picture shows, as JSON has it.

    Args:
        explanations: an explanation, or several under their labels: layers, models or hits, in this order.

    Returns:
        `views`, one for every explanation: its label, texts, score and other sums, settings, and `levels`: its own
        level and every coarser one, finest first, each with units, matrix, errors and effects.
    """
    return {"version": 1, "views": [_view(label, e) for label, e in _labelled(explanations).items()]}


def document(explanations: Shown, *, title: str | None = None, arrange: str = "slider") -> str:
    """The picture as one HTML page that asks nothing of any other place.

    Args:
        explanations: an explanation, or several under their labels: layers, models or hits, in this order.
        title: what stands above it and in the window's title; "" for nothing.
        arrange: how several are shown: "slider", one at a time; "side", all of them beside each other; "list", a
            ranked list to choose from.

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
    # The script replaces what `main` holds: without scripts the page is plain text.
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
    """Write `document` to a file, whole or not at all."""
    path = Path(path)
    choose("file suffix", path.suffix.lower(), (documents.PICTURE,))
    documents.check_folder(path)
    page = document(explanations, title=title, arrange=arrange).encode("utf-8", "replace")
    with documents.whole_file(path) as file:
        file.write(page)
    return path


@cache
def asset(name: str) -> str:
    """The text of `picture.js` or `picture.css`: what a page needs that shows a payload with `pairlens.show`.

    Example:
        >>> "window.pairlens" in asset("picture.js")
        True
    """
    folder = files("pairlens.render").joinpath("picture")
    if choose("asset", name, ("picture.js", "picture.css")) == "picture.css":
        return folder.joinpath(name).read_text(encoding="utf-8")
    parts = [folder.joinpath(f"{part}.js").read_text(encoding="utf-8") for part in _PARTS]
    return '"use strict";\n(() => {\n' + "\n".join(parts) + "})();\n"


def pieces(text: str, units: tuple[Unit, ...]) -> list[tuple[str, int | None]]:
    """The text cut where its units begin and end: each piece with its unit's index, or None between units.

    The pieces' strings join to the text. A unit that has no characters of its own has an empty piece.

    Example:
        >>> pieces("It rains.", (Unit("[CLS]", 0, 0, "special"), Unit("It", 0, 2), Unit("rains", 3, 8)))
        [('', 0), ('It', 1), (' ', None), ('rains', 2), ('.', None)]
    """
    found: list[tuple[str, int | None]] = []
    here = 0
    for index, unit in enumerate(units):
        # What an earlier unit took (several tokens may be one character) is not taken twice.
        start, end = max(unit.start, here), max(unit.end, here)
        if unit.kind == "rest" or start >= end:
            found.append(("", index))
            continue
        if start > here:
            found.append((text[here:start], None))
        found.append((text[start:end], index))
        here = end
    return [*found, (text[here:], None)] if here < len(text) else found


def _labelled(explanations: Shown) -> dict[str, Explanation]:
    if not isinstance(explanations, Mapping):
        return {"": explanations}
    if not explanations:
        raise InputError("there is no explanation to show: the mapping is empty.")
    return {str(label): e for label, e in explanations.items()}


def _view(label: str, e: Explanation) -> dict[str, Any]:
    own = e.settings.get("level", "token")
    error = "standard error" if e.settings.get("method") == "shapley" else "estimated error"
    coarser = LEVELS[LEVELS.index(own) + 1 :] if own in LEVELS else ()
    return {
        "label": label,
        "text_a": e.text_a,
        "text_b": e.text_b,
        "score": e.score,
        "base": e.base,
        "gap": e.gap,
        "gap_a": e.gap_a,
        "gap_b": e.gap_b,
        "truncated_a": e.truncated_a,
        "truncated_b": e.truncated_b,
        "settings": dict(e.settings),
        "levels": [
            _level(e, own if own in LEVELS else "span", error),
            *(_level(e.at(name), name, "at most: errors of finer units, added up") for name in coarser),
        ],
    }


def _level(e: Explanation, name: str, error_name: str) -> dict[str, Any]:
    return {
        "name": name,
        "provenance": provenance(e),
        "units_a": [_unit(unit) for unit in e.units_a],
        "units_b": [_unit(unit) for unit in e.units_b],
        "pieces_a": [list(piece) for piece in pieces(e.text_a, e.units_a)],
        "pieces_b": [list(piece) for piece in pieces(e.text_b, e.units_b)],
        "matrix": _rounded(e.matrix, 9),
        "error_name": error_name,
        "entry_error": _rounded(e.entry_error, 3) if e.entry_error.any() else None,
        "effects_a": _rounded(e.effects_a, 9),
        "effects_b": _rounded(e.effects_b, 9),
    }


def _unit(unit: Unit) -> dict[str, Any]:
    return {"text": unit.text, "start": unit.start, "end": unit.end, "kind": unit.kind}


def _rounded(values: np.ndarray, digits: int) -> list[Any]:
    """The numbers to so many significant digits, which makes files a third smaller."""
    if values.ndim > 1:
        return [_rounded(row, digits) for row in values]
    return [float(f"{value:.{digits}g}") for value in values]


def _inert(data: dict[str, Any]) -> str:
    """JSON that ends no script element and begins no comment, whatever the texts hold. ASCII, half characters too."""
    text = json.dumps(data, allow_nan=False, separators=(",", ":"))
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")


def _hash(source: str) -> str:
    """What allows an inline script or style, and no other, in a Content-Security-Policy."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(source.encode()).digest()).decode()}'"
