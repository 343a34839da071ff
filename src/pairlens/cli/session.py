"""Messages of all commands: errors and warnings of the library, and progress, on standard error."""

from __future__ import annotations

import os
import sys
import time
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager, nullcontext
from pathlib import Path
from typing import TYPE_CHECKING, Any

import typer

from pairlens.errors import InputError, PairlensError, PairlensWarning

if TYPE_CHECKING:
    from rich.console import Console

PATIENCE = 1.0
"""Seconds before a progress bar appears."""


@contextmanager
def session() -> Iterator[None]:
    """Turn the library's errors into one line and an exit code, and its warnings into one line each.

    Exit codes: 2 for input that cannot be used, 1 for other errors of the library, 130 for an interruption. Any other
    exception is a bug and keeps its traceback.
    """
    with warnings.catch_warnings():
        if not sys.warnoptions:
            warnings.simplefilter("ignore")  # other packages' warnings are meant for programmers
        warnings.simplefilter("always", PairlensWarning)
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
            # The reader of the output has gone. Python would raise again when it closes the stream.
            os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
            raise typer.Exit(1) from error


def messages() -> Console:
    """The console on standard error, for everything but results."""
    from rich.console import Console

    return Console(stderr=True)


def tell(message: str, label: str = "", style: str = "") -> None:
    """Write one line to standard error. Brackets in it are text, not markup."""
    from rich.text import Text

    console = messages()
    # In a pipe or a file a message is never wrapped.
    console.print(Text.assemble((label, style), message), soft_wrap=not console.is_terminal, highlight=False)


def count_of(count: int, noun: str) -> str:
    """A number of things in words.

    Example:
        >>> count_of(1, "pair"), count_of(2, "pair")
        ('1 pair', '2 pairs')
    """
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def warn_of(what: str, count: int, more: str = "") -> None:
    """Write a warning of what was counted, unless the count is 0."""
    if count:
        tell(f"{what}: {count}{more}", "warning: ", "yellow")


def warn_of_rows(count: int, example: Mapping[str, Any], path: Path) -> None:
    """Write a warning of rejected rows, with the line and the reason of one of them, and the file that lists all."""
    tell(
        f"rows that could not be used: {count}, such as line {example['line']}: {example['reason']} ({path})",
        "warning: ",
        "yellow",
    )


def write_out(result: str) -> None:
    """Write a result to standard output, in UTF-8 whatever the terminal's encoding is."""
    sys.stdout.buffer.write(result.encode())
    sys.stdout.flush()


def busy(message: str) -> AbstractContextManager[object]:
    """Within this context show a spinner with a message, in a terminal only."""
    console = messages()
    return console.status(message) if console.is_terminal else nullcontext()


@contextmanager
def measured(message: str) -> Iterator[None]:
    """Show a spinner with a message and, after a second, a progress bar; in a terminal only."""
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


@contextmanager
def resumable(begun: Callable[[], bool], kept: str = "what is done is kept") -> Iterator[None]:
    """Say on an interruption what is kept, and that the same command resumes.

    Args:
        begun: whether anything is kept by then.
        kept: what is kept, and where.
    """
    try:
        yield
    except KeyboardInterrupt as error:
        outcome = f"{kept}. Give the same command again to go on." if begun() else "nothing was done yet."
        tell(f"interrupted; {outcome}")
        raise typer.Exit(130) from error


@contextmanager
def counting(label: str, total: int | None, done: int = 0) -> Iterator[Callable[[int], None]]:
    """A progress bar on terminals; yields a function to call with the number of rows that were finished.

    Args:
        label: the text before the bar.
        total: the number of rows, or None where it is not known.
        done: rows that an earlier run has finished.
    """
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

    columns = TextColumn(label), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn()
    console = messages()
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("", total=total, completed=done)
        yield lambda rows: progress.advance(task, rows)
