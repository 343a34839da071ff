"""`pairlens index DATA --out INDEX`: decompose a corpus once."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from pairlens.cli import options
from pairlens.cli.corpus import DATA, Ray, Split, Workers, cluster_of, open_index
from pairlens.cli.session import session, tell
from pairlens.errors import InputError, StoreError

if TYPE_CHECKING:
    from pairlens.corpus import Index

Data = Annotated[
    str | None,
    typer.Argument(
        help="A table: .csv, .tsv, .jsonl or .parquet, a folder of such files, or a hub dataset.", show_default=False
    ),
]
Model = Annotated[
    str | None,
    typer.Option(
        "--model",
        "-m",
        help="A hub id or a folder. By default that of the index, and of a new one all-MiniLM-L6-v2.",
        show_default=False,
    ),
]
Out = Annotated[Path, typer.Option("--out", "-o", help="The folder of the index; made if it is not there.")]
Level = Annotated[
    str | None,
    typer.Option(
        "--level",
        "-l",
        help="sentence, word or token. By default sentence.",
        rich_help_panel=options.HOW,
        show_default=False,
    ),
]
Passes = Annotated[
    int | None,
    typer.Option(
        min=4,
        help="For shapley: forward passes a text. By default 32 for sentences.",
        rich_help_panel=options.HOW,
        show_default=False,
    ),
]
Tol = Annotated[
    float | None,
    typer.Option(
        help="For methods that integrate: the largest relative gap. By default 0.001.",
        rich_help_panel=options.HOW,
        show_default=False,
    ),
]
Precision = Annotated[
    str | None,
    typer.Option(
        help="Of what is stored: float16 or float32. By default float16.",
        rich_help_panel=options.HOW,
        show_default=False,
    ),
]
TextColumn = Annotated[
    str | None, typer.Option(help="The column of texts. By default guessed.", rich_help_panel=DATA, show_default=False)
]
IdColumn = Annotated[
    str | None,
    typer.Option(help="The column of names. By default rows are numbered.", rich_help_panel=DATA, show_default=False),
]
Metadata = Annotated[
    str | None,
    typer.Option(
        help="Other columns to keep, by commas, perhaps with a type: title,year:int. By default all.",
        rich_help_panel=DATA,
        show_default=False,
    ),
]
Truncate = Annotated[
    bool,
    typer.Option("--truncate", help="Keep the beginning of texts longer than the model takes.", rich_help_panel=DATA),
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
    tol: Tol = None,
    precision: Precision = None,
    text_column: TextColumn = None,
    id_column: IdColumn = None,
    metadata: Metadata = None,
    split: Split = "train",
    truncate: Truncate = False,
    update: Annotated[bool, typer.Option("--update", help="Replace texts that have the same name.")] = False,
    delete: Annotated[
        list[str] | None, typer.Option(help="Delete the text of this name. Repeatable.", metavar="ID")
    ] = None,
    verify: Annotated[
        bool, typer.Option("--verify", help="Decompose some texts again, and compare with the index.")
    ] = False,
    sample: Annotated[int, typer.Option(min=1, help="How many texts to verify.")] = 20,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Also build what approximate search needs.")
    ] = False,
    chunk: Annotated[int, typer.Option(min=1, help="Texts that are decomposed together.")] = 64,
    ray: Ray = None,
    workers: Workers = None,
    restart: Annotated[bool, typer.Option("--restart", help="Read the data anew from its first row.")] = False,
) -> None:
    """Decompose the texts of a table once, so that every search hit can be explained from then on.

    A run that was cut off goes on where it stopped. Rows that cannot be used are listed in the index's folder, with
    line and reason.
    """
    if data is None and not (delete or verify or approximate):
        raise InputError("nothing to do: give a table of texts, or --delete, --verify or --approximate.")
    request = options.Request(
        model,
        device,
        dtype,
        False,
        method,
        layer,
        reference,
        reference_terms,
        measure,
        level or "sentence",
        1e-3 if tol is None else tol,
        None,
        None,
        passes,
        seed,
        False,
    )
    given = {"level": level, "method": method, "layer": layer, "reference": reference, "tol": tol}
    given |= {"reference_terms": reference_terms, "measure": measure, "precision": precision}
    asked = {name for name, value in given.items() if value is not None}
    asked |= {"method"} if passes is not None or seed is not None else set()
    if data is not None:
        table = _Table(data, split, text_column, id_column, _columns(metadata))
        opened = _open(out, request, asked, precision, table)
        _build(opened, table, request, truncate, update, chunk, ray, workers, restart)
    else:
        opened = _open(out, request, asked, precision, None)
    if delete:
        tell(f"{opened.delete(delete)} of {len(set(delete))} texts deleted")
    if approximate:
        opened.index_vectors()
        tell("approximate search is ready")
    if verify:
        _verify(opened, sample)


class _Table:
    """The table and the columns that the user named."""

    def __init__(
        self, data: str, split: str, text: str | None, name: str | None, metadata: dict[str, str | None] | None
    ) -> None:
        from pairlens.corpus.layout import Layout
        from pairlens.io.tables import InputTable

        self.data = InputTable(data, split)
        self._text, self._id, self._metadata = text, name, metadata
        self.layout = Layout.of(self.data, text, name, metadata)

    def fit(self, kept: dict[str, str]) -> None:
        """Read only the metadata that an index keeps."""
        from pairlens.corpus.layout import Layout

        unknown = [name for name in self._metadata or () if name not in kept]
        if unknown:
            raise InputError(
                f"the index keeps no metadata {unknown[0]!r}; it was made with {', '.join(kept) or 'none'}."
            )
        there: dict[str, str | None] = {name: kind for name, kind in kept.items() if name in self.data.columns}
        self.layout = Layout.of(self.data, self._text, self._id, there)


def _open(out: Path, request: options.Request, asked: set[str], precision: str | None, table: _Table | None) -> Index:
    """The index in the folder, checked against the settings that the user asks for, or a new one."""
    from pairlens.corpus import Index
    from pairlens.corpus.store import Store

    if table is not None and not Store.exists(out):
        lens = request.load()
        chosen = {**request.options(lens), **({} if precision is None else {"precision": precision})}
        chosen.pop("roles")
        return Index.create(out, lens, metadata=table.layout.metadata, **chosen)
    opened = open_index(out, request.model, request.device)
    if asked:
        chosen = {**request.options(opened.lens), "precision": precision}
        opened.settings.check(opened.lens, {name: chosen[name] for name in asked})
    if table is not None:
        table.fit(opened.metadata)
    return opened


def _build(
    index: Index,
    table: _Table,
    request: options.Request,
    truncate: bool,
    update: bool,
    chunk: int,
    ray: str | None,
    workers: int | None,
    restart: bool,
) -> None:
    from pairlens.cli.counting import counting
    from pairlens.corpus.ingest import IngestRun

    run = IngestRun(index, table.data, table.layout, truncate=truncate, update=update, chunk=chunk)
    with counting("indexing", table.data.count()) as advance:
        report = run(cluster=cluster_of(ray, workers, index, request.device), restart=restart, progress=advance)
    counts = f"{report.added} added, {report.updated} updated, {report.there} there before"
    tell(f"{len(index)} texts in {index.path}: {counts}")
    for what, count, more in (
        ("rows that could not be used", report.rejected, f" ({run.rejects})"),
        ("texts longer than the model takes, of which only the beginning is indexed", report.truncated, ""),
    ):
        if count:
            tell(f"{what}: {count}{more}", "warning: ", "yellow")


def _verify(index: Index, sample: int) -> None:
    from pairlens.cli.session import busy

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
