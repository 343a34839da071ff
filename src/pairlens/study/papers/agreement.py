"""Whether approximate contributions agree with exact ones, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from pairlens.lens import Lens
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Explained, Materials, text_tokens
from pairlens.study.result import Lacking, Result
from pairlens.study.statistics import Record, columns, distinct, group_by, means, pearson, spearman

ABOUT = CATALOGUE["agreement"]
PLAIN = (("ignore", "project"), ("ignore", "shift"))
"""The reference terms that are compared on one model, without training."""
CORRELATIONS = ("pearson", "spearman")


def study(materials: Materials) -> Result:
    """Pearson and Spearman over the token pairs of each pair of texts, between treatments and between models."""
    compared = list(_compared(materials))
    if not compared:
        raise Lacking(
            "all treatments coincide for an adjusted model. Give a plain model, or --adjusted and --twin as well."
        )
    by_layer = partial(materials.choice.by_layer, materials.lens)
    raw: list[Record] = []
    for name, *sides in compared:
        for view in by_layer():
            one, other = (
                materials.explain(replace(view, reference_terms=terms), materials.few(), lens=lens)
                for terms, lens in sides
            )
            raw += [{"comparison": name, "layer": view.layer, **row} for row in _agree(one, other)]
    table = describe(raw)
    views = [view for terms in ("ignore", "project", "shift") for view in by_layer(terms)]
    models = {"adjusted_model": materials.adjusted, "twin_model": materials.twin}
    names = {name: lens and lens.name for name, lens in models.items()}
    settings = materials.describe(views, max(row["pairs"] for row in table), **names)
    return Result(ABOUT, settings, table, raw, _figures(table), _sentences(table, materials), partial(draw, table))


def _compared(materials: Materials) -> Iterator[tuple[str, tuple[str, Lens], tuple[str, Lens]]]:
    """The comparisons: a name, and reference terms and a model on either side."""
    lens, adjusted, twin = materials.lens, materials.adjusted, materials.twin
    if not lens.adjusted:
        for one, other in PLAIN:
            yield f"“{one}” and “{other}”, one model", (one, lens), (other, lens)
    if (adjusted is None) != (twin is None):
        raise Lacking("--adjusted and --twin go together: models that `pairlens adjust` has trained alike.")
    if adjusted is not None and twin is not None:
        for terms in ("ignore", "project"):
            yield f"“{terms}” of the twin, exact of the adjusted", (terms, twin), ("shift", adjusted)


def _agree(one: Explained, other: Explained) -> Iterator[Record]:
    """The correlations of pairs that are explained on both sides."""
    others = {row.number: e for row, e in other}
    for row, e in one:
        if row.number in others:
            twin = others[row.number]
            if (e.tokens_a, e.tokens_b) != (twin.tokens_a, twin.tokens_b):
                raise Lacking(
                    f"--adjusted and --twin read pair {row.number} as different tokens. They must be trained from one "
                    "model: `pairlens adjust MODEL`, and again with --plain."
                )
            a, b = text_tokens(e), text_tokens(twin)
            yield {"pair": row.number, "token_pairs": a.size, "pearson": pearson(a, b), "spearman": spearman(a, b)}


def describe(raw: Sequence[Record]) -> list[Record]:
    """Means and standard deviations over pairs of texts, for every comparison and layer."""
    return [
        {"comparison": comparison, "layer": layer, "pairs": len(rows), **means(rows, *CORRELATIONS)}
        for (comparison, layer), rows in group_by(raw, "comparison", "layer").items()
    ]


def _figures(table: Sequence[Record]) -> Record:
    figures: Record = {}
    for row in table:
        numbers = {name: row[name] for name in ("pearson_mean", "spearman_mean")}
        figures.setdefault(row["comparison"], {})[f"layer {row['layer']}"] = numbers
    return figures


def _sentences(table: Sequence[Record], materials: Materials) -> list[str]:
    sentences = []
    for (comparison,), rows in group_by(table, "comparison").items():
        rows = [row for row in rows if row["spearman_mean"] is not None]
        if not rows:
            continue
        least, most = (pick(rows, key=lambda row: row["spearman_mean"]) for pick in (min, max))
        if least["spearman_mean"] > 0.9999:
            why = ", because the two differ by a factor for the whole matrix" if "one model" in comparison else ""
            sentences.append(f"{comparison}: 1 at every layer{why}.")
        else:
            sentences.append(
                f"{comparison}: the mean Spearman correlation over token pairs goes from {least['spearman_mean']:.2f} "
                f"at layer {least['layer']} to {most['spearman_mean']:.2f} at layer {most['layer']}."
            )
    if materials.adjusted is None:
        sentences.append(
            "Exact contributions need a model that was adjusted: train one with `pairlens adjust`, and give it with "
            "--adjusted and its twin with --twin."
        )
    return sentences


def draw(table: Sequence[Record], settings: Any) -> picture.Figure:
    """The picture: Pearson and Spearman, a line for every comparison."""
    figure, axes = picture.sheet(3.4, 1, 2, width=8.6, sharey=True)
    for axis, measure in zip(axes[0], CORRELATIONS, strict=True):
        for place, ((comparison,), rows) in enumerate(group_by(table, "comparison").items()):
            rows = [row for row in rows if row[f"{measure}_mean"] is not None]
            x, mean, spread = columns(rows, "layer", f"{measure}_mean", f"{measure}_sd")
            axis.plot(x, mean, markersize=5, label=comparison, **picture.series(place))
            low, high = mean - spread, np.minimum(mean + spread, 1)
            axis.fill_between(x, low, high, color=picture.CATEGORIES[place], alpha=0.15, linewidth=0)
        picture.guide(axis)
        axis.set_xticks(sorted(distinct(table, "layer")))
        axis.set_ylim(top=1.05)
        picture.label(axis, x="layer", title=f"{measure.capitalize()} over token pairs")
    picture.label(axes[0][0], y="correlation, mean ± sd over pairs of texts")
    picture.legend(axes[0][0], loc="best")
    picture.caption(figure, ABOUT.title, settings)
    return figure
