"""Which subsets of a text's units to try, and contributions from the embeddings of those tried.

`SubsetSampler` draws rows of booleans that say which units stay. `exact` and `kriged` take these rows with the
embeddings of the shortened texts, and return the `Shares` of the units with their standard errors.
"""

from pairlens.subsets.kriging import Shares, exact, kriged
from pairlens.subsets.sampling import SubsetSampler, every_subset

__all__ = ["Shares", "SubsetSampler", "every_subset", "exact", "kriged"]
