"""Explanations in a terminal, with rich: both texts, the strongest pairs, a coloured matrix that fits, and the sums.

Colour only repeats what the numbers say: a pipe or NO_COLOR loses no information.
"""

from pairlens.render.terminal.view import view

__all__ = ["view"]
