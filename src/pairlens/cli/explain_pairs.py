"""`pairlens explain-pairs PAIRS --index INDEX -o OUT`: millions of pairs, explained from an index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairlens.cli import options
from pairlens.cli.corpus import IndexModel, Ray, Split, Workers, cluster_of, open_index
from pairlens.cli.session import session, tell
from pairlens.errors import InputError

Queries = Annotated[
    bool | None,
    typer.Option(
        "--queries/--ids",
        help="Whether column a holds texts or names. By default texts where it is called query.",
        show_default=False,
    ),
]


@session()
def explain_pairs(
    pairs: Annotated[
        str, typer.Argument(help="A table: .csv, .tsv, .jsonl or .parquet, or a hub dataset.", show_default=False)
    ],
    index: Annotated[Path, typer.Option("--index", "-i", help="The folder of the index.")],
    output: Annotated[Path, typer.Option("--output", "-o", help="The folder of the results.")],
    column_a: Annotated[str | None, typer.Option(help="The column of side a.", show_default=False)] = None,
    column_b: Annotated[str | None, typer.Option(help="The column of side b.", show_default=False)] = None,
    queries: Queries = None,
    split: Split = "train",
    model: IndexModel = None,
    device: options.Device = None,
    top: Annotated[int, typer.Option(min=1, help="How many of the strongest pairs to keep.")] = 8,
    special: Annotated[bool, typer.Option("--special", help="Special tokens may be among those.")] = False,
    ray: Ray = None,
    workers: Workers = None,
    restart: Annotated[bool, typer.Option("--restart", help="Forget what an earlier run has done.")] = False,
) -> None:
    """Explain pairs of texts of an index: columns id_a and id_b, or query and id.

    Writes one row a pair as Parquet: score, sums, gaps, and the strongest pairs by their characters. A run that was
    cut off goes on where it stopped.
    """
    from pairlens.cli.counting import counting
    from pairlens.corpus.pairs import PairRequests
    from pairlens.corpus.pairs import explain_pairs as explain
    from pairlens.io.tables import InputTable

    if (column_a is None) != (column_b is None):
        raise InputError("--column-a and --column-b go together: give both or none.")
    columns = None if column_a is None or column_b is None else (column_a, column_b)
    table = PairRequests.of(InputTable(pairs, split), columns, queries=queries)
    opened = open_index(index, model, device)
    with counting("explaining", table.data.count()) as advance:
        outcome = explain(
            opened,
            table,
            output,
            top=top,
            special=special,
            cluster=cluster_of(ray, workers, opened, device),
            restart=restart,
            progress=advance,
        )
    tell(f"{outcome.explained} pairs explained: {output}")
    if outcome.rejected:
        tell(f"rows that could not be used: {outcome.rejected} ({outcome.rejects})", "warning: ", "yellow")
