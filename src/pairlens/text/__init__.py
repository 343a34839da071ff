"""What a text is made of: units with character offsets, at the level of tokens, words, sentences or given spans.

A text goes in, with its tokens where a tokenizer has made some. Units come out, and for a coarser level the index of
the coarse unit that each fine one belongs to. Nothing here knows of models, and nothing imports torch.
"""

from pairlens.text.alignment import align, token_units
from pairlens.text.compounds import in_compounds, rows_without
from pairlens.text.segmentation import Span, sentences, words
from pairlens.text.units import LEVELS, Level, Unit, both_levels, find_unit, group, level_spans, parts, plain_level

__all__ = [
    "LEVELS",
    "Level",
    "Span",
    "Unit",
    "align",
    "both_levels",
    "find_unit",
    "group",
    "in_compounds",
    "level_spans",
    "parts",
    "plain_level",
    "rows_without",
    "sentences",
    "token_units",
    "words",
]
