"""Contrasts as text, as a notebook cell, and as the two explanations of a picture."""

from __future__ import annotations

import html
import textwrap

import numpy as np

from pairlens.attribution.contrast import Contrast
from pairlens.attribution.explanation import Explanation
from pairlens.render.names import label
from pairlens.render.notebook import in_frame
from pairlens.render.text import (
    WIDTH,
    add_up,
    added,
    aligned,
    clean,
    has_gap,
    named,
    number,
    provenance,
    shorten,
    signed,
    tiny,
)

STRONGEST = 5


def summary(c: Contrast) -> str:
    """Which text is closer and the words that make it so, the texts, the equation, the units that contribute most."""
    lines = [
        lead(c),
        *textwrap.wrap(headline(c), WIDTH),
        *(named(name, text) for name, text in _texts(c).items()),
        equation(c),
        *aligned(_strongest(c)),
        *textwrap.wrap(provenance(c.a), WIDTH),
    ]
    return "\n".join(lines)


def lead(c: Contrast) -> str:
    """Which text is closer to the query, and both scores.

    Example:
        >>> from pairlens import Lens
        >>> lead(Lens().contrast("Is the coffee good?", "The coffee is great.", "The train is late."))[:21]
        'a is closer: score 0.'
    """
    scores = number(c.a.score), number(c.b.score)
    result = "both are equally close" if scores[0] == scores[1] else f"{closer(c)} is closer"
    return f"{result}: score {scores[0]} with a, {scores[1]} with b"


def closer(c: Contrast) -> str:
    """The text that is closer to the query, "a" or "b"."""
    return "a" if c.difference >= 0 else "b"


def headline(c: Contrast) -> str:
    """The words of the query that make one text closer, as one sentence; empty where there are none."""
    sign = 1 if closer(c) == "a" else -1
    reasons = [f"{name} ({signed(value)})" for name, value in _ordered(c, quoted=True) if sign * value > 0]
    return f"Mostly because of {', then '.join(reasons[:2])}." if reasons else ""


def equation(c: Contrast) -> str:
    """The identity of every contrast with its numbers: difference = units + base + gap."""
    units, base = add_up([float(c.effects.sum()), c.base], c.difference - float(tiny(c.gap)))
    parts = [("units", number(units)), ("base", number(base))]
    parts += [("gap", tiny(c.gap))] if has_gap(c) else []
    return f"difference {number(c.difference)} = {added(parts)}"


def views(c: Contrast) -> dict[str, Explanation]:
    """Both explanations under their names, for a picture or a plot that shows them side by side.

    The names are no letters: in each explanation the query is text a.
    """
    names = ("the closer text", "the other text")
    return dict(zip(names if closer(c) == "a" else reversed(names), (c.a, c.b), strict=True))


def title(c: Contrast) -> str:
    """The heading of a picture, such as "Why is one text closer? Mostly because of back, then long"."""
    sign = 1 if closer(c) == "a" else -1
    names = [name for name, value in _ordered(c, quoted=True) if sign * value > 0]
    return (
        f"Why is one text closer? Mostly because of {', then '.join(names[:2])}" if names else "Which text is closer?"
    )


def notebook(c: Contrast) -> str:
    """The HTML of a notebook cell: both explanations side by side, and a static version without scripts."""
    from pairlens.render.html import document

    return in_frame(document(views(c), title=title(c), arrange="side"), static(c))


def static(c: Contrast) -> str:
    """HTML without scripts: the sentence, the texts, the units that contribute most, the equation."""
    texts = "".join(f"<br><small>{name}&emsp;</small>{html.escape(clean(text))}" for name, text in _texts(c).items())
    rows = "".join(
        f"<tr><td style='text-align:left'><bdi>{html.escape(name)}</bdi></td><td>{value}</td></tr>"
        for name, value in _strongest(c)
    )
    return (
        "<div style='font-family:system-ui,sans-serif;padding:1rem'>"
        f"<p><b>{lead(c)}</b><br>{html.escape(headline(c))}</p><p>{texts.removeprefix('<br>')}</p>"
        f"<p>What speaks for a (+) and for b (-):</p><table><tbody>{rows}</tbody></table>"
        f"<p><b>{equation(c)}</b><br><small>{html.escape(provenance(c.a))}</small></p></div>"
    )


def _texts(c: Contrast) -> dict[str, str]:
    return {"query": c.a.text_a, "a": c.a.text_b, "b": c.b.text_b}


def _ordered(c: Contrast, *, quoted: bool = False) -> list[tuple[str, float]]:
    """The units that contribute most, strongest first, with what they contribute; `quoted` for a sentence."""
    order = np.argsort(-np.abs(c.effects), kind="stable")[:STRONGEST]
    names = [shorten(clean(label(c.units[i])), WIDTH - 20) for i in order]
    shown = [f"“{name}”" if quoted and " " in name else name for name in names]
    return [(name, float(c.effects[i])) for name, i in zip(shown, order, strict=True) if c.effects[i]]


def _strongest(c: Contrast) -> list[tuple[str, str]]:
    return [(name, signed(value)) for name, value in _ordered(c)]
