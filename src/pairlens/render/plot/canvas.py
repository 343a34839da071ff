"""Figures independent of pyplot, with positions in points: how to make, fill and save them."""

from __future__ import annotations

import io
import warnings
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from threading import RLock
from typing import Any

import matplotlib as mpl
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.text import Text

from pairlens.errors import FontWarning, InputError, choose, warn
from pairlens.io import check_folder, documents, write_file
from pairlens.render.colours import LIGHT
from pairlens.render.plot import fonts
from pairlens.render.text import clean

COLUMN, PAGE = 3.3, 6.9
"""Inches: the width of one column of a paper, and of two."""
TITLE, LABEL, NUMBER = 8.0, 7.0, 6.0
"""Font sizes in points: of titles, of units, and of numbers and notes."""
LINE = 1.3
"""The distance of lines of text, relative to the font size."""
MARGIN = 3.0
"""Points around the content of a figure."""
_LOCK = RLock()  # matplotlib's settings are global, so only one thread draws at a time


@dataclass(frozen=True)
class Pen:
    """Measures texts as they will be drawn, with fonts of the given families."""

    family: tuple[str, ...]
    cache: dict[tuple[str, float, str], float] = field(default_factory=dict)

    def width(self, text: str, size: float = LABEL, weight: str = "normal") -> float:
        """The width of a text in points."""
        key = text, size, weight
        if key not in self.cache:
            self.cache[key] = fonts.width(*key, self.family)
        return self.cache[key]

    def shorten(self, text: str, room: float, size: float = LABEL, weight: str = "normal") -> str:
        """The text in at most `room` points, with an ellipsis if it was cut."""
        if self.width(text, size, weight) <= room + 1e-6:  # a text with exactly its own width as room is not cut
            return text
        kept = len(text)
        while kept > 1 and self.width(text[:kept].rstrip() + "…", size, weight) > room:
            kept -= 1
        return text[:kept].rstrip() + "…"

    def wrap(self, parts: Iterable[str], room: float, size: float = NUMBER) -> list[str]:
        """The parts, joined by semicolons, on lines of at most `room` points; lines break between parts if possible."""
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
    """Set matplotlib up while a figure is drawn: no mathematics or TeX in texts, and fonts for all their characters.

    Args:
        texts: all texts of the figure.
    """
    with _LOCK:
        family = tuple(fonts.families([*texts, "0123456789.−…"]))
        with mpl.rc_context({"font.family": list(family), "text.usetex": False, "text.parse_math": False}):
            yield Pen(family)


def inches(width: float) -> float:
    """The width in points of a figure of the given width in inches; raises if that is not a possible width."""
    if not isinstance(width, int | float) or not 2 <= width <= 40:
        raise InputError(f"width must be from 2 to 40 inches, not {width!r}; a column of a paper is about {COLUMN}.")
    return float(width) * 72


def sheet(width: float, height: float) -> Figure:
    """An empty figure of the given size, which pyplot does not manage."""
    return Figure(figsize=(width / 72, height / 72), facecolor=LIGHT.paper)


def place(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """New axes at the given distances from the left and the top of a figure."""
    across, down = (float(side) * 72 for side in figure.get_size_inches())
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))


def owner(ax: Axes) -> Figure:
    """The figure of the caller's axes."""
    figure: Any = ax.figure
    while figure is not None and not isinstance(figure, Figure):
        figure = figure.figure  # the axes are in a subfigure
    if figure is None:
        raise InputError("the axes belong to no figure any more: make new ones.")
    return figure


def extent(ax: Axes) -> tuple[float, float]:
    """The width and the height of axes in points."""
    box = ax.get_window_extent()
    dots = owner(ax).dpi
    return box.width * 72 / dots, box.height * 72 / dots


def write(figure: Figure, left: float, top: float, text: str, size: float, **style: object) -> Text:
    """Write a line of text with its upper left corner at the given distances from the left and the top of a figure."""
    across, down = (float(side) * 72 for side in figure.get_size_inches())
    settings = {"color": LIGHT.ink, "va": "top", "ha": "left", **style}
    return figure.text(left / across, 1 - top / down, text, fontsize=size, **settings)  # pyright: ignore[reportArgumentType]


def write_title(figure: Figure, title: str | None, room: float, pen: Pen) -> None:
    """Write the title of a figure, if there is one, at its upper left corner."""
    if title:
        write(figure, MARGIN, MARGIN, pen.shorten(clean(title), room, TITLE, "bold"), TITLE, weight="bold")


def save(figure: Figure, path: str | Path, *, dpi: float = 300) -> Path:
    """Write a figure as .png, .svg or .pdf. SVG and PDF keep text as text, and equal figures give equal files.

    Args:
        figure: from any function of this package.
        path: the file; its suffix names the format.
        dpi: dots per inch of a PNG.
    """
    path = Path(path)
    suffix = choose("file suffix", path.suffix.lower(), documents.PLOTS)
    check_folder(path)
    texts = [text.get_text() for text in figure.findobj(Text)]
    if suffix != ".svg" and (lost := fonts.unseen(texts)):
        warn(
            f"no installed font has {' '.join(lost[:12])}{' …' * (len(lost) > 12)}: boxes stand for them in "
            f"{path.name}. Install one, such as Noto Sans CJK, or save .svg, for which the viewer brings the fonts.",
            FontWarning,
        )
    return write_file(path, _content(figure, suffix, dpi, fonts.truetype(texts)))


def _content(figure: Figure, suffix: str, dpi: float, truetype: bool) -> bytes:
    content = io.BytesIO()
    # Without dates, equal figures give equal files.
    metadata = {".svg": {"Date": None}, ".pdf": {"CreationDate": None}, ".png": {"Software": None}}[suffix]
    settings: Any = {"svg.fonttype": "none", "svg.hashsalt": "pairlens", "pdf.fonttype": 42 if truetype else 3}
    with _LOCK, mpl.rc_context(settings), warnings.catch_warnings():
        # `save` has warned already; for an SVG, the viewer may have the font.
        warnings.filterwarnings("ignore", "Glyph .* missing", UserWarning)
        figure.savefig(content, format=suffix[1:], dpi=dpi, metadata=metadata, facecolor=figure.get_facecolor())
    return content.getvalue()
