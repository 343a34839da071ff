"""Analyses of whole data sets: the twelve studies of the papers, the judge of faithfulness, and the papers' Table 1.

A model and pairs of texts go in, as `Materials`. A `Result` comes out, with a table, a picture and sentences; `pairlens
study NAME` writes it to OUT/NAME/.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

from pairlens.errors import choose
from pairlens.study.catalogue import CATALOGUE

if TYPE_CHECKING:
    from pairlens.study.materials import Materials
    from pairlens.study.result import Result

__all__ = ["CATALOGUE", "run", "skip"]


def run(name: str, materials: Materials) -> Result:
    """Run a study of the papers; the result of one that lacks an input says which.

    Example:
        >>> from pairlens import Lens
        >>> from pairlens.study.materials import Materials
        >>> pairs = [("A cat sleeps.", "A dog sleeps."), ("It rains.", "It snows.")]
        >>> result = run("failures", Materials(Lens(), pairs, progress=False))
        >>> result.summary["skipped"]
        'the data have no scores by people. ...'
    """
    from pairlens.study.result import Lacking

    file = choose("study", name, CATALOGUE).replace("-", "_")
    module = importlib.import_module(f"pairlens.study.papers.{file}")
    try:
        return module.study(materials)
    except Lacking as error:
        return skip(name, materials, str(error))


def skip(name: str, materials: Materials, reason: str) -> Result:
    """The result of a study without a table, and the reason."""
    from pairlens.study.result import Result

    return Result(CATALOGUE[name], materials.describe([], 0), skipped=reason)
