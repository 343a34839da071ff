"""Forward-mode differentiation of a PyTorch model with many tangents at once.

`derivatives` takes a function of hidden states, points, and groups of tokens, and returns one derivative per group from
one run of the function. `Tail` adds CUDA graphs and a precision; the other names are the modes and streams that code
which drives a model on a device needs too.
"""

from pairlens.autodiff.dual import LIMITS, PRECISIONS, Groups
from pairlens.autodiff.graphs import Graphs
from pairlens.autodiff.modes import capturing, differentiable
from pairlens.autodiff.streams import Lanes, Pending, Steps, finish, together
from pairlens.autodiff.tail import Tail, derivatives

__all__ = [
    "LIMITS",
    "PRECISIONS",
    "Graphs",
    "Groups",
    "Lanes",
    "Pending",
    "Steps",
    "Tail",
    "capturing",
    "derivatives",
    "differentiable",
    "finish",
    "together",
]
