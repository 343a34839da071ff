"""From texts to contributions, and from two texts' contributions to an explanation.

`Decomposer` runs a method on texts and caches their `Contributions`. `similarity.explain` takes the contributions of
two texts and returns an `Explanation`: the matrix, the effects, the base, their errors, and a
`Forecast` of deletions. `stream_explanations` does
both for many pairs, and `Options` are a user's options, checked.
"""

from pairlens.attribution.contrast import Contrast
from pairlens.attribution.contributions import Contributions
from pairlens.attribution.decomposer import Decomposer, Job
from pairlens.attribution.explanation import Explanation, Pair
from pairlens.attribution.forecast import Forecast
from pairlens.attribution.options import Options
from pairlens.attribution.similarity import MEASURES, TREATMENTS, explain, explain_all, matrix_alone, space_for
from pairlens.attribution.stream import stream_contributions, stream_explanations

__all__ = [
    "MEASURES",
    "TREATMENTS",
    "Contrast",
    "Contributions",
    "Decomposer",
    "Explanation",
    "Forecast",
    "Job",
    "Options",
    "Pair",
    "explain",
    "explain_all",
    "matrix_alone",
    "space_for",
    "stream_contributions",
    "stream_explanations",
]
