"""How many integration points it takes until the contributions add up to the score, for three rules at every layer."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pairlens.io import PairRow
from pairlens.quadrature import Adaptive, GaussLegendre
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials, cut
from pairlens.study.papers.totals import Totals
from pairlens.study.result import Lacking, Result, small
from pairlens.study.statistics import Record, columns, distinct, group_by, means, where
from pairlens.study.views import View, static

ABOUT = CATALOGUE["convergence"]
GAUSS = (1, 2, 4, 8, 16, 32, 64)
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
MOST = 1024
"""The largest number of points of the adaptive rule; a tolerance that needs more is below the precision."""
FEW = 5
"""Pairs by default: the long sums of equal steps cost as much as everything else together."""
NAMES = {"riemann": "equal steps (Riemann)", "gauss-legendre": "Gauss–Legendre", "adaptive": "adaptive"}
MEASURES = {"error": "|sum of the matrix − score|", "gap": "gap (relative, all dimensions)"}


def study(materials: Materials) -> Result:
    """The error |Σ matrix − score| and the gap against the number of points, at every layer.

    Equal steps are taken in powers of two, each of which has all points of the one before.
    """
    lens = materials.lens
    if static(lens):
        raise Lacking("a model of static embeddings has no layers, and nothing to integrate.")
    rows = materials.few(FEW)
    views = materials.choice.by_layer(lens)
    # A CPU gains nothing from larger batches, and an interrupted run loses less with single pairs.
    encoder: Any = lens.encoder
    size = 1 if encoder.device.type == "cpu" else materials.together
    raw: list[Record] = []
    with materials.bar(len(views) * len(rows), "convergence") as bar:
        for view in views:
            for batch in cut(rows, size):
                raw += _measured(materials, view, batch)
                bar.update(len(batch))
    if not raw:
        why = next(iter(materials.left_out[views[0].label].values()))
        raise Lacking(f"none of the {len(rows)} pairs can be read. The first one: {why}")
    table = describe(raw)
    settings = materials.describe(views, len(distinct(raw, "pair")), points=materials.points)
    return Result(ABOUT, settings, table, raw, _figures(table), _sentences(table), partial(draw, table))


def _measured(materials: Materials, view: View, rows: Sequence[PairRow]) -> list[Record]:
    """Every rule on some pairs at one layer; pairs that cannot be read are noted."""
    key = materials.key("convergence", view, rows, materials.lens, points=materials.points)
    kept = materials.archive.remember(key, lambda: {"pairs": apply_rules(materials, view, rows)})
    raw: list[Record] = []
    for row, records in zip(rows, kept["pairs"], strict=True):
        if isinstance(records, str):
            materials.leave_out(view, row, records)
        else:
            raw += [{"pair": row.number, **record} for record in records]
    return raw


def apply_rules(materials: Materials, view: View, rows: Sequence[PairRow]) -> list[list[Record] | str]:
    """The records of every rule for each of the pairs, or the reason why a pair has none."""
    totals = Totals(materials, view, dict.fromkeys(text for row in rows for text in (row.a, row.b)))
    records: list[list[Record] | str] = [totals.unread(row.a, row.b) or [] for row in rows]

    def note(rule: str, asked: float) -> None:
        for row, noted in zip(rows, records, strict=True):
            if not isinstance(noted, str):
                noted.append({"layer": view.layer, "rule": rule, "asked": asked, **totals.compare(row.a, row.b)})

    count = 1
    while count <= materials.points:
        totals.refine(count)
        note("riemann", count)
        count *= 2
    for n in GAUSS:
        totals.apply(GaussLegendre(n))
        note("gauss-legendre", n)
    for tol in TOLERANCES:
        totals.apply(Adaptive(tol, max_nodes=MOST))
        note("adaptive", tol)
    return records


def describe(raw: Sequence[Record]) -> list[Record]:
    """Means and standard deviations over pairs, for every rule, layer and number of points."""
    return [
        {"rule": rule, "layer": layer, "asked": asked, "pairs": len(rows), **means(rows, "points", "error", "gap")}
        for (rule, layer, asked), rows in group_by(raw, "rule", "layer", "asked").items()
    ]


def _by_layer(table: Sequence[Record], rule: str, asked: float) -> dict[int, Record]:
    return {row["layer"]: row for row in where(table, rule=rule, asked=asked)}


def _figures(table: Sequence[Record]) -> Record:
    most = max(row["asked"] for row in where(table, rule="riemann"))
    wanted = [("riemann", 64), ("riemann", most), ("gauss-legendre", 16), ("gauss-legendre", 32)]
    wanted += [("adaptive", 1e-3), ("adaptive", 1e-5)]
    shown = ("points_mean", "error_mean", "error_sd", "gap_mean")
    figures = {}
    for rule, asked in wanted:
        for layer, row in _by_layer(table, rule, asked).items():
            figures.setdefault(f"{rule} {asked:g}", {})[f"layer {layer}"] = {name: row[name] for name in shown}
    return figures


def _sentences(table: Sequence[Record]) -> list[str]:
    most = max(row["asked"] for row in where(table, rule="riemann"))
    worst, smooth = (
        max(_by_layer(table, *rule).values(), key=lambda row: row["error_mean"])
        for rule in (("riemann", most), ("gauss-legendre", 32))
    )
    before = _by_layer(table, "riemann", most / 2)[worst["layer"]]
    adaptive = sorted(_by_layer(table, "adaptive", 1e-3).items())
    needs = [f"{row['points_mean']:.0f} at layer {layer}" for layer, row in adaptive]
    return [
        f"With {most:,} equal steps the sum of all contributions is off by {small(worst['error_mean'])} ± "
        f"{small(worst['error_sd'])} at the worst layer, {worst['layer']}. With half as many it was "
        f"{small(before['error_mean'])}.",
        f"With 32 Gauss–Legendre points it is off by {small(smooth['error_mean'])} ± {small(smooth['error_sd'])} at "
        f"the worst layer, {smooth['layer']}.",
        f"The adaptive rule reaches a gap of one in a thousand with this many points on average: {', '.join(needs)}. "
        "Points are those with derivatives; the plain forward passes that place them are not counted.",
        "The gap is the relative error in all dimensions of the embedding, the mean of both texts. Below about one "
        "in a million, the error of single precision dominates.",
    ]


def draw(table: Sequence[Record], settings: Any) -> picture.Figure:
    """The picture: the papers' error above and the gap below, a column for every rule, a line for every layer."""
    figure, axes = picture.sheet(5.6, 2, 3, width=9.6, sharex=True, sharey="row")
    layers = sorted(distinct(table, "layer"))
    colours = picture.depths(layers)
    for place, measure in enumerate(MEASURES):
        for axis, rule in zip(axes[place], NAMES, strict=True):
            for layer, colour in zip(layers, colours, strict=True):
                rows = where(table, rule=rule, layer=layer)
                x, mean, spread = columns(rows, "points_mean", f"{measure}_mean", f"{measure}_sd")
                mean = np.maximum(mean, 1e-9)
                name = picture.layer_name(layer, settings["layers"])
                axis.plot(x, mean, color=colour, marker=".", markersize=4, linewidth=1.4, label=name)
                low = np.maximum(mean - spread, mean / 10)
                axis.fill_between(x, low, mean + spread, color=colour, alpha=0.12, linewidth=0)
            axis.set_xscale("log")
            axis.set_yscale("log")
            picture.label(axis, **({"x": "integration points"} if place else {"title": NAMES[rule]}))
        picture.label(axes[place][0], y=MEASURES[measure])
    picture.legend(axes[0][0], title="layer", title_fontsize=picture.SIZE, loc="lower left", ncols=2)
    picture.caption(figure, ABOUT.title, settings, "mean ± standard deviation over pairs")
    return figure
