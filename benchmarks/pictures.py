"""Draw the results of the benchmarks: from benchmarks/results into docs/images."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
from _results import FOLDER, load
from matplotlib.axes import Axes

IMAGES = Path(__file__).parents[1] / "docs" / "images"
OURS, THEIRS, THIRD, GREY = "#2166ac", "#d6604d", "#4d9221", "#8c8c8c"
STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.hashsalt": "pairlens",
    "figure.dpi": 150,
}


def results(name: str, prefix: str = "") -> dict[str, Any]:
    """The cases of a benchmark whose names begin with the prefix."""
    return {case: value for case, value in load(name)["results"].items() if case.startswith(prefix)}


def bars(ax: Axes, names: list[str], values: list[float], colour: str, form: str = "{:,.0f}") -> None:
    """Horizontal bars with their values written beside them, the first on top."""
    places = range(len(names))[::-1]
    ax.barh(list(places), values, color=colour, height=0.6)
    ax.set_yticks(list(places), names)
    for place, value in zip(places, values, strict=True):
        ax.annotate(form.format(value), (value, place), (4, 0), textcoords="offset points", va="center", fontsize=8)
    ax.tick_params(left=False)


def papers() -> None:
    """(a) Times faster than the papers' algorithm."""
    ratios = {case: value["ratio"] for case, value in sorted(results("speed", "papers").items(), reverse=True)}
    _, ax = plt.subplots(figsize=(6, 2.1))
    bars(ax, [case.split(", ")[1] for case in ratios], list(ratios.values()), OURS, "{:,.0f}x")
    ax.set_xscale("log")
    ax.set_xlim(10, 20_000)
    ax.set_xlabel("times faster than the papers' algorithm, gap 1e-3, one run")
    save("speed-papers")


def share() -> None:
    """(b) Share of the rate of matrix products."""
    cases = results("speed", "share")
    names = [f"processor, {case.split(', ')[1]}" for case in cases]
    values = [100 * value["share"] for value in cases.values()]
    if (FOLDER / "gpu.json").exists():
        for row in load("gpu").get("batch") or []:
            names.append(f"H200, batch, {row['precision']}{row.get('note', '')}")
            values.append(100 * row["share"])
    _, ax = plt.subplots(figsize=(6, 0.5 + 0.36 * len(names)))
    bars(ax, names, values, THEIRS, "{:.0f} %")
    ax.set_xlim(0, max(105, 1.12 * max(values)))
    ax.set_xlabel("tail passes' share of the matrix-product rate at the same shapes, same run, in %")
    save("speed-share")


def growth() -> None:
    """(c) Growth with tokens, layers and tol."""
    cases = results("speed", "growth")
    _, axes = plt.subplots(1, 3, figsize=(8.5, 2.6))
    for ax, name, label in ((axes[0], "tokens", "tokens"), (axes[1], "layers", "layers after ℓ")):
        case = cases[f"growth with {name}"]
        ax.loglog(case["sizes"], case["seconds"], "o-", color=OURS, markersize=4)
        ticks = case["sizes"] if name == "tokens" else [1, 2, 3, 6]
        ax.set_xticks(ticks, [f"{size:.0f}" for size in ticks])
        ax.set_xticks([], minor=True)
        ax.set_xlabel(label)
        ax.set_title(f"grows as {name}$^{{{case['exponent']:.1f}}}$", fontsize=9)
    axes[0].set_ylabel("seconds")
    case = cases["growth with tol"]
    axes[2].semilogx(case["tols"], case["nodes"], "o-", color=OURS, markersize=4)
    axes[2].invert_xaxis()
    axes[2].set_ylim(0)
    axes[2].set_xlabel("tol")
    axes[2].set_title("nodes: a few more per digit", fontsize=9)
    plt.tight_layout()
    save("speed-growth")


def pairs() -> None:
    """(c) All pairs of 10 to 1,000 texts."""
    series = results("speed", "growth with pairs")["growth with pairs"]
    _, ax = plt.subplots(figsize=(6.2, 3.6))
    for name, label, colour in (
        ("explain", "explain_many, all pairs", OURS),
        ("decompose", "decomposing the texts alone", THEIRS),
        ("known", "pairs of decomposed texts", THIRD),
        ("products", "every pair's bare product", GREY),
    ):
        label = f"{label}: {series[name][-1]:.0f} s"
        ax.loglog(series["texts"], series[name], "o-", color=colour, markersize=4, label=label)
    ax.legend(frameon=False, fontsize=9)
    labels = [f"{n:,.0f}\n{p:,.0f}" for n, p in zip(series["texts"], series["pairs"], strict=True)]
    ax.set_xticks(series["texts"], labels)
    ax.set_xticks([], minor=True)
    ax.set_xlim(series["texts"][0] * 0.8, series["texts"][-1] * 60)
    ax.set_xlabel("texts, and pairs of them")
    ax.set_ylabel("seconds, layer 5")
    plt.tight_layout()
    save("speed-pairs")


def memory() -> None:
    """(d) Time and peak memory of long texts."""
    measured = results("long_texts")
    titles = {
        "default": "sentences and words,\nthe default",
        "5": "sentences, layer 5",
        "0": "sentences, layer 0",
    }
    cases = [case for case in ("default", "5", "0") if case in measured]
    _, axes = plt.subplots(1, 2, figsize=(7.5, 1.9), sharey=True)
    bars(axes[0], [titles[case] for case in cases], [measured[case]["seconds"] for case in cases], OURS, "{:.0f} s")
    axes[0].set_xlabel("seconds")
    axes[0].margins(x=0.2)
    bars(
        axes[1], [titles[case] for case in cases], [measured[case]["peak_gib"] for case in cases], THEIRS, "{:.1f} GiB"
    )
    axes[1].set_xlabel("peak memory of the process, GiB")
    axes[1].set_xlim(0, 3)
    plt.tight_layout()
    save("speed-memory")


def others() -> None:
    """(e) Time of other methods."""
    cases = {**results("speed", "captum"), **results("speed", "shapley")}
    names = []
    for case, value in cases.items():
        kind = "Captum, all 384 dimensions" if case.startswith("captum") else "Shapley"
        names.append(
            kind if kind != "Shapley" else f"Shapley, as close as\n{case.split(', ')[1]} ({value['agreement']:.2f})"
        )
    _, ax = plt.subplots(figsize=(6, 1.9))
    bars(ax, names, [value["ratio"] for value in cases.values()], OURS, "{:.3g}x")
    ax.axvline(1, color=GREY, linewidth=0.8)
    ax.set_xscale("log")
    ax.margins(x=0.25)
    ax.set_xlabel("time, as a multiple of pairlens' own")
    save("speed-others")


def save(name: str) -> None:
    """Write the current figure."""
    plt.savefig(IMAGES / f"{name}.svg", bbox_inches="tight", metadata={"Date": None})
    plt.close()


def main() -> None:
    """Draw everything that has been measured."""
    drawings: list[Callable[[], None]] = [papers, share, growth, pairs, memory, others]
    with mpl.rc_context(STYLE):
        for draw in drawings:
            try:
                draw()
            except (KeyError, FileNotFoundError, IndexError) as error:
                print(f"{draw.__name__}: nothing to draw yet ({error!r})")


if __name__ == "__main__":
    main()
