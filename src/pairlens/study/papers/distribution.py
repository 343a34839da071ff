"""How the contributions of token pairs are distributed, layer by layer, and how many of them are negative."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from pairlens.shapes import Array
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials, text_tokens
from pairlens.study.result import Result, percent
from pairlens.study.statistics import Record, columns, distinct, group_by, where
from pairlens.study.views import View

ABOUT = CATALOGUE["distribution"]
BINS = 48
PERCENTILES = {"percentile_1": 1, "quartile_1": 25, "median": 50, "quartile_3": 75, "percentile_99": 99}
FEWEST = 2
"""Bins of a histogram with fewer token pairs are left out."""


def study(materials: Materials) -> Result:
    """Histograms of the contributions of pairs of text tokens at every layer, and the share of negative ones."""
    views = materials.choice.sweep(materials.lens)
    values: dict[View, list[Array]] = {}
    raw: list[Record] = []
    for view in views:
        explained = materials.explain(view, materials.few())
        values[view] = [text_tokens(e).ravel() for _, e in explained]
        raw += [
            {"pair": row.number, "view": view.label, **_moments(entries), "values": entries.tolist()}
            for (row, _), entries in zip(explained, values[view], strict=True)
        ]
    table = [describe(view, values[view]) for view in views if values[view]]
    settings = materials.describe(views, max((row["pairs"] for row in table), default=0))
    figures = {"negative": {row["view"]: row["negative"] for row in table}}
    sentences = _sentences(table, materials.lens.layers)
    return Result(ABOUT, settings, table, raw, figures, sentences, partial(draw, values, table))


def describe(view: View, values: Sequence[Array]) -> Record:
    """The row of one view.

    Args:
        view: how the pairs were explained.
        values: for every pair of texts, the contributions of its token pairs.
    """
    together = np.concatenate(values)
    percentiles = np.percentile(together, list(PERCENTILES.values())).tolist()
    moments = _moments(together)
    return {
        "view": view.label,
        "layer": view.layer,
        "reference_terms": view.reference_terms,
        "pairs": len(values),
        "token_pairs": moments["token_pairs"],
        "negative": moments["negative"],
        "negative_sd": float(np.std([(entries < 0).mean() for entries in values])),
        "mean": moments["mean"],
        "sd": moments["sd"],
        **dict(zip(PERCENTILES, percentiles, strict=True)),
    }


def _moments(values: Array) -> Record:
    return {
        "token_pairs": values.size,
        "negative": float((values < 0).mean()),
        "mean": float(values.mean()),
        "sd": float(values.std()),
    }


def _sentences(table: Sequence[Record], layers: int) -> list[str]:
    sentences = []
    for (terms,), rows in group_by(table, "reference_terms").items():
        inner = [row for row in rows if row["layer"] != layers]
        parts = []
        if inner:
            least, most = (pick(inner, key=lambda row: row["negative"]) for pick in (min, max))
            parts.append(
                f"between {percent(least['negative'])} (layer {least['layer']}) and {percent(most['negative'])} (layer "
                f"{most['layer']}) of the contributions of token pairs are negative"
            )
        parts += [f"{percent(row['negative'])} at the output, layer {layers}" for row in where(rows, layer=layers)]
        sentences.append(f"With reference terms “{terms}”, {', and '.join(parts)}.")
    return [*sentences, "Special tokens are left out."]


def draw(values: dict[View, list[Array]], table: Sequence[Record], settings: Any) -> picture.Figure:
    """The picture: a panel of histograms for each of the reference terms, and the share of negative contributions."""
    treatments = list(dict.fromkeys(view.reference_terms for view in values))
    figure, axes = picture.sheet(3.4, 1, len(treatments) + 1, width=3.4 * (len(treatments) + 1))
    layers = sorted(distinct(table, "layer"))
    colours = dict(zip(layers, picture.depths(layers), strict=True))
    for axis, terms in zip(axes[0], treatments, strict=False):
        shown = [
            (view, np.concatenate(entries))
            for view, entries in values.items()
            if view.reference_terms == terms and entries
        ]
        low, high = np.percentile(np.concatenate([together for _, together in shown]), [0.5, 99])
        edges = np.linspace(low, high, BINS + 1)
        middles = (edges[1:] + edges[:-1]) / 2
        for view, together in shown:
            counts, _ = np.histogram(together, edges)
            heights = np.where(counts >= FEWEST, counts / together.size, np.nan)
            name = picture.layer_name(view.layer, settings["layers"])
            axis.plot(middles, heights, color=colours[view.layer], linewidth=1.4, drawstyle="steps-mid", label=name)
        axis.axvline(0, color=picture.GUIDE, linewidth=0.8, zorder=0)
        axis.set_yscale("log")
        axis.yaxis.set_minor_formatter("")
        axis.yaxis.set_major_formatter(lambda value, _: f"{100 * value:g}\N{NO-BREAK SPACE}%")
        picture.label(axis, x="contribution of a token pair to the score", title=f"reference terms “{terms}”")
    picture.label(axes[0][0], y="share of token pairs")
    picture.legend(axes[0][0], title="layer", title_fontsize=picture.SIZE, loc="upper right")
    _negative(axes[0][-1], table, treatments)
    picture.caption(figure, ABOUT.title, settings)
    return figure


def _negative(axis: Any, table: Sequence[Record], treatments: Sequence[str]) -> None:
    """Draw the share of negative contributions by layer, with the paper's two figures."""
    for place, terms in enumerate(treatments):
        x, negative = columns(where(table, reference_terms=terms), "layer", "negative")
        axis.plot(x, negative, markersize=5, label=f"“{terms}”", **picture.series(place))
    for share, what in ((0.38, "paper, layer 11 of 12: 38 %"), (0.05, "paper, output: 5 %")):
        axis.axhline(share, color=picture.GUIDE, linewidth=0.9, linestyle=(0, (4, 2)))
        style: Any = {"ha": "center", "fontsize": picture.SIZE - 0.5, "color": picture.FAINT}
        axis.text(0.55, share + 0.01, what, transform=axis.get_yaxis_transform(), **style)
    axis.set_ylim(0, max(0.47, 1.15 * max(row["negative"] for row in table)))
    axis.set_xticks(sorted(distinct(table, "layer")))
    picture.percent(axis.yaxis)
    picture.label(axis, x="layer", y="share of negative contributions", title="negative contributions")
    picture.legend(axis, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=len(treatments))
