"""Explanations as figures for papers, with matplotlib: heat maps, links between the texts, layers, and grids of pairs.

Every function returns `(figure, axes)`, shows nothing and leaves matplotlib's settings as they are. `save` writes a
figure as PNG, SVG or PDF; the text of an SVG or a PDF can be searched and edited.
"""

from importlib.util import find_spec

from pairlens.errors import MissingExtra

if find_spec("matplotlib") is None:
    raise MissingExtra("matplotlib", "plot")

from pairlens.render.plot.canvas import save
from pairlens.render.plot.linked_texts import links
from pairlens.render.plot.matrix import heatmap
from pairlens.render.plot.multiples import grid, layers

__all__ = ["grid", "heatmap", "layers", "links", "save"]
