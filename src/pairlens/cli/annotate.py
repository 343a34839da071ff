"""`pairlens annotate DATA --spacy PIPELINE -o DATA.conllu`: parts of speech, lemmas and dependencies, for studies."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from pairlens.cli import options
from pairlens.cli.session import busy, session, tell
from pairlens.errors import InputError


@session()
def annotate(
    data: Annotated[Path, typer.Argument(help="A table of pairs, or a hub dataset owner/name.")],
    spacy: Annotated[str, typer.Option(help="A spaCy pipeline: a package, such as en_core_web_sm, or a folder.")],
    output: Annotated[Path, typer.Option("--out", "-o", help="The CoNLL-U file to write.")],
    column_a: options.ColumnA = None,
    column_b: options.ColumnB = None,
    split: Annotated[str, typer.Option(help="The split of a hub dataset.")] = "test",
) -> None:
    """Annotate the texts of a table with a spaCy pipeline, for studies that need linguistics.

    Each distinct text becomes a document of the CoNLL-U file, with the characters of every word.

    Examples:
      pairlens annotate pairs.csv --spacy en_core_web_sm --out pairs.conllu
      pairlens annotate pairs.csv --spacy ./pipeline --out pairs.conllu
    """
    from pairlens.io import PairTable, check_folder
    from pairlens.study.language import parsing

    columns = options.both_columns(column_a, column_b)
    check_folder(output)
    if output.resolve() == data.resolve():
        raise InputError(f"{output} is the table itself. Give another --out.")
    source = PairTable(data, columns, split=split)
    texts = list(dict.fromkeys(text for row in source.rows() if not row.reason for text in (row.a, row.b)))
    if not texts:
        raise InputError(f"{data} holds no pairs that can be used.")
    with busy(f"annotating {len(texts):,} texts"):
        parsing.write(output, texts, parsing.load(spacy))
    tell(f"{len(texts):,} texts annotated: {output}")
