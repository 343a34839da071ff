"""What a terminal shows of an explanation, and readers of its parts."""

import io
import re
from itertools import takewhile
from typing import Literal

from rich.console import Console

from pairlens.render.terminal import view

NUMBER = r"(?<=\s)(?:[+-]?\d*\.\d+|[·0])(?=\s|$)"


def show(e, width=80, *, top=5, colour: Literal["standard", "256", "truecolor"] | None = None, **options) -> str:
    """The characters that rich prints, with escape sequences only if a colour system is given."""
    file = io.StringIO()
    console = Console(
        file=file,
        width=width,
        force_terminal=colour is not None,
        color_system=colour,
        highlight=False,
        legacy_windows=False,
    )
    console.print(view(e, width=width, top=top, **options))
    return file.getvalue()


def table(shown: str) -> tuple[list[str], list[list[float]]]:
    """The column labels and the rows of numbers of the matrix."""
    lines = shown.splitlines()
    start = next(i for i, line in enumerate(lines) if re.match(r"[ab] \\ [ab]", line))
    stop = next(i for i, line in enumerate(lines) if i > start and not line.strip())
    rows = [
        [0.0 if number in "·0" else float(number) for number in re.findall(NUMBER, line)]
        for line in lines[start + 1 : stop]
    ]
    return lines[start].split()[3:], rows


def pairs_of(shown: str) -> list[str]:
    """The lines that list the strongest pairs."""
    return [line for line in shown.splitlines() if re.match(r"\s*\d+  .*[│|]", line)]


def marked(shown: str, name: str) -> list[tuple[str, list[int]]]:
    """The words of a text, each with the numbers below it."""
    lines = shown.splitlines()
    start = next(i for i, line in enumerate(lines) if line.startswith(f"{name}  "))
    words = [(match.start(), match.group()) for match in re.finditer(r"\S+", lines[start]) if match.start() > 2]
    words_with_ranks: list[tuple[str, list[int]]] = [(word, []) for _, word in words]
    for line in takewhile(lambda line: re.fullmatch(r"[\s\d]+", line), lines[start + 1 :]):
        for match in re.finditer(r"\d+", line):
            word = max(i for i, (place, _) in enumerate(words) if place <= match.start())
            words_with_ranks[word][1].append(int(match.group()))
    return words_with_ranks
