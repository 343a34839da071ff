"""`pairlens explain A B`: explain one pair, in the terminal, as JSON or in files."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Annotated

import typer

from pairlens.cli import options
from pairlens.cli.session import measured, session, tell, write_out
from pairlens.errors import InputError

Text = Annotated[
    str,
    typer.Argument(
        help="A text; @FILE for the text in a file; or - for standard input. For a text that begins with @, write @@. "
        "Put -- before texts that begin with -."
    ),
]
Save = Annotated[
    list[Path] | None,
    typer.Option(
        "--save",
        "-s",
        help="Also write a file: .html is the interactive picture; .png, .svg and .pdf are the heat map; .json, .npz, "
        ".csv and .parquet are data. Repeatable.",
        metavar="FILE",
    ),
]


@session()
def explain(
    a: Text,
    b: Text,
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
    strict: options.Strict = False,
    top: Annotated[int, typer.Option(min=1, help="How many of the strongest pairs to list.")] = 8,
    special: Annotated[
        bool, typer.Option("--special", help="Show every special token, such as [CLS], instead of their sum.")
    ] = False,
    save: Save = None,
    json: Annotated[bool, typer.Option("--json", help="Print the result as JSON and nothing else.")] = False,
) -> None:
    """Why does the model find two texts as similar as it does?

    Prints the score, a sentence, the strongest pairs of words, and a matrix of all pairs.

    Examples:
      pairlens explain "The coffee here is not good." "This coffee is bad."
      pairlens explain @first.txt @second.txt --level sentence --save why.html
    """
    if a == b == "-":
        raise InputError("only one of the two texts can come from standard input.")
    text_a, text_b = read_text(a), read_text(b)
    from pairlens.io import documents

    files = [documents.check(path, picture=True) for path in save or []]
    request = options.Request.of(locals())
    lens = request.load()
    with measured("explaining"):
        e = lens.explain(text_a, text_b, **request.options(lens))
    for path in files:
        e.save(path)
    if json:
        write_out(documents.to_json(e))
        return
    from rich.console import Console

    from pairlens.render.terminal import view

    console = Console(highlight=False)
    console.print(view(e, width=console.width, top=top, special=special, ascii_only=console.options.ascii_only))
    for path in files:
        tell(f"saved {path}")


def read_text(given: str) -> str:
    """The text that an argument stands for: itself, the content of a file, or standard input."""
    try:
        if given == "-":
            return sys.stdin.buffer.read().decode("utf-8-sig").rstrip("\r\n")
        if given.startswith("@@"):
            return given[1:]
        if given.startswith("@"):
            return Path(given[1:]).read_text(encoding="utf-8-sig").rstrip("\r\n")
        given.encode()  # an argument that is not UTF-8 holds surrogates
    except UnicodeError as error:
        raise InputError(f"{given!r:.60} is not text in UTF-8: {error}.") from error
    except OSError as error:
        hint = f" For a text that begins with @, write @{given[:40]}."
        raise InputError(f"cannot read the file {given[1:]!r}: {error.strerror}.{hint}") from error
    return given
