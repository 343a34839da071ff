"""How many integration points it takes until the contributions add up to the score, for three rules at every layer."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

import pairlens
from pairlens.attribution import treatments
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.treatments import space_for
from pairlens.errors import InputError, NotConverged, ReferenceWarning, TruncationWarning
from pairlens.io.tables import Row as Pair
from pairlens.methods import Batch, Decomposition
from pairlens.methods.integrated_jacobian import IntegratedJacobian
from pairlens.model.tokenize import Text
from pairlens.quadrature.rules import Adaptive, GaussLegendre, Riemann, Rule, Table
from pairlens.shapes import Array
from pairlens.study import picture
from pairlens.study.catalogue import CATALOGUE
from pairlens.study.materials import Materials, cut
from pairlens.study.result import Lacking, Result, Row, small
from pairlens.study.views import View, static
from pairlens.text import Unit

if TYPE_CHECKING:
    from matplotlib.figure import Figure

ABOUT = CATALOGUE["convergence"]
GAUSS = (1, 2, 4, 8, 16, 32, 64)
TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5)
MOST = 1024
"""Points that the adaptive rule may take; what it does not reach with them is out of its precision's reach."""
FEW = 5
"""Pairs by default: the long sums of equal steps cost as much as everything else together."""


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
    rows = materials.few(FEW)
    terms = materials.choice.terms(lens)[0]
    views = [view for view in materials.choice.sweep(lens) if view.reference_terms == terms]
    # A GPU wants many at a time. A processor gains nothing from that, and a run that is cut off loses less of one.
    encoder: Any = lens.encoder
    size = 1 if encoder.device.type == "cpu" else materials.together
    raw: list[Row] = []
    with materials.bar(len(views) * len(rows), "convergence", " pairs") as bar:
        for view in views:
            for some in cut(rows, size):
                raw += _measured(materials, view, some)
                bar.update(len(some))
    if not raw:
        why = next(iter(materials.left_out[views[0].label].values()))
        raise Lacking(f"none of the {len(rows)} pairs can be read. The first one: {why}")
    table = describe(raw)
    settings = materials.describe(views, len({row["pair"] for row in raw}), points=materials.points)
    return Result(
        ABOUT,
        table,
        raw,
        figures=_figures(table),
        sentences=_sentences(table),
        settings=settings,
        draw=lambda: draw(table, settings),
    )


def _measured(materials: Materials, view: View, rows: Sequence[Pair]) -> list[Row]:
    """Every rule on some pairs at one layer; pairs that cannot be read are left out, and noted."""
    lens = materials.lens
    key = {
        "what": "convergence",
        "pairlens": pairlens.__version__,
        "model": lens.encoder.fingerprint,
        "dtype": lens.encoder.precision,
        "measure": materials.measure,
        **view.options,
        "points": materials.points,
        "pairs": [[row.a, row.b] for row in rows],
    }
    found = materials.archive.remember(key, lambda: {"pairs": _rules(materials, view, rows)})["pairs"]
    for row, own in zip(rows, found, strict=True):
        if isinstance(own, str):
            materials.left_out.setdefault(view.label, {})[row.number] = own
    return [
        {"pair": row.number, **line}
        for row, own in zip(rows, found, strict=True)
        if not isinstance(own, str)
        for line in own
    ]


def _rules(materials: Materials, view: View, rows: Sequence[Pair]) -> list[list[Row] | str]:
    """What every rule gives for each of the pairs, or why a pair has none."""
    totals = Totals(materials, view, dict.fromkeys(text for row in rows for text in (row.a, row.b)))
    found: list[list[Row] | str] = [totals.unread(row.a, row.b) or [] for row in rows]

    def note(rule: str, asked: float) -> None:
        for row, own in zip(rows, found, strict=True):
            if not isinstance(own, str):
                own.append({"layer": view.layer, "rule": rule, "asked": asked, **totals.compare(row.a, row.b)})

    count = 1
    while count <= materials.points:
        totals.refine(count)
        note("riemann", count)
        count *= 2
    for n in GAUSS:
        totals.take(GaussLegendre(n))
        note("gauss-legendre", n)
    for tol in TOLERANCES:
        totals.take(Adaptive(tol, max_nodes=MOST))
        note("adaptive", tol)
    return found


