"""`pairlens study NAME`: analyses of whole data sets, each into its own folder of OUT."""

from __future__ import annotations

import typer

from pairlens.cli.help import Command, Group
from pairlens.cli.study import adjustment, faithfulness, papers

app = typer.Typer(cls=Group, help="Analyses of whole data sets.", no_args_is_help=True)
papers.register(app)
for command in (faithfulness.faithfulness, adjustment.adjustment):
    app.command(cls=Command)(command)


@app.callback()
def _studies() -> None:
    """Analyses of whole data sets."""
