"""`pairlens study faithfulness`: which explanation is true, on the user's model and data."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens import __version__
from pairlens.cli import options
from pairlens.cli.session import session, tell
from pairlens.cli.study import papers
from pairlens.errors import InputError
from pairlens.model.bundled import DEFAULT_MODEL

if TYPE_CHECKING:
    from pairlens.io.pairs import PairTable
    from pairlens.study.faithfulness import FaithfulnessResult

WHAT = "What to judge"
WIDE = 120
"""The width of a terminal, in columns, from which on intervals are shown."""
SHOWN = ("shapley", "leave_one_out", "deletion", "sanity", "stability", "gap", "cost", "seconds")


@session()
def faithfulness(
    data: Annotated[Path, typer.Option("--data", "-d", help="Pairs of texts: .csv, .tsv, .jsonl or .parquet.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The results go to the folder OUT/faithfulness.")],
    model: options.Model = None,
    device: options.Device = None,
    dtype: options.Dtype = "float32",
    measure: options.Measure = None,
    column_a: Annotated[str | None, typer.Option(help="The column of text a.", show_default=False)] = None,
    column_b: Annotated[str | None, typer.Option(help="The column of text b.", show_default=False)] = None,
    limit: Annotated[int, typer.Option(min=1, help="How many pairs, drawn at random.")] = 200,
    seed: Annotated[int, typer.Option(min=0, help="Of everything that is drawn.")] = 0,
    methods: Annotated[
        str | None,
        typer.Option(help="Some of the methods and rivals, by commas. By default all.", rich_help_panel=WHAT),
    ] = None,
    layers: Annotated[
        str | None,
        typer.Option(
            help="Layers of integrated-jacobian. By default 0, the middle and the last but one.", rich_help_panel=WHAT
        ),
    ] = None,
    reference_terms: Annotated[
        str, typer.Option(help="Reference terms of integrated-jacobian.", rich_help_panel=WHAT)
    ] = "project,ignore",
    passes: Annotated[
        str | None, typer.Option(help="Forward passes of shapley, by commas.", rich_help_panel=WHAT)
    ] = None,
    paths: Annotated[
        str | None, typer.Option(help="Random paths of fade, by commas, such as 4,8.", rich_help_panel=WHAT)
    ] = None,
    tol: options.Tol = 1e-3,
    checks: Annotated[
        int, typer.Option(min=0, help="Pairs that also get the costly measures: sanity, stability, cost.")
    ] = 10,
    restart: Annotated[bool, typer.Option("--restart", help="Forget what an earlier run has done.")] = False,
) -> None:
    """Which explanation is true? Judge methods and rivals by what the model says when words are really deleted.

    A run that was cut off goes on where it stopped.
    """
    from pairlens.io.pairs import PairTable

    if (column_a is None) != (column_b is None):
        raise InputError("--column-a and --column-b go together: give both or none.")
    source = PairTable(data, None if column_a is None or column_b is None else (column_a, column_b))
    chosen: dict[str, Any] = {
        "methods": _names(methods),
        "layers": _numbers("--layers", layers),
        "reference_terms": _names(reference_terms),
        "passes": _numbers("--passes", passes),
        "paths": _numbers("--paths", paths),
        "tol": tol,
    }
    asked = {"dtype": dtype, "measure": measure, "limit": limit, "seed": seed, "checks": checks, **chosen}
    result, folder = _judge(source, out, model, device, asked, chosen, restart)
    _show(result)
    for path in result.save(folder):
        tell(f"saved {path}")


def _judge(
    source: PairTable,
    out: Path,
    model: str | None,
    device: str | None,
    asked: dict[str, Any],
    chosen: dict[str, Any],
    restart: bool,
) -> tuple[FaithfulnessResult, Path]:
    """Run the judge, or resume an interrupted run; returns the result and its folder."""
    from pairlens.io.files import make_folder
    from pairlens.io.journal import Journal
    from pairlens.study import files

    files.require_matplotlib()  # fail before the work, not after it
    pairs = [(row.a, row.b) for row in papers.sample_pairs(source, asked["limit"], asked["seed"])]
    lens = options.load_lens(model, device, asked["dtype"])
    from pairlens.study.faithfulness import JudgeSettings, judge, make_candidates

    given = {name: value for name, value in chosen.items() if value is not None}
    candidates = make_candidates(lens, seed=asked["seed"], **given)
    settings = JudgeSettings(asked["seed"], asked["checks"], measure=asked["measure"])
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
        try:
            result = judge(lens, pairs, candidates, settings=settings, journal=journal)
        except KeyboardInterrupt as error:
            done = sum(1 for _ in journal.records())
            tell(f"interrupted after {done} of {len(pairs)} pairs. Give the same command again to go on.")
            raise typer.Exit(130) from error
    if not result.judged:
        raise InputError(f"none of the {len(pairs)} pairs could be judged: {result.records[0]['skipped']}.")
    result.settings |= {"data": str(source.path), "asked": everything}
    return result, folder


def _names(given: str | None) -> list[str] | None:
    """The names in an option with commas."""
    return None if given is None else [name.strip() for name in given.split(",") if name.strip()]


def _numbers(option: str, given: str | None) -> list[int] | None:
    """The whole numbers in an option with commas."""
    try:
        return None if given is None else [int(part) for part in given.split(",") if part.strip()]
    except ValueError as error:
        raise InputError(f"{option} takes whole numbers with commas between them, such as 0,3,5; not {given!r}.") from (
            error
        )


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
    if name in ("gap", "cost", "seconds"):
        return f"{value:.0e}" if name == "gap" else f"{value:.3g}"
    digits = 3 if name == "deletion" else 2
    half = f" ±{(row[f'{name}_high'] - row[f'{name}_low']) / 2:.{digits}f}" if wide else ""
    return f"{value:.{digits}f}{half}"
