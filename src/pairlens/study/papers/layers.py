"""One pair of texts at every layer, side by side."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.io.tables import Row as PairRow
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials, text_tokens
from pairlens.study.result import Lacking, Result, Row, percent, signed
from pairlens.study.statistics import mean_of, spearman
from pairlens.study.views import View, static
from pairlens.text import words

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["layers"]
LONGEST = 12
"""Words of a text that still fits into a small picture."""


def study(materials: Materials) -> Result:
    """The words of one pair at every layer: the pair that was asked for, or a short one whose layers differ most."""
    lens = materials.lens
    if static(lens):
        raise Lacking("a model of static embeddings has no layers.")
    terms = materials.choice.terms(lens)[0]
    views = [view for view in materials.choice.sweep(lens) if view.reference_terms == terms]
    row, chosen = _choose(materials, views)
    shown = {view: materials.explain(view, [row])[0][1] if view not in chosen else chosen[view] for view in views}
    shown = {view: e.at("word") for view, e in shown.items()}
    last = shown[views[-1]]
    table = [_record(view, e, last) for view, e in shown.items()]
    settings = materials.describe(views, 1, pair=row.number, text_a=row.a, text_b=row.b)
    return Result(
        ABOUT,
        table,
        raw=[{"pair": row.number, "view": view.label, **cell} for view, e in shown.items() for cell in cells(e)],
        figures={"score": last.score, "negative": {r["view"]: r["negative"] for r in table}},
        sentences=_sentences(materials, row, table),
        settings=settings,
        draw=lambda: draw({f"layer {view.layer}": e for view, e in shown.items()}, row, last.score, settings),
    )


def _choose(materials: Materials, views: Sequence[View]) -> tuple[PairRow, dict[View, Explanation]]:
    """The pair to show, and those of its explanations that choosing needed."""
    if materials.pair is not None:
        return find(materials, materials.pair), {}
    found: dict[int, dict[View, Explanation]] = {}
    for view in views:
        for row, e in materials.explain(view, materials.few()):
            found.setdefault(row.number, {})[view] = e
    whole = [row for row in materials.few() if len(found.get(row.number, ())) == len(views)]
    if not whole:
        raise Lacking("none of the pairs could be explained at every layer.")
    short = [row for row in whole if max(len(words(row.a)), len(words(row.b))) <= LONGEST] or whole[:1]
    best = min(short, key=lambda row: likeness([text_tokens(e) for e in found[row.number].values()]))
    return best, found[best.number]


def find(materials: Materials, number: int) -> PairRow:
    """The pair with this number."""
    for row in materials.rows:
        if row.number == number:
            return row
    numbers = ", ".join(str(row.number) for row in materials.rows[:8])
    raise Lacking(f"pair {number} is not among those of this run; some that are: {numbers}.")


def likeness(matrices: Sequence[np.ndarray]) -> float:
    """How much neighbouring layers are alike: the mean of their Spearman correlations, 1 for a single layer.

    Example:
        >>> a = np.arange(4.0)
        >>> likeness([a, a, -a])
        0.0
    """
    found = mean_of([spearman(one, other) for one, other in pairwise(matrices)])
    return 1.0 if found is None else found


def cells(e: Explanation) -> list[Row]:
    """The entries of a matrix, one row each."""
    return [
        {"text_a": a.text, "text_b": b.text, "value": float(e.matrix[i, j])}
        for i, a in enumerate(e.units_a)
        for j, b in enumerate(e.units_b)
    ]


def _record(view: View, e: Explanation, last: Explanation) -> Row:
    own = text_tokens(e)
    strongest, weakest = np.unravel_index(own.argmax(), own.shape), np.unravel_index(own.argmin(), own.shape)
    a, b = ([unit.text for unit in units if unit.kind == "text"] for units in (e.units_a, e.units_b))
    return {
        "view": view.label,
        "layer": view.layer,
        "score": e.score,
        "pairs_sum": float(e.matrix.sum()),
        "base": e.base,
        "gap": e.gap,
        "negative": float((own < 0).mean()),
        "strongest": f"{a[strongest[0]]} / {b[strongest[1]]}",
        "strongest_value": float(own.max()),
        "lowest": f"{a[weakest[0]]} / {b[weakest[1]]}",
        "lowest_value": float(own.min()),
        "spearman_with_last": spearman(own, text_tokens(last)),
    }


def _sentences(materials: Materials, row: PairRow, table: Sequence[Row]) -> list[str]:
    why = (
        f"of the short pairs among the first {len(materials.few())}, the one whose layers differ most"
        if materials.pair is None
        else "as asked for"
    )
    lowest = min(table, key=lambda own: own["lowest_value"])
    last = table[-1]
    return [
        f"Shown is pair {row.number}, {why}: “{row.a}” and “{row.b}”.",
        f"The most negative pair of words is {lowest['lowest']} with {signed(lowest['lowest_value'])} at layer "
        f"{lowest['layer']}; at layer {last['layer']} the lowest is {last['lowest']} with "
        f"{signed(last['lowest_value'])}.",
        f"Of the pairs of words, {percent(table[0]['negative'])} are negative at layer {table[0]['layer']} and "
        f"{percent(last['negative'])} at layer {last['layer']}.",
    ]


def draw(shown: dict[str, Explanation], row: PairRow, score: float, settings: dict[str, object]) -> Figure:
    """The picture: a heat map for every layer, on one scale."""
    from pairlens.render import plot

    model = str(settings["model"]).rstrip("/").rsplit("/", 1)[-1]
    title = f"{ABOUT.title}: {model}, 1 pair (number {row.number}), score {score:.3f}"
    return plot.layers(shown, width=11.0, columns=min(4, len(shown)), title=title)[0]
