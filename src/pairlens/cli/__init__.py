"""The `pairlens` command: one file per command, and `study/` for its sub-commands.

Arguments go in; results go to standard output or files, messages to standard error, and an exit code says how it ended.
Torch and other heavy packages are imported inside the commands, so that `--help` answers at once.
"""

from __future__ import annotations

import io
import os
import sys
from typing import Annotated

import typer

from pairlens import __version__
from pairlens.cli import adjust, annotate, batch, explain, explain_pairs, index, models, search, serve, study
from pairlens.cli.help import Command, Group, examples

app = typer.Typer(
    name="pairlens",
    cls=Group,
    help="Why are these two texts this similar? Splits an embedding model's score into pairs of words.\n\n"
    "Give pairlens COMMAND --help for the options of a command.\n\n"
    + examples(
        'pairlens explain "The coffee here is not good." "This coffee is bad."',
        "pairlens batch pairs.csv --out why.csv",
    ),
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for command in (
    explain.explain,
    batch.batch,
    serve.serve,
    index.index,
    search.search,
    explain_pairs.explain_pairs,
    models.models,
    adjust.adjust,
    annotate.annotate,
):
    app.command(cls=Command)(command)
app.add_typer(study.app, name="study")


def _show_version(asked: bool) -> None:
    if asked:
        typer.echo(f"pairlens {__version__}")
        raise typer.Exit


@app.callback()
def _common(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Print the version and stop.")
    ] = False,
) -> None:
    pass


def main() -> None:
    """Run the command: the entry point of `pairlens`."""
    # Messages of transformers and tokenizers while they load are not about the user's texts. Errors are still raised.
    os.environ.setdefault("TRANSFORMERS_VERBOSITY", "error")
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            stream.reconfigure(errors="replace")  # a character that the terminal lacks becomes a question mark
    app()
