"""`pairlens batch pairs.csv -o out.parquet`: explain every pair of a table, resumable."""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import asdict
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens import __version__
from pairlens.cli import options
from pairlens.cli.session import count_of, counting, resumable, session, tell, warn_of, warn_of_rows
from pairlens.errors import InputError, NotConverged, NumericalError
from pairlens.model.bundled import DEFAULT_MODEL

if TYPE_CHECKING:
    from pairlens.cli.results import Record
    from pairlens.io import Journal, PairRow, PairTable
    from pairlens.lens import Lens

ROW_ERRORS = (InputError, NotConverged, NumericalError)
"""Errors that reject one row, and not the whole run."""
Chunk = Annotated[
    int,
    typer.Option(
        min=1, help="How many pairs to compute and record at a time. An interruption loses one chunk at most."
    ),
]
Strict = Annotated[
    bool, typer.Option("--strict", help="Stop at a row that cannot be used or is longer than the model takes.")
]


@session()
def batch(
    pairs: Annotated[Path, typer.Argument(help="A table: .csv, .tsv, .jsonl or .parquet.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="The result: .parquet, .csv or .jsonl.")],
    column_a: options.ColumnA = None,
    column_b: options.ColumnB = None,
    model: options.Model = None,
    device: options.Device = None,
    dtype: options.Dtype = "float32",
    level: options.Level = None,
    layer: options.Layer = None,
    method: options.Method = None,
    passes: options.Passes = None,
    seed: options.Seed = None,
    compounds: options.Compounds = None,
    exact_to_paper: options.Paper = False,
    reference: options.Reference = None,
    reference_terms: options.ReferenceTerms = None,
    measure: options.Measure = None,
    tol: options.Tol = None,
    role_a: options.RoleA = None,
    role_b: options.RoleB = None,
    top: options.Top = 8,
    special: options.Special = False,
    chunk: Chunk = 16,
    strict: Strict = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the output if there is one.")] = False,
    restart: options.Restart = False,
) -> None:
    """Explain every pair of a table.

    The texts are in columns with names such as a and b, sentence1 and sentence2, or query and document; name others
    with --column-a and --column-b. The result keeps all other columns. Rows that cannot be used go to
    OUT.rejects.csv. Give the same command again to go on after an interruption.

    Examples:
      pairlens batch pairs.csv --out why.csv
      pairlens batch pairs.jsonl --out why.jsonl --column-a left --column-b right
    """
    from pairlens.cli.results import check_output
    from pairlens.io import Journal, PairTable

    source = PairTable(pairs, options.both_columns(column_a, column_b))
    check_output(output, overwrite)
    if output.resolve() == pairs.resolve():
        raise InputError(f"{output} is the table of pairs itself. Give another --out.")
    options.tell_columns(source)
    total = 0
    for row in source.rows():
        total = row.number
        if strict and row.reason:
            raise _of_line(row, row.reason)
    if not total:
        raise InputError(f"{pairs} holds no pairs.")
    request = options.Request.of(locals())
    asked = _asked(request, source, top=top, special=special, chunk=chunk)
    part = output.with_name(f"{output.name}.part")
    with Journal(part, asked, restart=restart) as journal:
        done = journal.keep(chunk, total)
        if done:
            tell(f"going on after row {done} of {total}")
        if done < total:
            with resumable(lambda: any(journal.records()), f"{part} has what is done so far"):
                _work(journal, source, request, asked, done, total)
        _finish(journal, output, asked)
    part.unlink(missing_ok=True)


def _asked(request: options.Request, source: PairTable, **more: Any) -> dict[str, Any]:
    """All settings that the result depends on, by the names of the options."""
    settings = asdict(request)
    settings.pop("device")  # a run may resume on another device
    settings["model"] = request.model or DEFAULT_MODEL
    return {
        "pairlens": __version__,
        "input": source.fingerprint(),
        "columns": source.columns and list(source.columns),
        **settings,
        **more,
    }


def _work(
    journal: Journal, source: PairTable, request: options.Request, asked: dict[str, Any], done: int, total: int
) -> None:
    """Explain the rows that are left, chunk by chunk."""
    from pairlens.io import in_blocks

    lens = request.load()
    chosen = request.options(lens)
    with warnings.catch_warnings(action="ignore"):  # warnings are reported once, at the end
        with suppress(NotConverged, NumericalError):
            # Raises on options that cannot be used, before any row is rejected for them.
            lens.explain("one", "two", **chosen)
        with counting("explaining", total, done) as advance:
            for chunk in in_blocks(islice(source.rows(), done, None), asked["chunk"]):
                journal.append(_explain(lens, chunk, chosen, asked, advance))


def _explain(
    lens: Lens, rows: list[PairRow], chosen: dict[str, Any], asked: dict[str, Any], advance: Callable[[int], None]
) -> list[Record]:
    """A record for every row of a chunk. If a row fails, the rows after it are explained one by one."""
    from pairlens.cli.results import explained, rejected

    usable = [row for row in rows if not row.reason]
    advance(len(rows) - len(usable))
    records: dict[int, Record] = {}
    try:
        explanations = lens.explain_many([(row.a, row.b) for row in usable], progress=False, **chosen)
        for row, e in zip(usable, explanations, strict=True):
            records[row.number] = explained(row, e, asked["top"], asked["special"])
            advance(1)
    except ROW_ERRORS:
        for row in usable[len(records) :]:
            try:
                e = lens.explain(row.a, row.b, **chosen)
                records[row.number] = explained(row, e, asked["top"], asked["special"])
            except ROW_ERRORS as error:
                records[row.number] = rejected(row, str(error))
            advance(1)
    for row in rows:
        record = records.setdefault(row.number, rejected(row, row.reason))
        if asked["strict"] and "reason" in record:
            raise _of_line(row, record["reason"])
    return [records[row.number] for row in rows]


def _of_line(row: PairRow, reason: str) -> InputError:
    return InputError(f"line {row.line}: {reason.rstrip('.')}. Leave out --strict to go on without such rows.")


def _finish(journal: Journal, output: Path, asked: dict[str, Any]) -> None:
    """Write the output and the rejects from the journal, and print the counts."""
    from pairlens.cli.results import other_columns, write, write_rejected

    counts: Counter[str] = Counter()
    projected = asked["reference_terms"] in (None, "project")

    def explained_rows() -> Iterator[Record]:
        for record in journal.records():
            if "reason" not in record:
                counts["explained"] += 1
                counts["long"] += record["truncated"]
                # With effects, a large base is no sign of a matrix that says little.
                alone = projected and not record["effects_a"] and not record["effects_b"]
                counts["base"] += alone and abs(record["base"]) > abs(record["score"]) / 2
                yield record

    rejects = output.with_name(f"{output.name}.rejects.csv")
    bad = [record for record in journal.records() if "reason" in record]
    if bad:
        write_rejected(rejects, bad)
    else:
        rejects.unlink(missing_ok=True)
    write(output, explained_rows(), other_columns(journal.records()), asked)
    tell(f"{count_of(counts['explained'], 'pair')} explained: {output}")
    if bad:
        warn_of_rows(len(bad), bad[0], rejects)
    warn_of("pairs with a text longer than the model takes, of which only the beginning is explained", counts["long"])
    warn_of("pairs whose base is more than half of the score, so that the matrix says little", counts["base"])
