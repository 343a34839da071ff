"""`pairlens explain-pairs PAIRS --index INDEX --out OUT`: millions of pairs, explained from an index."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairlens.cli import options
from pairlens.cli.corpus import IndexModel, Ray, Split, Workers, cluster_of, open_index, warn_of_rejects
from pairlens.cli.session import count_of, counting, resumable, session, tell

Queries = Annotated[
    bool | None,
    typer.Option(
        "--queries/--ids",
        help="Whether column a holds texts, or names of texts of the index. By default texts if it is called query.",
    ),
]


@session()
def explain_pairs(
    pairs: Annotated[str, typer.Argument(help="A table: .csv, .tsv, .jsonl or .parquet, or a hub dataset.")],
    index: Annotated[Path, typer.Option("--index", "-i", help="The folder of the index.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="The folder of the results.")],
    column_a: Annotated[str | None, typer.Option(help="The column of text a.")] = None,
    column_b: Annotated[str | None, typer.Option(help="The column of text b.")] = None,
    queries: Queries = None,
    split: Split = "train",
    model: IndexModel = None,
    device: options.Device = None,
    top: options.Top = 8,
    special: options.Special = False,
    ray: Ray = None,
    workers: Workers = None,
    restart: options.Restart = False,
) -> None:
    """Explain pairs of texts of an index: columns id_a and id_b, or query and id.

    Writes one row per pair as Parquet: score, sums, gaps, and the strongest pairs by their characters. Give the same
    command again to go on after an interruption.

    Examples:
      pairlens explain-pairs ids.csv --index index --out explained
      pairlens explain-pairs queries.csv --index index --out explained --top 3
    """
    from pairlens.corpus.pairs import PairRequests
    from pairlens.corpus.pairs import explain_pairs as explain
    from pairlens.io import InputTable

    table = PairRequests.of(InputTable(pairs, split), options.both_columns(column_a, column_b), queries=queries)
    opened = open_index(index, model, device)
    cluster = cluster_of(ray, workers, opened, device)
    with resumable(lambda: any(output.glob("part-*.parquet"))), counting("explaining", table.data.count()) as advance:
        outcome = explain(
            opened, table, output, top=top, special=special, cluster=cluster, restart=restart, progress=advance
        )
    tell(f"{count_of(outcome.explained, 'pair')} explained: {output}")
    warn_of_rejects(outcome.rejected, outcome.rejects)
