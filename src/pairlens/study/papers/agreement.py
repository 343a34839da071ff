"""Whether approximate contributions agree with exact ones, layer by layer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from pairlens.lens import Lens
from pairlens.shapes import Array
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Explained, Materials, text_tokens
from pairlens.study.result import Lacking, Result, Row
from pairlens.study.statistics import spearman
from pairlens.study.views import View

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["agreement"]
PLAIN = (("ignore", "project"), ("ignore", "shift"))
"""What is compared on one model, without training."""


def study(materials: Materials) -> Result:
    """Pearson and Spearman over token pairs, of each pair of texts, between treatments and between models."""
    compared = list(_compared(materials))
    if not compared:
        raise Lacking(
            "all treatments coincide for an adjusted model. Give a plain model, or --adjusted and --twin as well."
        )
    layers = [view.layer for view in materials.choice.sweep(materials.lens)]
    layers = list(dict.fromkeys(layers))
    raw: list[Row] = []
    for name, (terms_a, lens_a), (terms_b, lens_b) in compared:
        for layer in layers:
            one, other = (
                materials.explain(View("integrated-jacobian", layer, terms), materials.few(), lens=lens)
                for terms, lens in ((terms_a, lens_a), (terms_b, lens_b))
            )
            raw += [{"comparison": name, "layer": layer, **row} for row in _agree(one, other)]
    table = describe(raw)
    views = [View("integrated-jacobian", layer, terms) for terms in ("ignore", "project", "shift") for layer in layers]
    pairs = max(row["pairs"] for row in table)
    models = {"adjusted_model": materials.adjusted, "twin_model": materials.twin}
    settings = materials.describe(views, pairs, **{name: lens and lens.name for name, lens in models.items()})
    return Result(
        ABOUT,
        table,
        raw,
        figures=_figures(table),
        sentences=_sentences(table, materials),
        settings=settings,
        draw=lambda: draw(table, settings),
    )


def _compared(materials: Materials) -> Iterator[tuple[str, tuple[str, Lens], tuple[str, Lens]]]:
    """What is compared: a name, and a treatment and a model on either side."""
    lens = materials.lens
    if not lens.adjusted:
        for one, other in PLAIN:
            yield f"“{one}” and “{other}”, one model", (one, lens), (other, lens)
    if (materials.adjusted is None) != (materials.twin is None):
        raise Lacking("--adjusted and --twin go together: models that `pairlens adjust` has trained alike.")
    if materials.adjusted is not None and materials.twin is not None:
        for terms in ("ignore", "project"):
            yield (
                f"“{terms}” of the twin, exact of the adjusted",
                (terms, materials.twin),
                ("shift", materials.adjusted),
            )


def _agree(one: Explained, other: Explained) -> Iterator[Row]:
    """Correlations of the explanations that both sides have."""
    found = {row.number: e for row, e in other}
    for row, e in one:
        if row.number in found:
            twin = found[row.number]
            if (e.tokens_a, e.tokens_b) != (twin.tokens_a, twin.tokens_b):
                raise Lacking(
                    f"--adjusted and --twin read pair {row.number} as different tokens. They must be trained from one "
                    "model: `pairlens adjust MODEL`, and again with --plain."
                )
            a, b = text_tokens(e).ravel(), text_tokens(twin).ravel()
            yield {"pair": row.number, "token_pairs": a.size, "pearson": pearson(a, b), "spearman": spearman(a, b)}


def pearson(x: Array, y: Array) -> float | None:
    """Pearson's correlation of two arrays of one shape; None where it means nothing.

    Example:
        >>> pearson(np.array([1.0, 2.0, 3.0]), np.array([2.0, 4.0, 6.0]))
        1.0
    """
    a, b = x - x.mean(), y - y.mean()
    size = float(np.sqrt((a**2).sum() * (b**2).sum()))
    return float(np.clip(a @ b / size, -1, 1)) if size > 0 and len(a) > 2 else None


def describe(raw: Sequence[Row]) -> list[Row]:
    """Means and standard deviations over pairs of texts, for every comparison and layer."""
    groups: dict[tuple[str, int], list[Row]] = {}
    for row in raw:
        groups.setdefault((row["comparison"], row["layer"]), []).append(row)
    table = []
    for (comparison, layer), rows in groups.items():
        numbers: Row = {}
        for name in ("pearson", "spearman"):
            values = np.array([row[name] for row in rows if row[name] is not None])
            numbers[f"{name}_mean"] = float(values.mean()) if len(values) else None
            numbers[f"{name}_sd"] = float(values.std()) if len(values) else None
        table.append({"comparison": comparison, "layer": layer, "pairs": len(rows), **numbers})
    return table


def _figures(table: Sequence[Row]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for row in table:
        own = {name: row[name] for name in ("pearson_mean", "spearman_mean")}
        found.setdefault(row["comparison"], {})[f"layer {row['layer']}"] = own
    return found


def _sentences(table: Sequence[Row], materials: Materials) -> list[str]:
    said = []
    for comparison in dict.fromkeys(row["comparison"] for row in table):
        rows = [row for row in table if row["comparison"] == comparison and row["spearman_mean"] is not None]
        if not rows:
            continue
        least, most = (pick(rows, key=lambda row: row["spearman_mean"]) for pick in (min, max))
        if least["spearman_mean"] > 0.9999:
            why = ", because the two differ by a factor for the whole matrix" if "one model" in comparison else ""
            said.append(f"{comparison}: 1 at every layer{why}.")
        else:
            said.append(
                f"{comparison}: the mean Spearman correlation over token pairs goes from {least['spearman_mean']:.2f} "
                f"at layer {least['layer']} to {most['spearman_mean']:.2f} at layer {most['layer']}."
            )
    if materials.adjusted is None:
        said.append(
            "Exact contributions need a model that was adjusted: train one with `pairlens adjust`, and give it with "
            "--adjusted and its twin with --twin."
        )
    return said


def draw(table: Sequence[Row], settings: Any) -> Figure:
    """The picture: Pearson and Spearman, a line for every comparison."""
    figure, axes = picture.sheet(3.4, 1, 2, width=8.6, sharey=True)
    layers = sorted({row["layer"] for row in table})
    for axis, measure in zip(axes[0], ("pearson", "spearman"), strict=True):
        for place, comparison in enumerate(dict.fromkeys(row["comparison"] for row in table)):
            rows = [row for row in table if row["comparison"] == comparison and row[f"{measure}_mean"] is not None]
            x = np.array([row["layer"] for row in rows])
            mean, spread = (np.array([row[f"{measure}_{what}"] for row in rows]) for what in ("mean", "sd"))
            colour = picture.CATEGORIES[place]
            axis.plot(x, mean, color=colour, marker=picture.MARKERS[place], markersize=5, label=comparison)
            axis.fill_between(x, mean - spread, np.minimum(mean + spread, 1), color=colour, alpha=0.15, linewidth=0)
        axis.axhline(0, color="#888888", linewidth=0.8, zorder=0)
        axis.set_xticks(layers)
        axis.set_ylim(top=1.05)
        picture.label(axis, x="layer", title=f"{measure.capitalize()} over token pairs")
    picture.label(axes[0][0], y="correlation, mean ± sd over pairs of texts")
    picture.legend(axes[0][0], loc="best")
    picture.caption(figure, ABOUT.title, settings)
    return figure
