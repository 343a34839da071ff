"""How many integration points it takes until the contributions add up to the score, for three rules at every layer."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

import pairlens
from pairlens import similarity
from pairlens.contributions import Contributions
from pairlens.errors import NotConverged, ReferenceWarning
from pairlens.integrate import Integral
from pairlens.methods.integrated_jacobian import IntegratedJacobian
from pairlens.quadrature import Adaptive, GaussLegendre, Riemann, Rule, Table
from pairlens.reading import Text
from pairlens.shapes import Array
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials
from pairlens.study.result import Lacking, Result, Row, small
from pairlens.study.views import View, static
from pairlens.tokens import Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["convergence"]
GAUSS = (1, 2, 4, 8, 16, 32, 64)
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
MOST = 1024
"""Points that the adaptive rule may take; what it does not reach with them is out of its precision's reach."""
MOST_PAIRS = 8
PART = 8
"""One in so many of the swept pairs: the long Riemann sums cost as much as everything else together."""


@dataclass(frozen=True)
class Odd(Riemann):
    """The steps that n equal steps have and n/2 do not: with half of the latter's sum they are the former's."""

    def table(self) -> Table:
        """The new nodes, with the weights of n steps."""
        nodes = (np.arange(1, self.n + 1) / self.n)[:: 2 if self.n > 1 else 1]
        weights = np.full(len(nodes), 1 / self.n)
        return Table(nodes, weights, weights)


