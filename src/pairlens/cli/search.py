"""`pairlens search INDEX QUERY`: the nearest texts, each with its explanation."""

from __future__ import annotations

import json as json_format
import math
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from pairlens.cli import options
from pairlens.cli.corpus import IndexModel, open_index
from pairlens.cli.explain import Text, read_text
from pairlens.cli.session import busy, session, tell, warn_of, write_out
from pairlens.errors import ReferenceWarning

if TYPE_CHECKING:
    from rich.text import Text as Line

    from pairlens.corpus import Hit

SHOWN = 3
"""Strongest pairs that are listed with a hit."""
TITLE = 60
"""Columns of a title in a saved picture."""
Folder = Annotated[Path, typer.Argument(help="The folder of the index.")]
Level = Annotated[str, options.how("--level", "-l", help="The units of the query: word, token or sentence.")]
Zoom = Annotated[
    bool, options.how("--zoom/--no-zoom", help="Whether to go from the sentences of the hits to the words that matter.")
]
Save = Annotated[
    Path | None,
    typer.Option("--save", "-s", help="Also write the hits as an interactive picture: .html.", metavar="FILE"),
]


@session()
def search(
    index: Folder,
    query: Text,
    k: Annotated[int, typer.Option("-k", min=1, help="How many hits.")] = 10,
    where: Annotated[str | None, typer.Option(help="A condition on metadata, such as: metadata.year > 2000")] = None,
    approximate: Annotated[
        bool, typer.Option("--approximate", help="Do not compare with every text; needs pairlens index --approximate.")
    ] = False,
    why_not: Annotated[
        str | None, typer.Option(help="Instead, say what keeps the text of this name below the last hit.", metavar="ID")
    ] = None,
    model: IndexModel = None,
    device: options.Device = None,
    level: Level = "word",
    zoom: Zoom = True,
    save: Save = None,
    json: Annotated[bool, typer.Option("--json", help="Print the hits as JSON and nothing else.")] = False,
) -> None:
    """Search an index; every hit is explained.

    Each hit comes with its score, the sentence that contributes most, and the strongest pairs.

    Examples:
      pairlens search index "Is the coffee bad?" -k 5
      pairlens search index "Is the coffee bad?" --save hits.html
    """
    text = read_text(query)
    from pairlens.errors import choose
    from pairlens.io import check_folder, documents

    if save is not None:
        choose("file suffix", save.suffix.lower(), (documents.PICTURE,))
        check_folder(save)
    opened = open_index(index, model, device)
    how: dict[str, Any] = {"where": where, "approximate": approximate, "level": level, "zoom": zoom}
    if why_not is not None:
        with busy("searching"):
            contrast = opened.why_not(text, why_not, k, **how)
        shown, arrange = {"hit": contrast.a, "not": contrast.b}, "side"
        typer.echo(f"{contrast}\na is the last of the hits, b is {why_not}")
    else:
        # Warnings about references are reported once, for all hits.
        with busy("searching"), warnings.catch_warnings(action="ignore", category=ReferenceWarning):
            hits = opened.search(text, k, **how)
            shown, arrange = {_label(hit): hit.explanation for hit in hits}, "list"
        if json:
            write_out(json_format.dumps([_plain(hit) for hit in hits], ensure_ascii=False, indent=2) + "\n")
        else:
            _show(hits)
        if opened.settings.reference_terms == "project":
            vague = sum(abs(hit.explanation.base) > abs(hit.score) / 2 for hit in hits)
            warn_of("hits whose base is more than half of the score, so that the pairs say little", vague)
    if save is not None and shown:
        from pairlens.render import html

        html.save(shown, save, title=text, arrange=arrange)
        tell(f"saved {save}")


def _plain(hit: Hit) -> dict[str, Any]:
    """A hit as JSON types."""
    unit, value = hit.passage
    pairs = [
        {
            "a": pair.a.text,
            "b": pair.b.text,
            "b_start": pair.b.start,
            "b_end": pair.b.end,
            "value": pair.value,
            "error": pair.error,
        }
        for pair in hit.top(8)
    ]
    return {
        "rank": hit.rank,
        "id": hit.id,
        "score": hit.score,
        "text": hit.text,
        "parent": hit.parent,
        "metadata": dict(hit.metadata),
        "passage": {"text": unit.text, "start": unit.start, "end": unit.end, "value": value},
        "pairs": pairs,
    }


def _show(hits: list[Hit]) -> None:
    """Print the hits in the terminal."""
    from rich.console import Console

    console = Console(highlight=False)
    if not hits:
        tell("nothing was found")
    for hit in hits:
        console.print(*listing(hit, console.width), "", sep="\n", soft_wrap=True)
    if hits:
        tell("below a hit: the sentence that contributes most, then the strongest pairs; ± if their order is not sure")


def listing(hit: Hit, width: int) -> list[Line]:
    """A hit in a few lines: rank, score, id and title; the strongest sentence; the strongest pairs.

    Sentences and pairs stand after what they contribute. A pair with the strongest sentence does not repeat it. A pair
    shows its standard error where that is more than the difference to a neighbour in the list.

    Args:
        hit: the hit.
        width: columns of the terminal.
    """
    import textwrap

    from rich.text import Text as Line

    from pairlens.render.headline import standing_out
    from pairlens.render.names import label
    from pairlens.render.terminal.style import cell_style
    from pairlens.render.text import clean, columns, shorten, signed

    unit, value = hit.passage
    pairs = standing_out(hit.explanation, SHOWN)
    peak = max(abs(number) for number in (value, *(pair.value for pair in pairs))) or 1.0
    room = max(20, width - 16)

    def line(number: float, text: str, style: str) -> Line:
        return Line.assemble("     ", (f" {signed(number)} ", cell_style(number / peak)), "  ", (text, style))

    start = f"{hit.rank:>3}  ", f"{hit.score:.4f}", f"  {clean(hit.id)}"
    title = shorten(clean(hit.title), max(width - columns("".join(start)) - 2, 10)) if hit.title else ""
    first, *rest = textwrap.wrap(clean(unit.text), room, max_lines=4, placeholder=" …")
    lines = [Line.assemble((start[0], "dim"), (start[1], "bold"), start[2], (f"  {title}", "italic"))]
    lines += [line(value, first, "bold"), *(Line(" " * 15 + more, "bold") for more in rest)]
    for i, pair in enumerate(pairs):
        steps = [abs(abs(pair.value) - abs(other.value)) for other in (*pairs[i - 1 : i], *pairs[i + 1 : i + 2])]
        error = f"±{pair.error:.4f}  " if pair.error > min(steps, default=math.inf) else ""
        a = shorten(clean(pair.a.text), room // 2)
        if (pair.b.start, pair.b.end) == (unit.start, unit.end):
            whole = " as a whole" if pair.b.kind == "sentence" else ""
            lines.append(line(pair.value, f"{error}{a} · this sentence{whole}", "dim"))
        else:
            b = shorten(clean(label(pair.b)), max(room - columns(error + a) - 3, 10))
            lines.append(line(pair.value, f"{error}{a} · {b}", "dim"))
    return lines if pairs else [*lines, Line("      no pair stands out from the noise", "dim")]


def _label(hit: Hit) -> str:
    """The hit's id and the beginning of its title."""
    from pairlens.render.text import clean, shorten

    return " · ".join([hit.id, *([shorten(clean(hit.title), TITLE)] if hit.title else [])])
