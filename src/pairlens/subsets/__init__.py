"""Which subsets of a text's units to try, and the Shapley values of the units from the embeddings of those subsets.

`SubsetSampler` draws rows of booleans that say which units stay. `solve` takes these rows with the embeddings of the
shortened texts, and returns the `Shares` of the units with their standard errors: exact where every subset was tried,
else predicted by kriging.
"""

from pairlens.subsets.kriging import solve
from pairlens.subsets.sampling import SubsetSampler
from pairlens.subsets.shares import Shares

__all__ = ["Shares", "SubsetSampler", "solve"]