def study(materials: Materials) -> Result:
    """The error |Σ matrix − score| and the gap against the number of points, at every layer.

    Both depend on the sum of all contributions of a text alone, so that one tangent a point is enough. Equal steps are
    taken in powers of two, of which each has all points of the one before.
    """
    lens = materials.lens
    if static(lens):
        raise Lacking("a model of static embeddings has no layers, and nothing to integrate.")
    rows = materials.rows[: min(MOST_PAIRS, max(1, -(-materials.sweep // PART)))]
    terms = materials.choice.terms(lens)[0]
    views = [view for view in materials.choice.sweep(lens) if view.reference_terms == terms]
    raw: list[Row] = []
    with materials.bar(len(views) * len(rows), "convergence", " pairs") as bar:
        for view in views:
            for row in rows:
                raw += [{"pair": row.number, **own} for own in _measure(materials, view, row.a, row.b)]
                bar.update()
    table = describe(raw)
    settings = materials.describe(views, len(rows), points=materials.points)
    return Result(
        ABOUT,
        table,
        raw,
        figures=_figures(table),
        sentences=_sentences(table),
        settings=settings,
        draw=lambda: draw(table, settings),
    )


def _measure(materials: Materials, view: View, a: str, b: str) -> list[Row]:
    """Every rule on one pair at one layer."""
    lens = materials.lens
    key = {
        "what": "convergence",
        "pairlens": pairlens.__version__,
        "model": lens._encoder.fingerprint,
        "dtype": lens._encoder.precision,
        "measure": materials.measure,
        **view.options,
        "points": materials.points,
        "pair": [a, b],
    }
    return materials.archive.remember(key, lambda: {"rows": _rules(materials, view, a, b)})["rows"]


def _rules(materials: Materials, view: View, a: str, b: str) -> list[Row]:
    sides = [Total(materials, view, text) for text in dict.fromkeys((a, b))]
    rows: list[Row] = []

    def note(rule: str, asked: float) -> None:
        one, other = sides[0].contributions(), sides[-1].contributions()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReferenceWarning)
            e = similarity.explain(one, other, reference_terms=view.reference_terms, measure=str(materials.measure))
        points = (sides[0].points + sides[-1].points) / 2
        gap = (e.gap_a + e.gap_b) / 2
        rows.append(
            {"layer": view.layer, "rule": rule, "asked": asked, "points": points, "error": abs(e.gap), "gap": gap}
        )

    count = 1
    while count <= materials.points:
        for side in sides:
            side.refine(count)
        note("riemann", count)
        count *= 2
    for n in GAUSS:
        for side in sides:
            side.take(GaussLegendre(n))
        note("gauss-legendre", n)
    for tol in TOLERANCES:
        for side in sides:
            side.take(Adaptive(tol, max_nodes=MOST))
        note("adaptive", tol)
    return rows


class Total:
    """The sum of all contributions of one text, by whichever rule was taken last."""

    def __init__(self, materials: Materials, view: View, text: str) -> None:
        self._encoder: Any = materials.lens._encoder
        self._method = IntegratedJacobian(view.layer or 0)
        self._text: Text = self._encoder.read(text)
        self._space = self._encoder.space(None, similarity.space_for(view.reference_terms, str(materials.measure)))
        self._integral: Integral
        self._output: Array
        self._steps = 0
        self._sum: Array | None = None
        self.points = 0

    def take(self, rule: Rule) -> None:
        """Use a rule; one that does not reach its tolerance leaves what was reached before."""
        labels = [[0] * len(self._text.tokens)]
        try:
            ((self._integral, self._output),) = self._method.decompose(
                self._encoder, [self._text], labels, [1], space=self._space, rule=rule
            )
        except NotConverged:
            return  # in single precision the tightest ones are out of reach at the first layers
        self._sum = self._integral.values[0]
        self.points = self._integral.nodes

    def refine(self, count: int) -> None:
        """Use `count` equal steps, a power of two, after half as many."""
        before = self._sum
        self.take(Odd(count))
        if count > 1 and before is not None and self._sum is not None:
            self._sum = before / 2 + self._sum
        self.points = count

    def contributions(self) -> Contributions:
        """The sum, as contributions of one unit."""
        integral = self._integral
        target = integral.embedding - integral.reference
        total = np.zeros_like(target) if self._sum is None else self._sum
        size = float(np.linalg.norm(target))
        return Contributions(
            text=self._text.text,
            units=(Unit(self._text.text, 0, len(self._text.text)),),
            tokens=self._text.tokens,
            values=total[None],
            error=np.zeros(1),
            reference=integral.reference,
            embedding=integral.embedding,
            output=self._output.astype(np.float64),
            gap=float(np.linalg.norm(total - target)) / size if size else 0.0,
            settings={"space": self._space},
        )


def describe(raw: Sequence[Row]) -> list[Row]:
    """Means and standard deviations over pairs, for every rule, layer and number of points."""
    groups: dict[tuple[Any, ...], list[Row]] = {}
    for row in raw:
        groups.setdefault((row["rule"], row["layer"], row["asked"]), []).append(row)
    table = []
    for (rule, layer, asked), rows in groups.items():
        numbers = {}
        for name in ("points", "error", "gap"):
            values = np.array([row[name] for row in rows])
            numbers |= {f"{name}_mean": float(values.mean()), f"{name}_sd": float(values.std())}
        table.append({"rule": rule, "layer": layer, "asked": asked, "pairs": len(rows), **numbers})
    return table


def _find(table: Sequence[Row], rule: str, asked: float) -> dict[int, Row]:
    return {row["layer"]: row for row in table if row["rule"] == rule and row["asked"] == asked}


def _figures(table: Sequence[Row]) -> dict[str, Any]:
    most = max(row["asked"] for row in table if row["rule"] == "riemann")
    wanted = [("riemann", 64), ("riemann", most), ("gauss-legendre", 16), ("gauss-legendre", 32)]
    wanted += [("adaptive", 1e-3), ("adaptive", 1e-5)]
    found = {}
    for rule, asked in wanted:
        for layer, row in _find(table, rule, asked).items():
            found.setdefault(f"{rule} {asked:g}", {})[f"layer {layer}"] = {
                name: row[name] for name in ("points_mean", "error_mean", "error_sd", "gap_mean")
            }
    return found


def _sentences(table: Sequence[Row]) -> list[str]:
    most = max(row["asked"] for row in table if row["rule"] == "riemann")
    riemann, gauss, adaptive = (
        _find(table, "riemann", most),
        _find(table, "gauss-legendre", 32),
        _find(table, "adaptive", 1e-3),
    )
    worst = max(riemann.values(), key=lambda row: row["error_mean"])
    before = _find(table, "riemann", most / 2)[worst["layer"]]
    smooth = max(gauss.values(), key=lambda row: row["error_mean"])
    needs = [f"{row['points_mean']:.0f} at layer {layer}" for layer, row in sorted(adaptive.items())]
    return [
        f"With {most:,} equal steps the sum of all contributions is off by {small(worst['error_mean'])} ± "
        f"{small(worst['error_sd'])} at the worst layer, {worst['layer']}. With half as many it was "
        f"{small(before['error_mean'])}.",
        f"With 32 Gauss–Legendre points it is off by {small(smooth['error_mean'])} ± {small(smooth['error_sd'])} at "
        f"the worst layer, {smooth['layer']}.",
        f"The adaptive rule reaches a gap of one in a thousand with so many points on average: {', '.join(needs)}. "
        "Points are those with derivatives; plain forward passes that place them are not counted.",
        "The gap is the relative error in all dimensions of the embedding, the mean of both texts. Below about one "
        "in a million, single precision itself is what is seen.",
    ]


NAMES = {"riemann": "equal steps (Riemann)", "gauss-legendre": "Gauss–Legendre", "adaptive": "adaptive"}
MEASURES = {"error": "|sum of the matrix − score|", "gap": "gap (relative, all dimensions)"}


def draw(table: Sequence[Row], settings: Any) -> Figure:
    """The picture: the papers' error above and the gap below, a column for every rule, a line for every layer."""
    figure, axes = picture.sheet(5.6, 2, 3, width=9.6, sharex=True, sharey="row")
    layers = sorted({row["layer"] for row in table})
    colours = picture.depths(layers)
    for place, measure in enumerate(MEASURES):
        for axis, rule in zip(axes[place], NAMES, strict=True):
            for layer, colour in zip(layers, colours, strict=True):
                rows = [row for row in table if row["rule"] == rule and row["layer"] == layer]
                x = [row["points_mean"] for row in rows]
                mean = np.maximum([row[f"{measure}_mean"] for row in rows], 1e-9)
                spread = np.array([row[f"{measure}_sd"] for row in rows])
                name = f"{layer} (output)" if layer == settings["layers"] else str(layer)
                axis.plot(x, mean, color=colour, marker=".", markersize=4, linewidth=1.4, label=name)
                axis.fill_between(
                    x, np.maximum(mean - spread, mean / 10), mean + spread, color=colour, alpha=0.12, linewidth=0
                )
            axis.set_xscale("log")
            axis.set_yscale("log")
            picture.label(axis, **({"x": "integration points"} if place else {"title": NAMES[rule]}))
        picture.label(axes[place][0], y=MEASURES[measure])
    picture.legend(axes[0][0], title="layer", title_fontsize=picture.SIZE, loc="lower left", ncols=2)
    picture.caption(figure, ABOUT.title, settings, "mean ± standard deviation over pairs")
    return figure
