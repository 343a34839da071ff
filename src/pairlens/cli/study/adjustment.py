"""`pairlens study adjustment`: what the papers' adjustment costs, base by base."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens import __version__
from pairlens.cli import adjust
from pairlens.cli.session import resumable, session, tell
from pairlens.cli.study.papers import split_names
from pairlens.errors import InputError

if TYPE_CHECKING:
    from pairlens.study.adjustment.table import AdjustmentTable


@session()
def adjustment(
    data: adjust.Data,
    dev: Annotated[str, typer.Option(help="Pairs that choose the best epoch.")],
    test: Annotated[str, typer.Option(help="Pairs that the table is about.")],
    out: Annotated[Path, typer.Option("--out", "-o", help="The results go to the folder OUT/adjustment.")],
    bases: Annotated[
        str | None,
        typer.Option(
            help="Models to begin with, with commas between. By default the papers' five.", show_default=False
        ),
    ] = None,
    seeds: Annotated[int, typer.Option(min=1, help="How many trainings of each kind, with seeds 0, 1 and so on.")] = 3,
    jobs: Annotated[int, typer.Option(min=1, help="How many trainings run at a time.")] = 1,
    keep_models: Annotated[
        bool, typer.Option("--keep-models", help="Leave the trained models in OUT/adjustment/models.")
    ] = False,
    epochs: adjust.Epochs = 5,
    batch_size: adjust.BatchSize = 16,
    lr: adjust.Rate = 2e-5,
    weight_decay: adjust.Decay = 0.1,
    warmup: adjust.Warmup = 0.1,
    device: adjust.Device = None,
    precision: adjust.Precision = "float32",
    max_score: adjust.MaxScore = None,
    column_a: adjust.ColumnA = None,
    column_b: adjust.ColumnB = None,
    column_score: adjust.ColumnScore = None,
    restart: adjust.Restart = False,
) -> None:
    """The papers' Table 1: train each base adjusted and not, with either objective, and compare on the test split.

    Give the same command again to go on after an interruption; it may have further bases or seeds.

    Examples:
      pairlens study adjustment -d train.csv --dev dev.csv --test test.csv -o out
      pairlens study adjustment -d a.csv --dev b.csv --test c.csv -o out --jobs 2
    """
    columns = adjust.both_columns(column_a, column_b)
    adjust.silence_downloads()
    from pairlens.adjusted.data import check_evaluation, read_pairs
    from pairlens.adjusted.recipe import Recipe
    from pairlens.io import make_folder, require, require_pyarrow
    from pairlens.study.adjustment.table import PAPERS_BASES
    from pairlens.study.adjustment.trainings import line_up

    recipe: dict[str, Any] = {"epochs": epochs, "batch_size": batch_size, "lr": lr, "weight_decay": weight_decay}
    recipe |= {"warmup": warmup, "precision": precision}
    Recipe(**recipe)  # raises if a value is wrong, before the data are read
    for package in ("datasets", "accelerate"):  # before the first training, not in each
        require(package, "train")
    require_pyarrow()
    read: dict[str, Any] = {"columns": columns, "score": column_score, "max_score": max_score}
    splits = {"train": read_pairs(data, **read)}
    for name, path, split in (("dev", dev, "validation"), ("test", test, "test")):
        splits[name] = check_evaluation(read_pairs(path, split=split, **read))
    recipe = {name.replace("_", "-"): value for name, value in recipe.items()}
    given = {"data": data, "dev": dev, "test": test, "device": device, "max-score": max_score}
    given |= {"column-a": column_a, "column-b": column_b, "column-score": column_score}
    options = [f"--{name}={value}" for name, value in (recipe | given).items() if value is not None]
    asked = {"pairlens": __version__, **recipe, "data": {name: pairs.describe() for name, pairs in splits.items()}}
    names = PAPERS_BASES if bases is None else split_names(bases)
    if not names:
        raise InputError("--bases names no model: give hub ids or folders, with commas between them.")
    folder = make_folder(out / "adjustment", "--out")
    table = _work(folder, line_up(names, seeds), options, asked, jobs=jobs, keep_models=keep_models, restart=restart)
    _show(table)
    _save(table, folder)


def _work(
    folder: Path, trainings: list[Any], options: list[str], asked: dict[str, Any], *, restart: bool, **more: Any
) -> AdjustmentTable:
    """Run the trainings that are not in the journal; `more` goes to `train_all`."""
    from pairlens.io import Journal
    from pairlens.study.adjustment.table import AdjustmentTable
    from pairlens.study.adjustment.trainings import train_all

    with Journal(folder / "journal.jsonl", asked, restart=restart) as journal:
        done = sum(1 for _ in journal.records())
        if done:
            tell(f"going on after {done} trainings")
        models = folder / "models"
        with resumable(lambda: models.is_dir() or any(journal.records())):
            records = train_all(trainings, models, options, journal, report=tell, **more)
        if models.is_dir() and not any(models.iterdir()):
            models.rmdir()
    return AdjustmentTable(records, asked)


def _save(table: AdjustmentTable, folder: Path) -> None:
    """Write the table's files and name them."""
    saved = table.save(folder)
    for path in saved:
        tell(f"saved {path}")
    if not any(path.suffix == ".png" for path in saved):
        tell(
            "no picture, as matplotlib is not installed: pip install 'pairlens[study]', and give the same command again"
        )


def _show(table: AdjustmentTable) -> None:
    """Print the table to the terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table as Grid

    from pairlens.study.adjustment.table import HEADER

    grid = Grid(box=box.SIMPLE_HEAD, pad_edge=False)
    for number, name in enumerate(HEADER):
        grid.add_column(name, justify="left" if number < 3 else "right")
    for cells in table.cells:
        grid.add_row(*cells)
    console = Console(highlight=False)
    console.print(grid)
    console.print()
    for sentence in table.cost_sentences:
        console.print(sentence, markup=False)
