"""`pairlens study NAME`: analyses of whole data sets, each into its own folder of OUT."""

from __future__ import annotations

import typer

from pairlens.cli.study import adjustment, faithfulness, papers

app = typer.Typer(help="Analyses of whole data sets.", no_args_is_help=True)
app.command()(adjustment.adjustment)
papers.register(app)
app.command()(faithfulness.faithfulness)


@app.callback()
def _studies() -> None:
    """Analyses of whole data sets."""
