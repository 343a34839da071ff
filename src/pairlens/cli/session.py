"""What every command shares: where messages go, and how errors and warnings of the library are told."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import typer

from pairlens.errors import FontWarning, InputError, PairlensError, ReferenceWarning, TruncationWarning

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 1.0
"""Seconds after which a person wants to know how long it will take."""


@contextmanager
def session() -> Iterator[None]:
    """Around a command: the library's errors become one line and an exit code, its warnings a line each.

    Exit codes: 2 for input that cannot be used, 1 for everything else that went wrong, 130 for an interruption. An
    exception that is not the library's own is a bug, and keeps its traceback.
    """
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")  # other packages' warnings are for programmers
        for category in (TruncationWarning, ReferenceWarning, FontWarning):
            warnings.simplefilter("always", category)
        warnings.showwarning = lambda message, *_: tell(str(message), "warning: ", "yellow")
        try:
            yield
        except PairlensError as error:
            tell(str(error), "error: ", "bold red")
            raise typer.Exit(2 if isinstance(error, InputError) else 1) from error
        except KeyboardInterrupt as error:
            tell("interrupted")
            raise typer.Exit(130) from error
        except BrokenPipeError as error:
            # Whoever read our output has stopped. Python would complain once more when it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from error


def messages() -> Console:
    """The console for everything but results: standard error."""
    from rich.console import Console

    return Console(stderr=True)


def tell(message: str, label: str = "", style: str = "") -> None:
    """Write one line to standard error; brackets in it are text, not markup."""
    from rich.text import Text

    console = messages()
    # In a pipe or a file a message stays one line.
    console.print(Text.assemble((label, style), message), soft_wrap=not console.is_terminal, highlight=False)


@contextmanager
def busy(message: str) -> Iterator[None]:
    """Show that something is under way, where a person is watching."""
    console = messages()
    if console.is_terminal:
        with console.status(message):
            yield
    else:
        yield


@contextmanager
def measured(message: str) -> Iterator[None]:
    """Likewise, and if it takes longer than a second, how far it is."""
    console = messages()
    if not console.is_terminal:
        yield
        return
    from rich.progress_bar import ProgressBar
    from rich.table import Table

    from pairlens import progress

    start = time.monotonic()
    with console.status(message) as status:

        def show(done: float) -> None:
            if time.monotonic() - start < PATIENCE:
                return
            line = Table.grid(padding=(0, 1))
            line.add_row(message, ProgressBar(1, done, width=30), f"{done:.0%}")
            status.update(line)

        with progress.watch(show):
            yield
