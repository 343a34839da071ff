"""`pairlens study faithfulness`: which explanation is true, on the user's model and data."""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens import __version__
from pairlens.cli import options
from pairlens.cli.options import both_columns
from pairlens.cli.session import resumable, session, tell
from pairlens.cli.study.papers import Given, sample_pairs, split_names, split_numbers
from pairlens.errors import InputError
from pairlens.model.bundled import DEFAULT_MODEL

if TYPE_CHECKING:
    from pairlens.io import PairTable
    from pairlens.study.faithfulness import FaithfulnessResult

what = partial(typer.Option, rich_help_panel="What to judge")
WIDE = 120
"""The width of a terminal, in columns, from which on intervals are shown."""
WILD = 10
"""From this size on, a measure is shown without digits and interval."""
SHOWN = ("r2_50", "r2_75", "r2_90", "leave_one_out", "claimed", "shapley", "cost", "passes")


@session()
def faithfulness(
    data: Annotated[Path, typer.Option("--data", "-d", help="Pairs of texts: .csv, .tsv, .jsonl or .parquet.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The results go to the folder OUT/faithfulness.")],
    model: options.Model = None,
    device: options.Device = None,
    dtype: options.Dtype = "float32",
    measure: options.Measure = None,
    column_a: options.ColumnA = None,
    column_b: options.ColumnB = None,
    level: Annotated[str, typer.Option(help="What is deleted and explained: word or token.")] = "word",
    limit: Annotated[int, typer.Option(min=1, help="How many pairs, drawn at random.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="The seed of everything that is random.")] = 0,
    methods: Annotated[
        str | None, what("--method", help="Some of the methods and rivals, with commas between. By default all.")
    ] = None,
    layers: Annotated[
        str | None,
        what(
            "--layer",
            help="Layers of integrated-jacobian, with commas between. By default 0, the middle and the last but one.",
        ),
    ] = None,
    reference_terms: Annotated[
        str, what(help="Reference terms of integrated-jacobian, fade and output.")
    ] = "keep,project,ignore",
    passes: Annotated[str | None, what(help="Forward passes of banzhaf and shapley, with commas between.")] = None,
    paths: Annotated[str | None, what(help="Random paths of fade, with commas between, such as 4,8.")] = None,
    tol: options.Tol = None,
    checks: Annotated[
        int, typer.Option(min=0, help="Pairs that also get the costly measures: sanity, stability, cost.")
    ] = 30,
    restart: options.Restart = False,
) -> None:
    """Which explanation is true? Judge methods and rivals by what the model says when words are really deleted.

    Give the same command again to go on after an interruption.

    Examples:
      pairlens study faithfulness -d pairs.csv -o out --limit 20
      pairlens study faithfulness -d pairs.csv -o out --method banzhaf,occlusion
    """
    from pairlens.io import PairTable

    source = PairTable(data, both_columns(column_a, column_b))
    chosen: Given = {
        "methods": split_names(methods),
        "layers": split_numbers("--layer", layers),
        "reference_terms": split_names(reference_terms),
        "passes": split_numbers("--passes", passes),
        "paths": split_numbers("--paths", paths),
        "tol": 1e-3 if tol is None else tol,
    }
    common = {"dtype": dtype, "measure": measure, "level": level, "limit": limit, "seed": seed, "checks": checks}
    asked = {**common, **chosen}
    result, folder = _judge(source, out, model, device, asked, chosen, restart)
    _show(result)
    for path in result.save(folder):
        tell(f"saved {path}")


def _judge(
    source: PairTable, out: Path, model: str | None, device: str | None, asked: Given, chosen: Given, restart: bool
) -> tuple[FaithfulnessResult, Path]:
    """Run the judge, or resume an interrupted run; returns the result and its folder."""
    from pairlens.io import Journal, make_folder, require_pyarrow
    from pairlens.study import files

    files.require_matplotlib()  # fail before the work, not after it
    require_pyarrow()
    pairs = [(row.a, row.b) for row in sample_pairs(source, asked["limit"], asked["seed"])]
    lens = options.load_lens(model, device, asked["dtype"])
    from pairlens.study.faithfulness import JudgeSettings, judge, make_candidates

    given = {name: value for name, value in chosen.items() if value is not None}
    candidates = make_candidates(lens, seed=asked["seed"], **given)
    settings = JudgeSettings(asked["seed"], asked["checks"], measure=asked["measure"], level=asked["level"])
    everything = {
        "pairlens": __version__,
        "data": source.fingerprint(),
        "columns": source.columns and list(source.columns),
        "model": model or DEFAULT_MODEL,
        "fingerprint": lens.encoder.fingerprint,
        **asked,
    }
    folder = make_folder(out / "faithfulness", "--out")
    with Journal(folder / "journal.jsonl", everything, restart=restart) as journal:
        done = journal.keep(1, len(pairs))
        if done:
            tell(f"going on after {done} of {len(pairs)} pairs")
        with resumable(lambda: any(journal.records())):
            result = judge(lens, pairs, candidates, settings=settings, journal=journal)
    if not result.judged:
        raise InputError(f"none of the {len(pairs)} pairs could be judged: {result.records[0]['skipped']}.")
    result.settings |= {"data": str(source.path), "asked": everything}
    return result, folder


def _show(result: FaithfulnessResult) -> None:
    """Print the table in the terminal, the best by the first column on top."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    console = Console(highlight=False)
    wide = console.width >= WIDE
    table = Table(box=box.SIMPLE_HEAD, pad_edge=False, padding=(0, 1 if wide else 0, 0, 1 if wide else 0))
    table.add_column("candidate", no_wrap=True)
    for name in SHOWN:
        table.add_column(name.replace("_", " "), justify="right", overflow="fold")
    for row in result.table:
        if row["pairs"]:
            table.add_row(row["candidate"], *(_cell(row, name, wide) for name in SHOWN))
    console.print(table)
    for row in result.table:
        if not row["pairs"]:
            console.print(Text(f"{row['candidate']} skipped: {row['skipped']}"))
    pairs, truth = result.summary["pairs"], result.summary["yardstick"]
    for what, count in (("could not be used", len(pairs["skipped"])), ("were checked", pairs["checked"])):
        tell(f"{count} of {pairs['asked']} pairs {what}")
    agreement = truth["agreement_mean"]
    sampled = "" if agreement is None else f", {truth['sampled']} sampled that agree with themselves to {agreement:.3f}"
    tell(f"the yardstick: {truth['exact']} pairs exact{sampled}")


def _cell(row: dict[str, Any], name: str, wide: bool) -> str:
    """A mean, and in a wide terminal half of the width of its interval."""
    value = row[name]
    if value is None:
        return "-"
    if name in ("cost", "passes"):
        return f"{value:.3g}"
    if abs(value) >= WILD:
        return f"{value:.0f}"
    half = f" ±{(row[f'{name}_high'] - row[f'{name}_low']) / 2:.2f}" if wide else ""
    return f"{value:.2f}{half}"
