"""One pair of texts as several models see it, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

from pairlens.attribution.explanation import Explanation
from pairlens.io import PairRow
from pairlens.lens import Lens
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials, longer
from pairlens.study.papers.layers import LONGEST, cells, find
from pairlens.study.result import Lacking, Result, short_name, signed
from pairlens.study.statistics import Record
from pairlens.study.views import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["models"]


def study(materials: Materials) -> Result:
    """The words of one pair in every model, each explained by the same method."""
    lenses = _lenses(materials)
    if len(lenses) < 2:
        raise Lacking(
            "this compares models, and there is one. Give further ones with --other, or --adjusted and --twin."
        )
    row = _choose(materials)
    shown: dict[str, Explanation] = {}
    views: list[View] = []
    table: list[Record] = []
    for name, lens in lenses.items():
        view = materials.choice.standard(lens)[0]
        explained = materials.explain(view, [row], lens=lens)
        if not explained:
            raise Lacking(f"{name} cannot explain pair {row.number}: {materials.left_out[view.label][row.number]}")
        shown[name] = explained[0][1].at("word")
        views.append(view)
        table.append({"model": name, "view": view.label, **_record(shown[name])})
    settings = materials.describe(views, 1, models=list(lenses), pair=row.number, text_a=row.a, text_b=row.b)
    raw = [{"pair": row.number, "model": name, **cell} for name, e in shown.items() for cell in cells(e)]
    figures = {line["model"]: {"score": line["score"], "strongest": line["strongest"]} for line in table}
    sentences = [f"Shown is pair {row.number}: “{row.a}” and “{row.b}”."]
    sentences += [
        f"{line['model']} gives it {line['score']:.3f}; its strongest pair of words is {line['strongest']} "
        f"({signed(line['strongest_value'])}), its lowest {line['lowest']} ({signed(line['lowest_value'])})."
        for line in table
    ]
    return Result(ABOUT, settings, table, raw, figures, sentences, partial(draw, shown))


def _record(e: Explanation) -> Record:
    pairs = e.top(e.matrix.size)
    top, low = pairs[0], min(pairs, key=lambda pair: pair.value)
    return {
        "score": e.score,
        "base": e.base,
        "pairs_sum": float(e.matrix.sum()),
        "strongest": f"{top.a.text} / {top.b.text}",
        "strongest_value": top.value,
        "lowest": f"{low.a.text} / {low.b.text}",
        "lowest_value": low.value,
    }


def _lenses(materials: Materials) -> dict[str, Lens]:
    """The models by short and distinct names."""
    named: dict[str, Lens] = {}
    for lens in (materials.lens, *materials.others, materials.adjusted, materials.twin):
        if lens is None:
            continue
        name, count = short_name(lens.name), 1
        while name in named:
            count += 1
            name = f"{short_name(lens.name)} ({count})"
        named[name] = lens
    return named


def _choose(materials: Materials) -> PairRow:
    """The pair that the user chose, or the first of medium length."""
    if materials.pair is not None:
        return find(materials, materials.pair)
    return next((row for row in materials.rows if LONGEST / 2 < longer(row) <= LONGEST), materials.rows[0])


def draw(shown: dict[str, Explanation], settings: Mapping[str, Any]) -> Figure:
    """The picture: a heat map for every model, on one scale."""
    from pairlens.render import plot

    title = f"{ABOUT.title}: {len(shown)} models, 1 pair (number {settings['pair']})"
    return plot.grid(shown, width=9.0, title=title)[0]
