"""One pair of texts as several models see it, side by side."""

from __future__ import annotations

from typing import TYPE_CHECKING

from pairlens.attribution.explanation import Explanation
from pairlens.io.tables import Row as PairRow
from pairlens.lens import Lens
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials
from pairlens.study.papers.layers import LONGEST, cells, find
from pairlens.study.result import Lacking, Result, signed
from pairlens.text import words

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
    views = []
    for name, lens in lenses.items():
        view = materials.choice.standard(lens)[0]
        found = materials.explain(view, [row], lens=lens)
        if not found:
            raise Lacking(f"{name} cannot explain pair {row.number}: {materials.left_out[view.label][row.number]}")
        shown[name] = found[0][1].at("word")
        views.append(view)
    table = []
    for (name, e), view in zip(shown.items(), views, strict=True):
        top = e.top(1, special=False)[0]
        low = min(e.top(e.matrix.size, special=False), key=lambda pair: pair.value)
        table.append(
            {
                "model": name,
                "view": view.label,
                "score": e.score,
                "base": e.base,
                "pairs_sum": float(e.matrix.sum()),
                "strongest": f"{top.a.text} / {top.b.text}",
                "strongest_value": top.value,
                "lowest": f"{low.a.text} / {low.b.text}",
                "lowest_value": low.value,
            }
        )
    settings = materials.describe(views, 1, models=list(lenses), pair=row.number, text_a=row.a, text_b=row.b)
    return Result(
        ABOUT,
        table,
        raw=[{"pair": row.number, "model": name, **cell} for name, e in shown.items() for cell in cells(e)],
        figures={own["model"]: {"score": own["score"], "strongest": own["strongest"]} for own in table},
        sentences=[
            f"Shown is pair {row.number}: “{row.a}” and “{row.b}”.",
            *(
                f"{own['model']} gives it {own['score']:.3f}; its strongest pair of words is {own['strongest']} "
                f"({signed(own['strongest_value'])}), its lowest {own['lowest']} ({signed(own['lowest_value'])})."
                for own in table
            ),
        ],
        settings=settings,
        draw=lambda: draw(shown, row),
    )


def _lenses(materials: Materials) -> dict[str, Lens]:
    """The models by short names that differ."""
    lenses = [materials.lens, *materials.others]
    lenses += [lens for lens in (materials.adjusted, materials.twin) if lens is not None]
    named: dict[str, Lens] = {}
    for lens in lenses:
        short = lens.name.rstrip("/").rsplit("/", 1)[-1]
        name, count = short, 1
        while name in named:
            count += 1
            name = f"{short} ({count})"
        named[name] = lens
    return named


def _choose(materials: Materials) -> PairRow:
    """The pair that was asked for, or the first short one whose words are not too few."""
    if materials.pair is not None:
        return find(materials, materials.pair)
    lengths = {row.number: max(len(words(row.a)), len(words(row.b))) for row in materials.rows}
    return next((row for row in materials.rows if LONGEST / 2 < lengths[row.number] <= LONGEST), materials.rows[0])


def draw(shown: dict[str, Explanation], row: PairRow) -> Figure:
    """The picture: a heat map for every model, on one scale."""
    from pairlens.render import plot

    return plot.grid(shown, width=9.0, title=f"{ABOUT.title}: {len(shown)} models, 1 pair (number {row.number})")[0]
