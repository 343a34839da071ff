"""A progress bar for commands that work through the rows of a table, and their message on an interruption."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import typer

from pairlens.cli.session import messages, tell


@contextmanager
def counting(label: str, total: int | None) -> Iterator[Callable[[int], None]]:
    """A progress bar on terminals; yields a function to call with the number of rows that were finished.

    Args:
        label: the text before the bar.
        total: the number of rows, or None where it is not known.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = messages()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total)
        try:
            yield lambda rows: progress.advance(task, rows)
        except KeyboardInterrupt as error:
            tell("interrupted; what is done is kept. Give the same command again to go on.")
            raise typer.Exit(130) from error