@dataclass
class Total:
    """The sum of all contributions of one text, (dim,), by whichever rule was taken last, and its number of points."""

    text: Text
    decomposition: Decomposition = field(init=False)
    sum: Array = field(init=False)
    points: int = field(init=False)

    def contributions(self, space: str) -> Contributions:
        """The sum, as contributions of one unit."""
        reference, embedding = self.decomposition.reference, self.decomposition.embedding
        target = embedding - reference
        size = float(np.linalg.norm(target))
        return Contributions(
            text=self.text.text,
            units=(Unit(self.text.text, 0, len(self.text.text)),),
            tokens=self.text.tokens,
            values=self.sum[None],
            error=np.zeros(1),
            reference=reference,
            embedding=embedding,
            output=self.decomposition.output.astype(np.float64),
            gap=float(np.linalg.norm(self.sum - target)) / size if size else 0.0,
            settings={"space": space},
        )


class Totals:
    """Sums of all contributions of some texts; those of one length are integrated together."""

    def __init__(self, materials: Materials, view: View, texts: Iterable[str]) -> None:
        self.encoder: Any = materials.lens.encoder
        self._method = IntegratedJacobian(view.layer or 0)
        self._terms, self._measure = view.reference_terms, str(materials.measure)
        self._space = self.encoder.space(None, space_for(self._terms, self._measure))
        self._totals: dict[str, Total] = {}
        self._unread: dict[str, str] = {}
        for text in texts:
            try:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", TruncationWarning)
                    self._totals[text] = Total(self.encoder.read(text))
            except InputError as error:
                self._unread[text] = str(error)
        self._groups: dict[int, list[Total]] = {}
        for total in self._totals.values():
            self._groups.setdefault(len(total.text.tokens), []).append(total)

    def unread(self, a: str, b: str) -> str | None:
        """Why a pair cannot be read, if it cannot."""
        own = [f"text {side}: {self._unread[t]}" for side, t in (("a", a), ("b", b)) if t in self._unread]
        return own[0] if own else None

    def take(self, rule: Rule) -> None:
        """Use a rule; a text for which it does not reach its tolerance keeps what was reached before."""
        for group in self._groups.values():
            self._take(group, rule)

    def _take(self, group: Sequence[Total], rule: Rule) -> None:
        labels = [[0] * len(total.text.tokens) for total in group]
        try:
            batch = Batch([t.text for t in group], labels, [1] * len(group), self._space)
            solved = self._method.decompose(self.encoder, batch, rule)
        except NotConverged:
            # In single precision the tightest tolerances are out of reach at the first layers. Halves of the group tell
            # for which of its texts.
            middle = len(group) // 2
            for half in (group[:middle], group[middle:]) if middle else ():
                self._take(half, rule)
            return
        for total, decomposition in zip(group, solved, strict=True):
            total.decomposition = decomposition
            total.sum, total.points = decomposition.values[0], decomposition.nodes

    def refine(self, count: int) -> None:
        """Use `count` equal steps, a power of two, after half as many."""
        totals = self._totals.values()
        halves = [total.sum / 2 for total in totals] if count > 1 else [0.0] * len(totals)
        self.take(Odd(count))
        for total, half in zip(totals, halves, strict=True):
            total.sum, total.points = half + total.sum, count

    def compare(self, a: str, b: str) -> Row:
        """The papers' error and the gap of a pair, with the points that a text took on average."""
        one, other = self._totals[a], self._totals[b]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ReferenceWarning)
            e = treatments.explain(
                one.contributions(self._space),
                other.contributions(self._space),
                reference_terms=self._terms,
                measure=self._measure,
            )
        return {"points": (one.points + other.points) / 2, "error": abs(e.gap), "gap": (e.gap_a + e.gap_b) / 2}


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
