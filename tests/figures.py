"""Readers of figures that pairlens.render.plot draws, and the texts that they are drawn for."""

from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import QuadMesh
from matplotlib.patches import PathPatch
from matplotlib.text import Text

from explanations import COFFEE, LONG
from pairlens.attribution.explanation import Explanation
from pairlens.render import plot

MARKUP = r"$x$ $\frac{1}{0}$ <b>&amp;</b> _a_ ^2 100% \alpha #1 \begin{x} ${$"
TEXTS = {
    "short": COFFEE,
    "long": (LONG, LONG[:200]),
    "sixty": (" ".join(f"unit{i}" for i in range(60)), " ".join(f"other{i}" for i in range(60))),
    "one": ("coffee", "tea"),
    "markup": (MARKUP, '</script>"><img onerror=x> {0} %s'),
    "unbroken": ("x" * 300, "y " * 30),
    "hebrew": ("הקפה הזה לא טוב", "القهوة هنا ليست جيدة"),
}
KINDS: dict[str, Any] = {"heatmap": plot.heatmap, "links": plot.links}


def cells(ax) -> Any:
    """The coloured cells of a heat map."""
    (mesh,) = [collection for collection in ax.collections if isinstance(collection, QuadMesh)]
    return mesh


def limit(ax) -> float:
    """The value of the strongest colour."""
    norm = cells(ax).norm
    assert norm.vmin == -norm.vmax  # zero has the neutral colour
    return norm.vmax


def drawn_texts(figure) -> list[Any]:
    """The text objects of a figure that are visible and not empty."""
    return [text for text in figure.findobj(Text) if text.get_text() and text.get_visible()]


def texts(figure) -> list[str]:
    """The texts that a figure shows."""
    return [text.get_text() for text in drawn_texts(figure)]


def labels(ax) -> tuple[list[str], list[str]]:
    """The labels of the rows and of the columns."""
    return [t.get_text() for t in ax.get_yticklabels()], [t.get_text() for t in ax.get_xticklabels()]


def folded(e: Explanation) -> np.ndarray:
    """The matrix with the special tokens, the first and last units, summed up in a last row and column."""
    rows = np.vstack([e.matrix[1:-1], e.matrix[[0, -1]].sum(0)])
    return np.hstack([rows[:, 1:-1], rows[:, [0, -1]].sum(1, keepdims=True)])


def pixels(figure) -> np.ndarray:
    """The drawn figure, (height, width, 4)."""
    canvas = FigureCanvasAgg(figure)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba()).copy()


def curves(ax) -> list[Any]:
    """The curves between two texts."""
    return [patch for patch in ax.patches if isinstance(patch, PathPatch)]


def words(ax) -> list[Any]:
    """The text objects of the two texts, which are set in 8 points."""
    return [text for text in ax.texts if text.get_fontsize() == 8.0]
