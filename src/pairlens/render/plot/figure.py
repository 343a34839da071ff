"""What every plot stands on: figures that belong to nobody else, measured in points, and files of them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
from matplotlib.figure import Figure
from matplotlib.text import Text

from pairlens.errors import FontWarning, InputError, choose
from pairlens.io import documents
from pairlens.render.colours import LIGHT
from pairlens.render.plot import fonts

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLUMN, PAGE = 3.3, 6.9
"""Inches: the width of one column of a paper, and of two."""
TITLE, LABEL, NUMBER = 8.0, 7.0, 6.0
"""Points of a title, of units and of the smallest text there is: numbers and notes."""
LINE = 1.3
"""Of a text's size: the distance of lines."""
MARGIN = 3.0
"""Points around a figure."""
_TURN = RLock()  # matplotlib's settings are the process's: where threads draw, one does at a time


@dataclass(frozen=True)
class Pen:
    """Measures texts as they will be drawn, with fonts of these families."""

    family: tuple[str, ...]
    known: dict[tuple[str, float, str], float] = field(default_factory=dict)

    def width(self, text: str, size: float = LABEL, weight: str = "normal") -> float:
        """How wide a text is, in points."""
        given = text, size, weight
        if given not in self.known:
            self.known[given] = fonts.width(*given, self.family)
        return self.known[given]

    def shorten(self, text: str, room: float, size: float = LABEL, weight: str = "normal") -> str:
        """The text in at most so many points; what is cut off leaves an ellipsis."""
        if self.width(text, size, weight) <= room + 1e-6:  # what was given as much as it needs is not cut for rounding
            return text
        kept = len(text)
        while kept > 1 and self.width(text[:kept].rstrip() + "…", size, weight) > room:
            kept -= 1
        return text[:kept].rstrip() + "…"

    def wrap(self, parts: Iterable[str], room: float, size: float = NUMBER) -> list[str]:
        """The parts with semicolons between them on lines of at most so many points, broken between parts first."""
        lines: list[str] = []
        for part in parts:
            if lines and self.width(f"{lines[-1]}; {part}", size) <= room:
                lines[-1] += f"; {part}"
                continue
            lines.append("")
            for word in part.split(" "):
                longer = f"{lines[-1]} {word}".lstrip()
                if lines[-1] and self.width(longer, size) > room:
                    lines.append(word)
                else:
                    lines[-1] = longer
        return lines


@contextmanager
def drawing(texts: Iterable[str]) -> Iterator[Pen]:
    """While a figure is drawn: text is never read as mathematics or TeX, and has fonts for its characters.

    Args:
        texts: all that is going to be written.
    """
    with _TURN:
        family = tuple(fonts.families([*texts, "0123456789.−…"]))
        with mpl.rc_context({"font.family": list(family), "text.usetex": False, "text.parse_math": False}):
            yield Pen(family)


def inches(width: float) -> float:
    """The width of a figure in points, if it is one."""
    if not isinstance(width, int | float) or not 2 <= width <= 40:
        raise InputError(f"width must be from 2 to 40 inches, not {width!r}; a column of a paper is about {COLUMN}.")
    return float(width) * 72


def sheet(width: float, height: float) -> Figure:
    """An empty figure of so many points, of which matplotlib's pyplot knows nothing."""
    return Figure(figsize=(width / 72, height / 72), facecolor=LIGHT.paper)


def place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at so many points from the left and the top of a figure."""
    across, down = (float(side) * 72 for side in figure.get_size_inches())
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def owner(ax: Axes) -> Figure:
    """The figure that axes of the caller's belong to."""
    figure: Any = ax.figure
    while figure is not None and not isinstance(figure, Figure):
        figure = figure.figure  # of a part of a figure
    if figure is None:
        raise InputError("the axes belong to no figure any more: make new ones.")
    return figure


def extent(ax: Axes) -> tuple[float, float]:
    """How wide and how high axes are, in points."""
    box = ax.get_window_extent()
    dots = owner(ax).dpi
    return box.width * 72 / dots, box.height * 72 / dots


def write(figure: Figure, left: float, top: float, text: str, size: float, **style: object) -> Text:
    """A line of text whose upper left corner is so many points from the left and the top of a figure."""
    across, down = (float(side) * 72 for side in figure.get_size_inches())
    settings = {"color": LIGHT.ink, "va": "top", "ha": "left", **style}
    return figure.text(left / across, 1 - top / down, text, fontsize=size, **settings)  # pyright: ignore[reportArgumentType]


def save(figure: Figure, path: str | Path, *, dpi: float = 300) -> Path:
    """Write a figure as .png, .svg or .pdf; the text of an SVG or a PDF stays text, and the same figure the same file.

    Args:
        figure: of any function here.
        path: the file; its suffix names the format.
        dpi: dots an inch of a PNG.
    """
    path = Path(path)
    suffix = choose("file suffix", path.suffix.lower(), documents.PLOTS)
    documents.check_folder(path)
    texts = [text.get_text() for text in figure.findobj(Text)]
    if suffix != ".svg" and (lost := fonts.unseen(texts)):
        warnings.warn(
            f"no installed font has {' '.join(lost[:12])}{' …' * (len(lost) > 12)}: boxes stand for them in "
            f"{path.name}. Install one, such as Noto Sans CJK, or save .svg, for which the viewer brings the fonts.",
            FontWarning,
            stacklevel=2,
        )
    with documents.whole_file(path) as file:
        file.write(_content(figure, suffix, dpi, fonts.truetype(texts)))
    return path


def _content(figure: Figure, suffix: str, dpi: float, truetype: bool) -> bytes:
    content = io.BytesIO()
    # No date, so that the same picture is the same file.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}[suffix]
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "pairlens", "pdf.fonttype": 42 if truetype else 3}
    with _TURN, mpl.rc_context(settings), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)  # told already, or the viewer's business
        figure.savefig(content, format=suffix[1:], dpi=dpi, metadata=metadata, facecolor=figure.get_facecolor())
    return content.getvalue()
