"""Ways to decompose a text's embedding, one file each.

A method takes a batch of texts, with the unit of every token, and returns one `Decomposition` per text: a vector per
unit, the reference, and the measured gap. `choose_method` turns a user's options into a method object.
"""

from pairlens.methods.base import Batch, Decomposition, Method, Trials
from pairlens.methods.choice import METHODS, check_method, choose_method, default_method, sampled_method

__all__ = [
    "METHODS",
    "Batch",
    "Decomposition",
    "Method",
    "Trials",
    "check_method",
    "choose_method",
    "default_method",
    "sampled_method",
]
