"""`pairlens index DATA --out INDEX`: decompose a corpus once."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import timedelta
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairlens.cli import options
from pairlens.cli.corpus import DATA, Ray, Split, Workers, cluster_of, open_index, warn_of_rejects
from pairlens.cli.session import busy, messages, resumable, session, tell, warn_of
from pairlens.errors import InputError, StoreError

if TYPE_CHECKING:
    from pairlens.corpus import Index
    from pairlens.corpus.cluster import Cluster
    from pairlens.corpus.ingest import IngestRun
    from pairlens.corpus.layout import Layout
    from pairlens.corpus.workload import Pace

SETTINGS = ("level", "method", "layer", "reference", "reference_terms", "measure", "tol", "precision")
"""Options that must fit the index if it exists."""

about_data = partial(typer.Option, rich_help_panel=DATA)
Data = Annotated[
    str | None,
    typer.Argument(help="A table: .csv, .tsv, .jsonl or .parquet, a folder of such files, or a hub dataset."),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model", "-m", help="A hub id or a folder. By default that of the index, and of a new one all-MiniLM-L6-v2."
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The folder of the index; made if it is not there.")]
Level = Annotated[str | None, options.how("--level", "-l", help="sentence, word or token. By default sentence.")]
Passes = Annotated[
    int | None,
    options.how(
        min=4, help="For banzhaf and shapley: forward passes per text. By default 2 for each sentence and 6 more."
    ),
]
Precision = Annotated[
    str | None, options.how(help="The numbers that are stored: float16 or float32. By default float16.")
]
TextColumn = Annotated[str | None, about_data(help="The column of texts. By default guessed.")]
IdColumn = Annotated[
    str | None, about_data(help="The column of names, such as doc_id. By default guessed; '' numbers the rows instead.")
]
Metadata = Annotated[
    str | None,
    about_data(help="Other columns to keep, by commas, perhaps with a type: title,year:int. By default all."),
]
Passages = Annotated[
    bool, about_data("--passages", help="Split texts longer than the model takes, instead of keeping their beginning.")
]


@session()
def index(
    data: Data = None,
    *,
    out: Out,
    model: Model = None,
    device: options.Device = None,
    dtype: options.Dtype = "float32",
    level: Level = None,
    method: options.Method = None,
    layer: options.Layer = None,
    passes: Passes = None,
    seed: options.Seed = None,
    reference: options.Reference = None,
    reference_terms: options.ReferenceTerms = None,
    measure: options.Measure = None,
    tol: options.Tol = None,
    precision: Precision = None,
    text_column: TextColumn = None,
    id_column: IdColumn = None,
    metadata: Metadata = None,
    split: Split = "train",
    passages: Passages = False,
    update: Annotated[bool, typer.Option("--update", help="Replace texts that have the same name.")] = False,
    delete: Annotated[
        list[str] | None, typer.Option(help="Delete the text of this name. Repeatable.", metavar="ID")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Decompose some texts again, and compare with the index.")
    ] = False,
    sample: Annotated[int, typer.Option(min=1, help="How many texts to verify.")] = 20,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Also build the index that approximate search needs.")
    ] = False,
    chunk: Annotated[int, typer.Option(min=1, help="How many texts to compute and record at a time.")] = 16,
    ray: Ray = None,
    workers: Workers = None,
    restart: Annotated[bool, typer.Option("--restart", help="Read the data anew from its first row.")] = False,
) -> None:
    """Decompose the texts of a table once, so that every search hit can be explained from then on.

    Rows that cannot be used are listed in the index's folder, with line and reason. Give the same command again to
    go on after an interruption.

    Examples:
      pairlens index passages.csv --out index
      pairlens index more.jsonl --out index --update
    """
    if data is None and not (delete or verify or approximate):
        raise InputError("nothing to do: give a table of texts, or --delete, --verify or --approximate.")
    arguments = locals()
    request = options.Request.of({**arguments, "level": level or "sentence"})
    asked = {name for name in SETTINGS if arguments[name] is not None}
    asked |= {"method"} if passes is not None or seed is not None else set()
    if data is None:
        opened = _open(out, request, asked, precision)
    else:
        from pairlens.corpus.ingest import IngestRun
        from pairlens.corpus.layout import Layout
        from pairlens.io import InputTable

        table, named = InputTable(data, split), _columns(metadata)
        layout = Layout.of(table, text_column, id_column, named)
        if text_column is None or id_column is None:
            names = f"named by {layout.id}" if layout.id else "named by the numbers of the rows"
            tell(f"{table.name}: the texts are in the column {layout.text}, {names}")
        opened = _open(out, request, asked, precision, layout)
        layout = layout.fit(table, opened.metadata, named or ())
        run = IngestRun(opened, table, layout, passages=passages, update=update, chunk=chunk)
        _ingest(run, cluster_of(ray, workers, opened, device), restart=restart)
    if delete:
        tell(f"{opened.delete(delete)} texts deleted, {len(set(delete))} named")
    if approximate:
        opened.index_vectors()
        tell("approximate search is ready")
    if verify:
        _verify(opened, sample)


def _open(
    out: Path, request: options.Request, asked: set[str], precision: str | None, layout: Layout | None = None
) -> Index:
    """The index in the folder, checked against the settings that the user asks for, or a new one."""
    from pairlens.corpus import Index
    from pairlens.corpus.store import Store

    if layout is not None and not Store.exists(out):
        lens = request.load()
        chosen = {**request.options(lens), **({} if precision is None else {"precision": precision})}
        chosen.pop("roles")
        return Index.create(out, lens, metadata=layout.metadata, **chosen)
    opened = open_index(out, request.model, request.device)
    if asked:
        chosen = {**request.options(opened.lens), "precision": precision}
        opened.settings.check(opened.lens, {name: chosen[name] for name in asked})
    return opened


def _ingest(run: IngestRun, cluster: Cluster | None, *, restart: bool) -> None:
    """Index the texts of a table, and print the counts."""
    paces: list[Pace] = []
    with resumable(run.begun), _pacing() as progress:

        def show(pace: Pace) -> None:
            paces[:] = [pace]
            progress(pace)

        report = run(cluster=cluster, restart=restart, progress=show)
    counts = f"{report.added} added, {report.updated} updated, {report.there} there before"
    before = "" if paces else "nothing to do, this table was indexed before: "
    tell(f"{len(run.index)} texts in {run.index.path}: {before}{counts}")
    warn_of_rejects(report.rejected, run.rejects)
    more = "" if run.passages else "; --passages splits them"
    warn_of("texts longer than the model takes, of which only the beginning is indexed", report.truncated, more)


@contextmanager
def _pacing() -> Iterator[Callable[[Pace], None]]:
    """A progress bar on terminals with the time that is left; yields a function that shows how far the run is."""
    from rich.progress import BarColumn, Progress, TextColumn

    console, start = messages(), time.monotonic()
    columns = TextColumn("indexing"), BarColumn(), TextColumn("{task.description}")
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=None)

        def show(pace: Pace) -> None:
            text = describe(pace, time.monotonic() - start)
            progress.update(task, completed=pace.done, total=pace.total, description=text)

        yield show


def describe(pace: Pace, elapsed: float) -> str:
    """How far a run is, how fast, and when it will be done, from the seconds that it took so far.

    Example:
        >>> from pairlens.corpus.workload import Pace
        >>> describe(Pace(count=300, mean=2.0, rows=16, done=30.0, spared=0.0), 18.0)
        '16 of 300 texts, 1.2 s each, 0:05:42 left'
    """
    each, left = pace.per_text(elapsed), pace.left(elapsed)
    parts = [f"{pace.rows} texts" if pace.count is None else f"{pace.rows} of {pace.count} texts"]
    parts += [] if each is None else [f"{each:.2g} s each"]
    parts += [] if left is None else [f"{timedelta(seconds=round(left))} left"]
    return ", ".join(parts)


def _verify(index: Index, sample: int) -> None:
    with busy("verifying"):
        result = index.verify(sample)
    if not result.passed:
        faults = [f"{name!r} differs from what the model gives now" for name in result.wrong[:5]]
        faults += [f"{name!r} is there more than once" for name in result.doubled[:5]]
        raise StoreError(f"{index.path} is not in order: {'; '.join(faults)}.")
    tell(f"{result.checked} texts decomposed again: the largest difference is {result.difference:.1e} of an embedding")


def _columns(given: str | None) -> dict[str, str | None] | None:
    """Columns with their types, from "title,year:int"; none from ""."""
    if given is None:
        return None
    parts = [part.rpartition(":") for part in given.split(",") if part.strip()]
    return {(name or kind).strip(): kind.strip() if name else None for name, _, kind in parts}
