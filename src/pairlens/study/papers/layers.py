"""One pair of texts at every layer, side by side."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import partial
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.attribution.explanation import Explanation
from pairlens.io import PairRow
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials, longer, text_tokens, unit_texts
from pairlens.study.result import Lacking, Result, percent, short_name, signed
from pairlens.study.statistics import Record, mean_of, spearman
from pairlens.study.views import View, static

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["layers"]
LONGEST = 12
"""The longest text that fits into a small picture, in words."""


def study(materials: Materials) -> Result:
    """The words of one pair at every layer: the pair that the user chose, or the short one whose layers differ most."""
    lens = materials.lens
    if static(lens):
        raise Lacking("a model of static embeddings has no layers.")
    views = materials.choice.by_layer(lens)
    row, explained = _choose(materials, views)
    shown = {view: e.at("word") for view, e in zip(views, explained, strict=True)}
    last = shown[views[-1]]
    table = [_record(view, e, last) for view, e in shown.items()]
    settings = materials.describe(views, 1, pair=row.number, text_a=row.a, text_b=row.b)
    raw = [{"pair": row.number, "view": view.label, **cell} for view, e in shown.items() for cell in cells(e)]
    figures = {"score": last.score, "negative": {record["view"]: record["negative"] for record in table}}
    panels = {f"layer {view.layer}": e for view, e in shown.items()}
    return Result(ABOUT, settings, table, raw, figures, _sentences(materials, row, table), partial(draw, panels))


def _choose(materials: Materials, views: Sequence[View]) -> tuple[PairRow, list[Explanation]]:
    """The pair to show, and its explanations in every view."""
    rows = materials.few() if materials.pair is None else [find(materials, materials.pair)]
    explained: dict[int, list[Explanation]] = {}
    for view in views:
        for row, e in materials.explain(view, rows):
            explained.setdefault(row.number, []).append(e)
    whole = [row for row in rows if len(explained.get(row.number, ())) == len(views)]
    if not whole:
        raise Lacking("none of the pairs could be explained at every layer.")
    short = [row for row in whole if longer(row) <= LONGEST] or whole[:1]
    best = min(short, key=lambda row: likeness([text_tokens(e) for e in explained[row.number]]))
    return best, explained[best.number]


def find(materials: Materials, number: int) -> PairRow:
    """The pair with this number."""
    for row in materials.rows:
        if row.number == number:
            return row
    numbers = ", ".join(str(row.number) for row in materials.rows[:8])
    raise Lacking(f"pair {number} is not among those of this run; some that are: {numbers}.")


def likeness(matrices: Sequence[np.ndarray]) -> float:
    """The mean Spearman correlation of neighbouring layers, 1 for a single layer.

    Example:
        >>> a = np.arange(4.0)
        >>> likeness([a, a, -a])
        0.0
    """
    mean = mean_of(spearman(one, other) for one, other in pairwise(matrices))
    return 1.0 if mean is None else mean


def cells(e: Explanation) -> list[Record]:
    """The entries of a matrix, one row each."""
    return [
        {"text_a": a.text, "text_b": b.text, "value": float(e.matrix[i, j])}
        for i, a in enumerate(e.units_a)
        for j, b in enumerate(e.units_b)
    ]


def _record(view: View, e: Explanation, last: Explanation) -> Record:
    matrix = text_tokens(e)
    a, b = unit_texts(e)
    strongest, lowest = (divmod(int(place), len(b)) for place in (matrix.argmax(), matrix.argmin()))
    return {
        "view": view.label,
        "layer": view.layer,
        "score": e.score,
        "pairs_sum": float(e.matrix.sum()),
        "base": e.base,
        "gap": e.gap,
        "negative": float((matrix < 0).mean()),
        "strongest": f"{a[strongest[0]]} / {b[strongest[1]]}",
        "strongest_value": float(matrix.max()),
        "lowest": f"{a[lowest[0]]} / {b[lowest[1]]}",
        "lowest_value": float(matrix.min()),
        "spearman_with_last": spearman(matrix, text_tokens(last)),
    }


def _sentences(materials: Materials, row: PairRow, table: Sequence[Record]) -> list[str]:
    why = (
        f"of the short pairs among the first {len(materials.few())}, the one whose layers differ most"
        if materials.pair is None
        else "as asked for"
    )
    lowest = min(table, key=lambda record: record["lowest_value"])
    last = table[-1]
    return [
        f"Shown is pair {row.number}, {why}: “{row.a}” and “{row.b}”.",
        f"The most negative pair of words is {lowest['lowest']} with {signed(lowest['lowest_value'])} at layer "
        f"{lowest['layer']}; at layer {last['layer']} the lowest is {last['lowest']} with "
        f"{signed(last['lowest_value'])}.",
        f"Of the pairs of words, {percent(table[0]['negative'])} are negative at layer {table[0]['layer']} and "
        f"{percent(last['negative'])} at layer {last['layer']}.",
    ]


def draw(shown: dict[str, Explanation], settings: Mapping[str, Any]) -> Figure:
    """The picture: a heat map for every layer, on one scale."""
    from pairlens.render import plot

    score = next(reversed(shown.values())).score
    title = f"{ABOUT.title}: {short_name(settings['model'])}, 1 pair (number {settings['pair']}), score {score:.3f}"
    return plot.layers(shown, width=11.0, columns=min(4, len(shown)), title=title)[0]
