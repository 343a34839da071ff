"""An explanation as a notebook cell: the interactive picture in a frame, and a static version without scripts.

The frame lies on top of the static version and covers it. Where frames are removed (GitHub, a notebook that is not
trusted), the static version stays visible. Where scripts run, the frame reports its height, the cell takes that height
and the static version is removed.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterator, Sequence

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.render.colours import ink_on, shade
from pairlens.render.deletion import Without, without_each
from pairlens.render.headline import colour_floor, headline, lead, standing_out, unknown
from pairlens.render.html import document
from pairlens.render.names import label, noun
from pairlens.render.running import cut
from pairlens.render.text import (
    clean,
    equation,
    forecast,
    meanings,
    points,
    provenance,
    safe,
    shorten,
    signed,
    without_note,
)
from pairlens.shapes import PerUnit
from pairlens.text import Unit, in_compounds

STRONGEST = 8
_ROOM = 60  # columns of a unit in the table
_FRAME = "position:absolute;top:0;left:0;width:100%;height:100%;border:0;background:#fff"
# The sandboxed frame has no origin: only its window identifies the sender of a message.
_FIT = """
addEventListener("message", (event) => {
  const height = Number(event.data?.pairlens?.height);
  for (const frame of height > 0 ? document.querySelectorAll("iframe.pairlens") : []) {
    if (frame.contentWindow !== event.source) continue;
    frame.style.position = "static";
    frame.style.height = `${Math.min(height, 4000)}px`;
    frame.parentElement.style.minHeight = "0";
    frame.previousElementSibling?.remove();
  }
});
"""


def notebook(e: Explanation) -> str:
    """The HTML of a notebook cell that shows the explanation.

    Example:
        >>> from pairlens import Lens
        >>> cell = notebook(Lens().explain("A <b>cat</b>.", "A dog.", level="word"))
        >>> "<iframe" in cell, "<b>cat" in cell
        (True, False)
    """
    return in_frame(document(e, title=""), static(e))


def in_frame(page: str, plain: str) -> str:
    """The HTML of a notebook cell that shows a page, and where frames or scripts are removed its plain version."""
    source = page.replace("&", "&amp;").replace("'", "&#39;")
    frame = f"class='pairlens' title='pairlens' sandbox='allow-scripts' width='100%' height='700' style='{_FRAME}'"
    return (
        f"<div style='position:relative;min-height:44rem'>{plain}<iframe {frame} srcdoc='{source}'></iframe>"
        f"<script>{_FIT}</script></div>"
    )


def static(e: Explanation) -> str:
    """HTML without scripts: score, headline, both texts in the colours of their sums, strongest pairs, equation.

    Example:
        >>> from pairlens import Lens
        >>> static(Lens().explain("A cat.", "A dog.", level="word"))[:4]
        '<div'
    """
    known = without_each(e)
    falls = _falls(e, e.row + e.effects_a, known[0]), _falls(e, e.column + e.effects_b, known[1])
    peak = max(colour_floor(e), *(float(np.abs(side).max(initial=0.0)) for side in falls)) or 1.0
    numbers = [[_number(w, e.score) for w in side] for side in known]
    name = noun(e.settings)
    below = (
        f" {note}; a {name} without a number hardly changes it."
        if (note := without_note(known, f"Number at a {name}", name))
        else ""
    )
    remark = f"<br>{html.escape(words)}" if (words := unknown(e)) else ""
    rows = "".join(
        f"<tr><td style='text-align:left'>{_name(pair.a)} · {_name(pair.b)}</td>"
        f"<td>{signed(pair.value)}</td>{f'<td>± {pair.error:.4f}</td>' if e.entry_error.any() else ''}</tr>"
        for pair in standing_out(e, STRONGEST)
    )
    return (
        "<div style='font-family:system-ui,sans-serif;padding:1rem'>"
        f"<p><b>{lead(e)}</b><br>{html.escape(headline(e))}{remark}</p>"
        f"{_text('a', e.text_a, e.units_a, falls[0] / peak, numbers[0])}"
        f"{_text('b', e.text_b, e.units_b, falls[1] / peak, numbers[1])}"
        f"<p>Blue pulls the two texts together, orange pushes them apart.{below}</p>"
        f"<p><b>{html.escape(equation(e))}</b><br><small>{'; '.join(meanings(e))}.</small></p>"
        f"<table><caption>Strongest pairs</caption><tbody>{rows}</tbody></table>"
        f"<p>{html.escape(forecast(e))}<br><small>{html.escape(provenance(e))}</small></p></div>"
    )


def _falls(e: Explanation, sums: PerUnit, known: Sequence[Without | None]) -> PerUnit:
    """How far the score falls without each unit; where that is not known, what the unit contributes in all."""
    return np.array([e.score - w.score if w else value for value, w in zip(sums, known, strict=True)])


def _text(name: str, text: str, units: tuple[Unit, ...], shares: PerUnit, numbers: Sequence[str]) -> str:
    marked = in_compounds(units)
    words = [
        html.escape(safe(part)) if unit is None else _word(part, float(shares[unit]), numbers[unit], unit in marked)
        for part, unit in _named(text, units)
        if part
    ]
    style = "font-family:serif;font-size:1.2em;line-height:1.8;white-space:pre-wrap;overflow-wrap:anywhere"
    return f"<p dir='auto' style='{style}'><small>{name}&emsp;</small>{''.join(words)}</p>"


def _named(text: str, units: Sequence[Unit]) -> Iterator[tuple[str, int | None]]:
    """The text cut into units; opened sentences have their names, other units without characters have none."""
    for part, index in cut(text, units):
        unit = None if index is None else units[index]
        yield f" [{label(unit)}]" if unit is not None and unit.kind == "sentence" else part, index


def _word(text: str, share: float, number: str, marked: bool) -> str:
    """A word in the colour of its share, with its number; words of compounds are underlined."""
    below = f"<sub style='font-size:0.55em'>{number}</sub>" if number else ""
    style = "text-decoration:underline dotted;" if marked else ""
    if abs(share) >= 0.02:
        colour = shade(math.copysign(abs(share) ** 0.6, share))
        style += f"background-color:{colour};color:{ink_on(colour)};padding:0.15em 0.1em;border-radius:0.2em"
    word = html.escape(safe(text))
    return (f"<span style='{style}'>{word}</span>" if style else word) + below


def _number(known: Without | None, score: float) -> str:
    """The score without a unit; empty where it is not known, or the score itself as far as it is shown."""
    text = points(known, score) if known else ""
    return "" if text.lstrip("~") == points(Without(score, True), score) else text


def _name(unit: Unit) -> str:
    return f"<bdi>{html.escape(shorten(clean(label(unit)), _ROOM))}</bdi>"
