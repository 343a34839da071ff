"""Which subsets of a text's units to try, and linear models of the embeddings of these subsets.

A `SubsetSampler` draws rows of booleans that say which units stay: `BalancedSampler` over all sizes, `DeletionSampler`
near the whole text. `banzhaf` and `shapley` take these rows with the embeddings of the shortened texts, and return a
`Fit`: one vector per unit, with standard errors, exact where every subset was tried.
"""

from pairlens.subsets.banzhaf import banzhaf
from pairlens.subsets.fit import Fit, deletion_weights, squared_errors
from pairlens.subsets.kriging import shapley
from pairlens.subsets.sampling import BalancedSampler, DeletionSampler, SubsetSampler

__all__ = [
    "BalancedSampler",
    "DeletionSampler",
    "Fit",
    "SubsetSampler",
    "banzhaf",
    "deletion_weights",
    "shapley",
    "squared_errors",
]
